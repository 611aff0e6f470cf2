// Runs on the load's core: makes codes of the peer as it does itself once a person has agreed, and prints them as JSON.

import { json } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import {
  AUDIENCE,
  CLIENT_ID,
  CODE_CHALLENGE,
  CODE_SECONDS,
  type CodeOrder,
  OPENID_SCOPES,
  REDIRECT_URI,
  SCOPE,
} from '../load/load-client.ts';
import { peerProvider } from './peer.ts';

const { redisUrl, issuer, count, agreement } = (await json(process.stdin)) as CodeOrder;
const redis = new Redis(redisUrl);
const provider = peerProvider(issuer, redis);
const client = await provider.Client.find(CLIENT_ID);
if (client === undefined) throw new Error('the peer does not know the client');
const accountId = 'usr_person';
const isForApi = agreement !== 'sign-in';
const openidScope = OPENID_SCOPES.join(' ');
/** By what the person has agreed to: without a resource its access token is one for userinfo. */
const covered = {
  scope: { api: SCOPE, 'api and sign-in': `${openidScope} ${SCOPE}`, 'sign-in': openidScope }[agreement],
  ...(isForApi && { resource: AUDIENCE }),
  ...(agreement !== 'api' && { nonce: 'n-0S6_WzA2Mj', sid: 'the-session-of-the-person' }),
};

const codes: string[] = [];
for (let made = 0; made < count; made += 100) {
  codes.push(...(await Promise.all(Array.from({ length: Math.min(100, count - made) }, newCode))));
}
redis.disconnect();
process.stdout.write(JSON.stringify(codes));

async function newCode(): Promise<string> {
  const grant = new provider.Grant({ accountId, clientId: CLIENT_ID });
  if (isForApi) grant.addResourceScope(AUDIENCE, SCOPE);
  if (agreement !== 'api') grant.addOIDCScope(openidScope);
  const code = new provider.AuthorizationCode({
    accountId,
    client,
    grantId: await grant.save(),
    gty: 'authorization_code',
    redirectUri: REDIRECT_URI,
    ...covered,
    expiresIn: CODE_SECONDS,
    codeChallenge: CODE_CHALLENGE,
    codeChallengeMethod: 'S256',
    authTime: Math.floor(Date.now() / 1000),
  } as ConstructorParameters<typeof provider.AuthorizationCode>[0]);
  return await code.save();
}
