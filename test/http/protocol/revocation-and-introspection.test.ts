// POST /revoke (RFC 7009) and POST /introspect (RFC 7662) over HTTP. What kills a token otherwise:
// kill-switches.test.ts.

import { beforeAll, describe, expect, it } from 'vitest';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import type { StoredAccessToken } from '../../../src/oauth/ports/token-stores.ts';
import { type Grantry, startGrantry, type TestClient } from '../../grantry.ts';
import { TokenCalls } from './token-calls.ts';

const RESOURCE = 'https://api.example/';
const IDLE_SECONDS = 86_400;
const tokens = {
  accessTokenFormat: 'jwt',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: IDLE_SECONDS,
  refreshTokenLifetimeSeconds: 864_000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;
const WEB = { clientId: 'shop.web', secret: 'the-secret-of-the-web-application', audiences: [RESOURCE], tokens };
const OPAQUE: TestClient = {
  clientId: 'shop.opaque',
  secret: 'the-secret-of-the-opaque-client',
  audiences: [RESOURCE],
  tokens: { ...tokens, accessTokenFormat: 'opaque' },
};
const OTHER = { clientId: 'other.web', secret: 'the-secret-of-another-team-here' };
const API = { clientId: 'shop.api', secret: 'the-secret-of-the-api-behind-it', resourceServerAudiences: [RESOURCE] };
/** The API of an audience that no token of these clients is for. */
const OTHER_API = {
  clientId: 'other.api',
  secret: 'the-secret-of-an-api-elsewhere',
  resourceServerAudiences: ['https://other.example/'],
};

let grantry: Grantry;
let web: TokenCalls;
beforeAll(async () => {
  grantry = await startGrantry({ clients: [WEB, OPAQUE, OTHER, API, OTHER_API] });
  web = new TokenCalls(grantry, WEB);
});

/** Moves the clock into the middle of the next second. @returns that second */
function nextSecond(): number {
  grantry.clock.advance(1500 - (grantry.clock.now() % 1000));
  return (grantry.clock.now() - 500) / 1000;
}

async function tokensOf(caller: TokenCalls, clientId: string, grant: Partial<Grant> = {}) {
  const { status, body } = await caller.redeem(await grantry.issueCode(clientId, grant));
  expect(status).toBe(200);
  return { access: String(body.access_token), refresh: String(body.refresh_token) };
}

describe.each([WEB, OPAQUE])('for the tokens of $clientId', (client) => {
  let caller: TokenCalls;
  let api: TokenCalls;
  beforeAll(() => {
    caller = new TokenCalls(grantry, client as typeof WEB);
    api = new TokenCalls(grantry, API);
  });

  it('revocation of an access token ends it and leaves its family alive', async () => {
    const { access, refresh } = await tokensOf(caller, client.clientId);
    expect(await api.isActive(access)).toBe(true);
    expect((await caller.revoke(access)).status).toBe(200);
    expect(await api.isActive(access)).toBe(false);
    expect((await caller.refresh(refresh)).status).toBe(200);
  });

  it('revocation of a refresh token ends the family and every access token of it', async () => {
    const { access, refresh } = await tokensOf(caller, client.clientId);
    const next = await caller.refresh(refresh);
    expect((await caller.revoke(next.body.refresh_token)).status).toBe(200);
    for (const token of [access, next.body.access_token, refresh, next.body.refresh_token]) {
      expect(await caller.isActive(token)).toBe(false);
    }
    expect((await caller.refresh(next.body.refresh_token)).body.error).toBe('invalid_grant');
  });

  it('revocation of an already rotated refresh token ends the family too', async () => {
    const { refresh } = await tokensOf(caller, client.clientId);
    const next = await caller.refresh(refresh);
    expect((await caller.revoke(refresh)).status).toBe(200);
    expect((await caller.refresh(next.body.refresh_token)).body.error).toBe('invalid_grant');
  });

  it('revocation by another client is invalid_request, and the token stays alive', async () => {
    const { access, refresh } = await tokensOf(caller, client.clientId);
    for (const token of [access, refresh]) {
      const answer = await caller.as(OTHER).revoke(token);
      expect([answer.status, answer.body.error]).toEqual([400, 'invalid_request']);
      expect(answer.reason).toBe('token_of_another_client');
      expect(await caller.isActive(token)).toBe(true);
    }
  });

  it('introspection of an access token → the API and the client see exactly its claims, times in seconds, and other callers nothing', async () => {
    const iat = nextSecond();
    const { access } = await tokensOf(caller, client.clientId, { authTime: grantry.clock.now() - 90_000 });
    for (const authorised of [api, caller]) {
      const { status, body } = await authorised.introspect(access);
      expect(status).toBe(200);
      expect(body).toEqual({
        active: true,
        token_type: 'Bearer',
        iss: grantry.issuer,
        sub: expect.stringMatching(/^usr_/),
        aud: RESOURCE,
        client_id: client.clientId,
        iat,
        exp: iat + 600,
        jti: expect.any(String),
        scope: 'read write',
        auth_time: iat - 90,
        grant_id: expect.any(String),
      });
    }
    expect((await caller.as(OTHER).introspect(access)).body).toEqual({ active: false });
  });

  it('introspection of a token of client_credentials → exactly its claims, and none of a person', async () => {
    const iat = nextSecond();
    const { body } = await caller.post('/token', { grant_type: 'client_credentials' });
    expect((await api.introspect(body.access_token)).body).toEqual({
      active: true,
      token_type: 'Bearer',
      iss: grantry.issuer,
      sub: client.clientId,
      aud: RESOURCE,
      client_id: client.clientId,
      iat,
      exp: iat + 600,
      jti: expect.any(String),
      scope: 'read',
    });
  });

  it('introspection of a refresh token → exactly its claims, with the times of the last use', async () => {
    const start = nextSecond();
    const { refresh } = await tokensOf(caller, client.clientId, { authTime: grantry.clock.now() - 90_000 });
    grantry.clock.advance(30_000);
    const { body } = await caller.refresh(refresh);
    expect((await caller.introspect(body.refresh_token)).body).toEqual({
      active: true,
      iss: grantry.issuer,
      sub: expect.stringMatching(/^usr_/),
      aud: RESOURCE,
      client_id: client.clientId,
      iat: start + 30,
      exp: start + 30 + IDLE_SECONDS,
      scope: 'read write',
      auth_time: start - 90,
      grant_id: expect.any(String),
    });
  });

  it('introspection shows a refresh token to its client only, and only while it is the current one', async () => {
    const { refresh } = await tokensOf(caller, client.clientId);
    expect(await caller.isActive(refresh)).toBe(true);
    expect((await api.introspect(refresh)).body).toEqual({ active: false });
    await caller.refresh(refresh);
    expect((await caller.introspect(refresh)).body).toEqual({ active: false });
  });
});

describe('revocation', () => {
  it('answers an empty 200 that still has a media type', async () => {
    const { access } = await tokensOf(web, WEB.clientId);
    for (const token of [access, access, 'unknown', `${access}x`, 'rt1.000.forged.0.mac']) {
      const response = await grantry.post('/revoke', { token }, { headers: authorizationOf(WEB) });
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      expect(await response.text()).toBe('');
    }
  });

  it('ignores hints, right, wrong or unknown', async () => {
    for (const hint of ['access_token', 'refresh_token', 'nonsense', '']) {
      const { refresh } = await tokensOf(web, WEB.clientId);
      expect((await web.post('/revoke', { token: refresh, token_type_hint: hint })).status).toBe(200);
      expect((await web.refresh(refresh)).status).toBe(400);
    }
  });

  it.each([
    ['no token', []],
    ['an empty token', [['token', '']]],
    [
      'two tokens',
      [
        ['token', 'a'],
        ['token', 'a'],
      ],
    ],
    [
      'two hints',
      [
        ['token', 'a'],
        ['token_type_hint', 'x'],
        ['token_type_hint', ''],
      ],
    ],
  ] as [string, [string, string][]][])('with %s is invalid_request, and so is introspection', async (_what, form) => {
    for (const path of ['/revoke', '/introspect']) {
      const response = await grantry.post(path, form, { headers: authorizationOf(WEB) });
      expect([path, response.status, ((await response.json()) as { error: string }).error]).toEqual([
        path,
        400,
        'invalid_request',
      ]);
    }
  });
});

describe('introspection', () => {
  it('says inactive, and nothing else, to whatever is not an active token', async () => {
    const { access } = await tokensOf(web, WEB.clientId);
    const [head = '', claims = '', signature = ''] = access.split('.');
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
    const forged = [
      'garbage',
      '..',
      `${head}.${claims}.`,
      `${head}.${claims}.${signature.slice(0, -4)}AAAA`,
      `${none}.${claims}.`,
      `${none}.${claims}.${signature}`,
      `${head}.${Buffer.from('{"sub":"usr_x"}').toString('base64url')}.${signature}`,
      'a'.repeat(30_000),
    ];
    for (const token of forged) expect((await web.introspect(token)).body).toEqual({ active: false });
    grantry.clock.advance(601_000);
    expect((await web.introspect(access)).body).toEqual({ active: false });
  });

  it('answers JSON only, and it may not be kept', async () => {
    const headers = { ...authorizationOf(WEB), accept: 'application/token-introspection+jwt' };
    const response = await grantry.post('/introspect', { token: 'x' }, { headers });
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
  });
});

// Only the record of a grant is sealed in all of its members: that of a token counts as far as it agrees.
describe('a stored opaque token of a grant', () => {
  const opaque = () => new TokenCalls(grantry, OPAQUE as typeof WEB);
  const [OTHER_RESOURCE = ''] = OTHER_API.resourceServerAudiences;

  /** A token whose record another party has changed. */
  async function changed(change: (stored: StoredAccessToken) => Partial<StoredAccessToken>): Promise<string> {
    const { access } = await tokensOf(opaque(), OPAQUE.clientId);
    const { accessTokens } = grantry.stores;
    const stored = await accessTokens.read(String((await opaque().introspect(access)).body.jti));
    if (stored === undefined) throw new Error('no such token is stored');
    await accessTokens.write({ ...stored, ...change(stored) });
    return access;
  }

  it.each<[string, (stored: StoredAccessToken) => Partial<StoredAccessToken>]>([
    ['of another subject', () => ({ subject: 'usr_mallory' })],
    ['of another client id', () => ({ clientId: OTHER.clientId })],
    ['of another client by its uid', () => ({ clientUid: `uid-of-${OTHER.clientId}` })],
    ['of another client', () => ({ clientUid: `uid-of-${OTHER.clientId}`, clientId: OTHER.clientId })],
    ['of an earlier sign-in', ({ authTime = 0 }) => ({ authTime: authTime - 1000 })],
    ['of a later sign-in', ({ authTime = 0 }) => ({ authTime: authTime + 1000 })],
    ['of no sign-in', () => ({ authTime: undefined })],
    ['for another audience', () => ({ audience: OTHER_RESOURCE })],
    ['with another scope', () => ({ scope: ['admin'] })],
    ['with one more scope', ({ scope }) => ({ scope: [...scope, 'admin'] })],
  ])('%s → inactive to each caller', async (_, change) => {
    const access = await changed(change);
    for (const caller of [OPAQUE as typeof WEB, OTHER, API, OTHER_API]) {
      expect((await web.as(caller).introspect(access)).body).toEqual({ active: false });
    }
  });

  it('with less scope than its grant, as it was issued → active', async () => {
    const access = await changed(() => ({ scope: ['read'] }));
    expect((await opaque().introspect(access)).body).toMatchObject({ active: true, scope: 'read' });
  });
});

function authorizationOf({ clientId, secret }: typeof WEB): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}` };
}
