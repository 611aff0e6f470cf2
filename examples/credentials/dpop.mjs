// Gets a token that is bound to a key made here, and prints the answer.

import { readFile } from 'node:fs/promises';
import * as client from 'openid-client';

const secret = await readFile(new URL('.grantry/secrets/default.dpop.secret', import.meta.url), 'utf8');
const config = await client.discovery(
  new URL(process.env.ISSUER ?? 'http://localhost:9400'),
  'default.dpop',
  undefined,
  client.ClientSecretBasic(secret.trim()),
  { algorithm: 'oauth2', execute: [client.allowInsecureRequests] },
);
const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'));
console.log(JSON.stringify(await client.clientCredentialsGrant(config, {}, { DPoP })));
