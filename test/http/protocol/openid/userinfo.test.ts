// The userinfo endpoint: what it answers, where its token may be, and which tokens it refuses (docs/scope.md: USERINFO-1 to USERINFO-6).
// Tokens that are bound to their sender: `userinfo-senders.test.ts`.

import { decodeJwt, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../../src/oauth/ports/ports.ts';
import { generateSigningKeyPem, importSigningKey } from '../../../../src/oauth/registry/keys.ts';
import { basic, startGrantry, type TestClient } from '../../../grantry.ts';
import { TokenCalls, WEB } from '../token-calls.ts';
import {
  aPerson,
  OPENID_CLIENT,
  PERSONAL,
  personTokens,
  type UserinfoAnswer,
  userinfo,
  withToken,
} from './userinfo-calls.ts';

const ISSUER = 'https://id.example';
const ORIGIN = 'https://spa.example';
const OPAQUE = { clientId: 'shop.opaque', secret: 'the-secret-of-the-opaque-application' };
/** Its tokens are for an API, as far as the API has their scope. */
const CALLER = { clientId: 'shop.caller', secret: 'the-secret-of-what-calls-the-api' };
const NOTES = 'https://notes.example/api';
/** No manifest makes the issuer an audience of its own tokens. */
const MACHINES = [WEB, OPAQUE].map(({ clientId, secret }) => ({ clientId: `${clientId}-machine`, secret }));
const tokens = {
  accessTokenFormat: 'opaque',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 1000,
  refreshTokenLifetimeSeconds: 3000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;
const clients: readonly TestClient[] = [
  { ...WEB, ...OPENID_CLIENT, groups: ['team-*'], allowedCorsOrigins: [ORIGIN] },
  { ...OPAQUE, ...OPENID_CLIENT, tokens },
  { ...CALLER, ...OPENID_CLIENT, scopes: [...PERSONAL, 'read'], audiences: [NOTES] },
  ...MACHINES.map((machine, index) => ({
    ...machine,
    ...OPENID_CLIENT,
    audiences: [ISSUER],
    defaultScopes: ['openid'],
    ...(index === 1 && { tokens }),
  })),
];

let isStoreAway = false;
function breakable(stores: Stores): Stores {
  const entries = Object.entries(stores).map(([name, store]) => [
    name,
    new Proxy(store, {
      get(target, action) {
        const method: unknown = Reflect.get(target, action);
        if (typeof method !== 'function') return method;
        return async (...given: unknown[]) => {
          if (isStoreAway) throw new StoreUnavailableError(`${name}.${String(action)}`);
          return await method.apply(target, given);
        };
      },
    }),
  ]);
  return Object.fromEntries(entries) as unknown as Stores;
}

const { owners, subject, change, remove } = await aPerson();
const grantry = await startGrantry({ issuer: ISSUER, owners, clients, wrapStores: breakable });

function tokensOf(client: { readonly clientId: string; readonly secret: string }, scope?: readonly string[]) {
  grantry.clock.advance(1);
  return personTokens(grantry, { ...client, subject, ...(scope && { scope }) });
}

async function accessToken(client: { readonly clientId: string; readonly secret: string } = WEB): Promise<string> {
  return String((await tokensOf(client)).access_token);
}

async function tokenForNotes(): Promise<string> {
  const wishes = { ...CALLER, subject, scope: [...PERSONAL, 'read'], audiences: [NOTES] };
  return String((await personTokens(grantry, wishes)).access_token);
}

function expectRefusal(answer: UserinfoAnswer, status: number, code: string, reason: string): void {
  expect([answer.status, answer.body.error, answer.reason]).toEqual([status, code, reason]);
  expect(answer.challenge).toMatch(new RegExp(`^Bearer realm="${ISSUER}", error="${code}", .*, DPoP algs="ES256 `));
  expect(answer.headers.get('cache-control')).toBe('no-store');
}

describe('a token of a person for the issuer', () => {
  it.each([
    ['JWT', WEB, ['team-a']],
    ['opaque', OPAQUE, ['team-a', 'admins']],
  ])(
    'given a %s → the claims of its scope, groups by the globs of the client, in JSON that no cache keeps',
    async (_, client, groups) => {
      const { status, body, headers } = await withToken(grantry, await accessToken(client));
      expect(status).toBe(200);
      expect(body).toEqual({
        sub: subject,
        name: 'Alice Example',
        preferred_username: 'alice',
        email: 'alice@example.com',
        email_verified: true,
        groups,
      });
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(headers.get('cache-control')).toBe('no-store');
    },
  );

  it('given the scope openid alone → sub alone', async () => {
    const { access_token } = await tokensOf(WEB, ['openid']);
    expect((await withToken(grantry, access_token)).body).toEqual({ sub: subject });
  });

  it('given a person who changed since → the claims of now', async () => {
    const token = await accessToken();
    change({ displayName: 'Alice Other', groups: [] });
    const { body } = await withToken(grantry, token);
    change();
    expect(body).toMatchObject({ name: 'Alice Other', groups: [] });
  });

  it.each([
    ['JWT', WEB],
    ['opaque', OPAQUE],
  ])(
    'given a %s and a client that has lost a scope since → nothing of that; without openid none',
    async (_, client) => {
      const token = await accessToken(client);
      const withScopes = (scopes: readonly string[]) =>
        grantry.setClients(clients.map((each) => (each.clientId === client.clientId ? { ...each, scopes } : each)));
      withScopes(['openid', 'profile']);
      const fewer = await withToken(grantry, token);
      withScopes(['profile']);
      const none = await withToken(grantry, token);
      grantry.setClients(clients);
      expect(fewer.body).toEqual({ sub: subject, name: 'Alice Example', preferred_username: 'alice' });
      expectRefusal(none, 403, 'insufficient_scope', 'scope_too_small');
    },
  );

  it('is disclosed by one log line that names client and scope, and no claim', async () => {
    await withToken(grantry, await accessToken());
    const line = grantry.logs().findLast(({ route }) => route === 'userinfo');
    expect(line).toMatchObject({ clientId: WEB.clientId, scope: PERSONAL.join(' '), outcome: 'disclosed' });
    for (const claim of ['alice', 'Alice Example', 'team-a', subject])
      expect(JSON.stringify(line)).not.toContain(claim);
  });
});

describe('the transport of the token', () => {
  const form = (pairs: readonly (readonly [string, string])[]) => new URLSearchParams(pairs as [string, string][]);

  it('given a form, a POST with a header and no body, or one with an empty form → 200', async () => {
    const token = await accessToken();
    const authorization = `Bearer ${token}`;
    for (const init of [
      { body: form([['access_token', token]]) },
      { headers: { authorization } },
      { headers: { authorization }, body: form([]) },
      { headers: { authorization: `bEARER  ${token}` }, body: form([['access_token', '']]) },
    ]) {
      expect(await userinfo(grantry, { method: 'POST', ...init })).toMatchObject({
        status: 200,
        body: { sub: subject },
      });
    }
  });

  it('given both at once, two tokens, or a query → 400 invalid_request', async () => {
    const token = await accessToken();
    const authorization = `Bearer ${token}`;
    const body = form([['access_token', token]]);
    const doubled = form([
      ['access_token', token],
      ['access_token', token],
    ]);
    const method = 'POST';
    const both = await userinfo(grantry, { method, headers: { authorization }, body });
    expectRefusal(both, 400, 'invalid_request', 'two_transports');
    const twice = await userinfo(grantry, { method, body: doubled });
    expectRefusal(twice, 400, 'invalid_request', 'duplicate_parameter');
    const query = `?access_token=${token}`;
    expectRefusal(await userinfo(grantry, {}, query), 400, 'invalid_request', 'credential_in_query');
    expectRefusal(await userinfo(grantry, { method, body }, query), 400, 'invalid_request', 'parameter_in_query');
    const broken = await userinfo(grantry, { headers: { authorization: 'Bearer a b' } });
    expectRefusal(broken, 400, 'invalid_request', 'token_malformed');
  });

  it('given none, or another scheme → 401 and a challenge without an error or a body', async () => {
    const authorization = basic(WEB.clientId, WEB.secret);
    for (const init of [{}, { headers: { authorization } }, { method: 'POST' }]) {
      const { status, challenge, body } = await userinfo(grantry, init);
      expect([status, body]).toEqual([401, {}]);
      expect(challenge).toMatch(new RegExp(`^Bearer realm="${ISSUER}", scope="openid", DPoP algs="`));
      expect(challenge).not.toContain('error');
    }
  });

  it('given another media type, with a body or without one → 415', async () => {
    const authorization = `Bearer ${await accessToken()}`;
    for (const [type, body] of [
      ['application/json', '{}'],
      ['application/json', undefined],
      ['text/plain', undefined],
    ] as const) {
      const headers = { authorization, 'content-type': type };
      const answer = await userinfo(grantry, { method: 'POST', headers, ...(body !== undefined && { body }) });
      expect([type, answer.status]).toEqual([type, 415]);
    }
  });

  it('given another method → 405, that of HEAD too', async () => {
    for (const method of ['HEAD', 'PUT', 'PATCH', 'DELETE']) {
      const { status, headers } = await userinfo(grantry, { method });
      expect([method, status, headers.get('allow')]).toEqual([method, 405, 'GET, POST']);
    }
  });
});

describe('a page of another origin', () => {
  it('given a registered one → may ask before, and reads answers, challenges included', async () => {
    const headers = { origin: ORIGIN, 'access-control-request-method': 'GET' };
    const preflight = await userinfo(grantry, { method: 'OPTIONS', headers });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-methods')).toBe('GET, POST');
    expect(preflight.headers.get('access-control-allow-headers')).toContain('DPoP');
    const answer = await withToken(grantry, await accessToken(), { headers: { origin: ORIGIN } });
    for (const { headers } of [answer, await userinfo(grantry, { headers: { origin: ORIGIN } })]) {
      expect(headers.get('access-control-allow-origin')).toBe(ORIGIN);
      expect(headers.get('access-control-expose-headers')).toContain('WWW-Authenticate');
      expect(headers.get('access-control-allow-credentials')).toBeNull();
    }
  });

  it('given another one → reads nothing', async () => {
    const answer = await withToken(grantry, await accessToken(), { headers: { origin: 'https://evil.example' } });
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });
});

describe('a token that gives no access here', () => {
  it('given a token for an API, of a grant with openid → 401 invalid_token', async () => {
    const token = await tokenForNotes();
    expect(decodeJwt(token)).toMatchObject({ aud: NOTES, scope: 'read' });
    expectRefusal(await withToken(grantry, token), 401, 'invalid_token', 'audience_mismatch');
  });

  it('given a token of client_credentials → 401 invalid_token', async () => {
    const calls = new TokenCalls(grantry, CALLER);
    const { body } = await calls.post('/token', { grant_type: 'client_credentials', scope: 'read' });
    expectRefusal(await withToken(grantry, body.access_token), 401, 'invalid_token', 'audience_mismatch');
  });

  it.each(MACHINES)('given one of $clientId for the issuer, with openid → 401 invalid_token', async (client) => {
    const { body } = await new TokenCalls(grantry, client).post('/token', { grant_type: 'client_credentials' });
    expect(body.scope).toBe('openid');
    expectRefusal(await withToken(grantry, body.access_token), 401, 'invalid_token', 'person_missing');
  });

  it.each([WEB, OPAQUE])('given a token of $clientId without openid → 403 insufficient_scope', async (client) => {
    const { access_token } = await tokensOf(client, ['profile']);
    const answer = await withToken(grantry, access_token);
    expectRefusal(answer, 403, 'insufficient_scope', 'scope_too_small');
    expect(answer.challenge).toContain('scope="openid"');
  });

  it('given a refresh token, a code, or no token at all of ours → 401 invalid_token', async () => {
    const { refresh_token } = await tokensOf(WEB);
    expectRefusal(await withToken(grantry, refresh_token), 401, 'invalid_token', 'refresh_token');
    const code = await grantry.issueCode(WEB.clientId, { subject });
    for (const other of [code, 'x', 'a.b.c', `${await accessToken()}x`]) {
      expectRefusal(await withToken(grantry, other), 401, 'invalid_token', 'token_unknown');
    }
  });

  it('given an ID token or a logout token, or an access token by another key → 401 invalid_token', async () => {
    const key = await importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active');
    const other = await importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active');
    const own = await startGrantry({ issuer: ISSUER, owners, clients, keys: [key] });
    const { access_token } = await personTokens(own, { ...WEB, subject });
    const claims = decodeJwt(String(access_token));
    const signed = (typ: string, { kid, privateKey } = key) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid, typ }).sign(privateKey);
    expect((await withToken(own, await signed('at+jwt'))).status).toBe(200);
    const { kid } = key;
    for (const token of [
      await signed('JWT'),
      await signed('logout+jwt'),
      await signed('at+jwt', other),
      await signed('at+jwt', { ...other, kid }),
    ]) {
      expectRefusal(await withToken(own, token), 401, 'invalid_token', 'token_unknown');
    }
  });

  it.each([WEB, OPAQUE])(
    'given a token of $clientId in the second of its expiry → 401 invalid_token',
    async (client) => {
      const token = await accessToken(client);
      grantry.clock.advance(599_000);
      expect((await withToken(grantry, token)).status).toBe(200);
      grantry.clock.advance(1000);
      expectRefusal(await withToken(grantry, token), 401, 'invalid_token', 'token_unknown');
    },
  );
});

describe.each([WEB, OPAQUE])('a token of $clientId that is revoked', (client) => {
  const calls = new TokenCalls(grantry, client);
  const clientUid = `uid-of-${client.clientId}`;
  const raise = (target: Parameters<Stores['watermarks']['raise']>[0]) =>
    grantry.stores.watermarks.raise(target, grantry.clock.now());
  const withClients = (changed: readonly TestClient[]) => grantry.setClients(changed);

  it.each<[string, (issued: Readonly<Record<string, unknown>>) => unknown]>([
    ['the token', ({ access_token }) => calls.revoke(access_token)],
    ['its grant', ({ refresh_token }) => calls.revoke(refresh_token)],
    ['the global watermark', () => raise({ kind: 'global' })],
    ['the watermark of the client', () => raise({ kind: 'client', clientUid })],
    ['the watermark of the person', () => raise({ kind: 'user', subject })],
    ['a withdrawn consent', () => raise({ kind: 'consent', clientUid, subject })],
    [
      'revokeTokensBefore of the client',
      () => withClients(clients.map((each) => ({ ...each, revokeTokensBefore: grantry.clock.now() }))),
    ],
    ['a client that is gone', () => withClients(clients.filter(({ clientId }) => clientId !== client.clientId))],
    [
      'a client of the same id that is another',
      () => withClients(clients.map((each) => ({ ...each, uid: `new-${each.clientId}` }))),
    ],
    ['revokeTokensBefore of the person', () => change({ revokeTokensBefore: grantry.clock.now() })],
    ['a person who is disabled', () => change({ disabled: true })],
    ['a person who is gone', () => remove()],
  ])('by %s alone → 401 invalid_token', async (_, kill) => {
    const issued = await tokensOf(client);
    expect((await withToken(grantry, issued.access_token)).status).toBe(200);
    await kill(issued);
    const answer = await withToken(grantry, issued.access_token);
    grantry.setClients(clients);
    change();
    expect([answer.status, answer.body.error]).toEqual([401, 'invalid_token']);
    expect(['token_revoked', 'token_unknown', 'client_unknown']).toContain(answer.reason);
  });
});

describe('while the store is unavailable', () => {
  it.each([WEB, OPAQUE])('given a token of $clientId → 503, and no claim', async (client) => {
    const token = await accessToken(client);
    isStoreAway = true;
    const { status, body, headers } = await withToken(grantry, token);
    isStoreAway = false;
    expect([status, body.error]).toEqual([503, 'temporarily_unavailable']);
    expect(headers.get('retry-after')).toBe('1');
    expect(headers.get('cache-control')).toBe('no-store');
    expect((await withToken(grantry, token)).status).toBe(200);
  });

  it('given a JWT for an API → 401 all the same', async () => {
    const token = await tokenForNotes();
    isStoreAway = true;
    const answer = await withToken(grantry, token);
    isStoreAway = false;
    expectRefusal(answer, 401, 'invalid_token', 'audience_mismatch');
  });
});

it('refusals are counted by error and reason', async () => {
  await userinfo(grantry);
  await withToken(grantry, 'x');
  const metrics = await (await fetch(grantry.adminUrl('/metrics'))).text();
  for (const [error, reason] of [
    ['none', 'no_credentials'],
    ['invalid_token', 'token_unknown'],
  ]) {
    expect(metrics).toMatch(
      new RegExp(`grantry_token_errors_total\\{endpoint="userinfo",error="${error}",reason="${reason}"\\} [1-9]`),
    );
  }
});
