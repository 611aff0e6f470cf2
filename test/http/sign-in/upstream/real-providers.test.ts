// Sign-in by OpenID providers that are none of a test: another grantry, and oidc-provider.

import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { decodeJwt } from 'jose';
import OidcProvider from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LocalUsers } from '../../../../src/login/local/local-users.ts';
import { startGrantryProvider } from '../../../consumers/setup/grantry-provider.ts';
import { type FilledForm, PERSON, type Provider } from '../../../consumers/setup/provider.ts';
import { Visitor } from '../../../consumers/setup/visitor.ts';
import { freePort } from '../../../free-port.ts';
import { basic, PKCE, startGrantry, TestClock } from '../../../grantry.ts';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import type { Page } from '../sign-in-browser.ts';

const SECRET = 'the secret of grantry!!!!!!!!!!!';
const CALLBACK = 'https://shop.example/callback';
const SCOPES = ['openid', 'profile', 'email', 'groups'];

/** A grantry without users of its own. */
async function startDownstream(port: number) {
  const clock = new TestClock();
  clock.run();
  const client = {
    clientId: 'shop',
    secret: SECRET,
    redirectUris: [CALLBACK],
    grantTypes: ['authorization_code', 'refresh_token'] as const,
    scopes: SCOPES,
    defaultScopes: SCOPES,
    consent: 'Skip' as const,
    idTokens: { signingAlgorithm: 'ES256' as const, lifetimeSeconds: 3600 },
  };
  return await startGrantry({ port, clock, owners: new LocalUsers({ clock, users: [] }), clients: [client] });
}

type Upstream = Pick<Provider, 'issuer' | 'authority' | 'answerTo' | 'stop'>;

/** The claims at userinfo and in the ID token of the person who signs in. */
async function signIn(
  downstream: Awaited<ReturnType<typeof startDownstream>>,
  visitor: Visitor,
  asked: Readonly<Record<string, string>> = {},
) {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'shop',
    redirect_uri: CALLBACK,
    scope: SCOPES.join(' '),
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
    ...asked,
  });
  const arrived = await visitor.answerTo(`${downstream.url('/authorize')}?${query}`, CALLBACK);
  const code = arrived.searchParams.get('code');
  if (code === null) throw new Error(`the answer is ${arrived.search}`);
  const tokens = await fetch(downstream.url('/token'), {
    method: 'POST',
    headers: { authorization: basic('shop', SECRET) },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
      code_verifier: PKCE.verifier,
    }),
  });
  const { access_token, id_token } = (await tokens.json()) as { access_token: string; id_token: string };
  const answer = await fetch(downstream.url('/userinfo'), { headers: { authorization: `Bearer ${access_token}` } });
  return { claims: (await answer.json()) as Record<string, unknown>, authTime: Number(decodeJwt(id_token).auth_time) };
}

/** The provider honours `max_age`, and says when the person signed in. */
async function expectRepeatedSignIn(downstream: Awaited<ReturnType<typeof startDownstream>>, upstream: Upstream) {
  const visitor = new Visitor(upstream as Provider);
  const { authTime } = await signIn(downstream, visitor);
  await signIn(downstream, visitor);
  expect(visitor.signIns).toBe(1);
  const again = await signIn(downstream, visitor, { max_age: '0' });
  expect(visitor.signIns).toBe(2);
  expect(again.authTime).toBeGreaterThanOrEqual(authTime);
}

const TOLD = {
  sub: expect.stringMatching(/^usr_/),
  name: PERSON.name,
  preferred_username: PERSON.username,
  email: PERSON.email,
  email_verified: true,
};

describe('another grantry', () => {
  it('→ the person, with what it says, and its groups behind the prefix; max_age=0 → signs in there again', async () => {
    const port = await freePort(2);
    const issuer = `http://127.0.0.1:${port}`;
    const upstream = await startGrantryProvider({
      consumers: [{ clientId: 'grantry', secret: SECRET, redirectUri: `${issuer}/login/callback/corp` }],
    });
    const downstream = await startDownstream(port);
    await downstream.setProviders([anOidcProvider({ issuer: upstream.issuer, scopes: SCOPES })]);
    const { claims } = await signIn(downstream, new Visitor(upstream));
    expect(claims).toEqual(Object.assign({ groups: PERSON.groups.map((group) => `corp:${group}`) }, TOLD));
    await expectRepeatedSignIn(downstream, upstream);
    await upstream.stop();
  });
});

describe('oidc-provider', () => {
  let upstream: Upstream;
  let downstream: Awaited<ReturnType<typeof startDownstream>>;
  beforeAll(async () => {
    const port = await freePort(2);
    downstream = await startDownstream(port);
    upstream = await startOidcProvider(`http://127.0.0.1:${port}/login/callback/corp`);
  });
  afterAll(() => upstream.stop());

  it.each(['client_secret_basic', 'client_secret_post'] as const)(
    'with %s → the person; max_age=0 → signs in there again',
    async (clientAuth) => {
      const clientId = clientAuth;
      const credentials = { clientId, clientSecret: SECRET, authorities: undefined };
      const provider = anOidcProvider({ issuer: upstream.issuer, scopes: SCOPES, clientAuth, credentials });
      await downstream.setProviders([provider]);
      const { claims } = await signIn(downstream, new Visitor(upstream as Provider));
      expect(claims).toEqual(Object.assign({ groups: ['corp:developers'] }, TOLD));
      await expectRepeatedSignIn(downstream, upstream);
    },
  );
});

/** With its own pages for development, which any password opens; claims are at userinfo alone. */
async function startOidcProvider(callback: string): Promise<Upstream> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const { name, username, email } = PERSON;
  const provider = new OidcProvider(issuer, {
    clients: (['client_secret_basic', 'client_secret_post'] as const).map((method) => ({
      client_id: method,
      client_secret: SECRET,
      token_endpoint_auth_method: method,
      application_type: 'native' as const,
      redirect_uris: [callback],
      id_token_signed_response_alg: 'ES256' as const,
    })),
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kty: 'EC', alg: 'ES256', use: 'sig' }] },
    scopes: ['openid'],
    claims: { profile: ['name', 'preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => ({ sub, name, preferred_username: username, email, email_verified: true, groups: ['developers'] }),
    }),
    pkce: { required: () => true },
    cookies: { keys: ['a key of a test'] },
  });
  const server = createServer(provider.callback()).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { issuer, authority: undefined, answerTo, stop };
}

/** Its pages have one form each: of sign-in, and of consent. */
function answerTo({ body }: Page): FilledForm | undefined {
  const action = /<form\b[^>]*\baction="([^"]*)"/.exec(body)?.[1];
  if (action === undefined) return undefined;
  const hidden = [...body.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name, value]) => [
    name,
    value,
  ]);
  const typed = body.includes('name="password"') ? { login: PERSON.username, password: 'any' } : {};
  return { action, fields: Object.assign(Object.fromEntries(hidden), typed) };
}
