import { describe, expect, it, vi } from 'vitest';
import type { TokenSettings } from '../../../src/oauth/registry/client.ts';
import { startGrantry } from '../../grantry.ts';
import { API, aDirectory, TokenCalls, WEB } from './token-calls.ts';

const AUDIENCE = 'https://api.shop.example/';
const OTHER = { clientId: 'shop.other', secret: 'the-secret-of-another-application' };
const STEADY = { clientId: 'shop.steady', secret: 'the-secret-of-one-that-never-rotates' };
const STRICT = { clientId: 'shop.strict', secret: 'the-secret-of-one-without-any-grace' };
const NATIVE = { clientId: 'shop.native' };
const settings = (changes: Partial<TokenSettings>) => ({
  tokens: {
    accessTokenFormat: 'jwt' as const,
    accessTokenLifetimeSeconds: 600,
    refreshTokenIdleLifetimeSeconds: 1000,
    refreshTokenLifetimeSeconds: 3000,
    refreshTokenRotation: 'Always' as const,
    refreshTokenReuseGraceSeconds: 10,
    ...changes,
  },
});
const shared = { audiences: [AUDIENCE], ...settings({}) };
const clients = [
  { ...WEB, ...shared, scopes: ['read', 'write', 'admin'] },
  { ...OTHER, ...shared },
  { ...STEADY, ...shared, ...settings({ refreshTokenRotation: 'Never' }) },
  { ...STRICT, ...shared, ...settings({ refreshTokenReuseGraceSeconds: 0 }) },
  { ...NATIVE, ...shared, redirectUris: ['http://127.0.0.1/cb'] },
  { ...API, resourceServerAudiences: [AUDIENCE] },
];
const { owners, subject, setDisabled } = await aDirectory();
const grantry = await startGrantry({ owners, clients });
const web = new TokenCalls(grantry);
const api = web.as(API);
const invalidGrant = (reason: string) => ({ status: 400, body: { error: 'invalid_grant' }, reason });

/** The first tokens of a new family. */
async function begin(calls = web, clientId: string = WEB.clientId, changes: Record<string, string> = {}) {
  const { status, body } = await calls.redeem(await grantry.issueCode(clientId, { subject }), changes);
  expect(status).toBe(200);
  return body;
}

function alertsSince(count: number): readonly unknown[] {
  return grantry
    .audits()
    .filter(({ event }) => event === 'refresh_token.reuse_detected')
    .slice(count);
}

function alertCount(): number {
  return alertsSince(0).length;
}

describe('rotation', () => {
  it('gives a new refresh token at each use and ends the one before', async () => {
    const first = await begin();
    const { status, body } = await web.refresh(first.refresh_token);
    expect(status).toBe(200);
    expect(body.refresh_token).not.toBe(first.refresh_token);
    expect(await web.isActive(first.refresh_token)).toBe(false);
    expect(await web.isActive(body.refresh_token)).toBe(true);
  });

  it('keeps grant_id over refreshes', async () => {
    const first = await begin();
    const { body } = await web.refresh(first.refresh_token);
    const [before, after] = [await api.introspect(first.access_token), await api.introspect(body.access_token)];
    expect(after.body.grant_id).toBe(before.body.grant_id);
    expect(after.body.jti).not.toBe(before.body.jti);
  });

  it('answers a lost response with the same successor, within the grace', async () => {
    const first = await begin();
    const { body } = await web.refresh(first.refresh_token);
    grantry.clock.advance(10_000);
    const retried = await web.refresh(first.refresh_token);
    expect(retried).toMatchObject({ status: 200, body: { refresh_token: body.refresh_token } });
  });

  it('ends the family when a rotated token comes after the grace, with one alert', async () => {
    const before = alertCount();
    const first = await begin();
    const { body } = await web.refresh(first.refresh_token);
    grantry.clock.advance(10_001);
    expect(await web.refresh(first.refresh_token)).toMatchObject(invalidGrant('refresh_token_reused'));
    expect(await web.refresh(first.refresh_token)).toMatchObject(invalidGrant('refresh_token_gone'));
    expect(await web.refresh(body.refresh_token)).toMatchObject(invalidGrant('refresh_token_gone'));
    expect(await api.isActive(first.access_token)).toBe(false);
    expect(await api.isActive(body.access_token)).toBe(false);
    expect(alertsSince(before)).toHaveLength(1);
  });

  it('closes the grace by the use of the successor', async () => {
    const first = await begin();
    const { body: second } = await web.refresh(first.refresh_token);
    const { body: third } = await web.refresh(second.refresh_token);
    expect(await web.refresh(first.refresh_token)).toMatchObject(invalidGrant('refresh_token_reused'));
    expect(await web.refresh(third.refresh_token)).toMatchObject(invalidGrant('refresh_token_gone'));
  });

  it('makes one successor of 200 parallel refreshes', async () => {
    const first = await begin();
    const answers = await Promise.all(Array.from({ length: 200 }, () => web.refresh(first.refresh_token)));
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1);
    expect(answers.every(({ status }) => status === 200)).toBe(true);
  });

  it('without a grace takes any second use for theft', async () => {
    const strict = web.as(STRICT);
    const first = await begin(strict, STRICT.clientId);
    const answers = await Promise.all([1, 2].map(() => strict.refresh(first.refresh_token)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
    const good = answers.find(({ status }) => status === 200);
    expect(await strict.refresh(good?.body.refresh_token)).toMatchObject(invalidGrant('refresh_token_gone'));
  });

  it('Never answers with the refresh token that was presented', async () => {
    const steady = web.as(STEADY);
    const first = await begin(steady, STEADY.clientId);
    for (let use = 0; use < 3; use++) {
      grantry.clock.advance(900_000);
      const { status, body } = await steady.refresh(first.refresh_token);
      expect(status).toBe(200);
      expect(body.refresh_token).toBe(first.refresh_token);
    }
  });

  it('is what a public client always gets', async () => {
    const native = web.as(NATIVE);
    const first = await begin(native, NATIVE.clientId, { redirect_uri: 'http://127.0.0.1/cb' });
    const { body } = await native.refresh(first.refresh_token);
    expect(body.refresh_token).not.toBe(first.refresh_token);
  });
});

describe('a refresh token', () => {
  it('belongs to its client: another one is refused, and the family lives on', async () => {
    const first = await begin();
    expect(await web.as(OTHER).refresh(first.refresh_token)).toMatchObject(invalidGrant('refresh_token_mismatch'));
    expect(await web.refresh(first.refresh_token)).toMatchObject({ status: 200 });
    grantry.clock.advance(20_000);
    expect(await web.as(OTHER).refresh(first.refresh_token)).toMatchObject(invalidGrant('refresh_token_mismatch'));
    expect(await api.isActive(first.access_token)).toBe(true);
  });

  it('missing is invalid_request, unknown or forged is invalid_grant', async () => {
    const missing = await web.refresh('');
    expect(missing).toMatchObject({ status: 400, body: { error: 'invalid_request' }, reason: 'refresh_token_missing' });
    const forged = `rt1.000.${'a'.repeat(27)}.0.${'a'.repeat(43)}`;
    for (const token of ['x', forged]) {
      expect(await web.refresh(token)).toMatchObject(invalidGrant('refresh_token_unknown'));
    }
  });

  it('with any byte flipped is unknown, and harms nothing', async () => {
    const first = await begin();
    const token = String(first.refresh_token);
    for (let index = 0; index < token.length; index += 5) {
      const flipped = token.slice(0, index) + (token[index] === 'A' ? 'B' : 'A') + token.slice(index + 1);
      expect(await web.refresh(flipped)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    }
    expect(await web.refresh(token)).toMatchObject({ status: 200 });
  });

  it('dies when it is not used for the idle lifetime', async () => {
    const [used, idle] = [await begin(), await begin()];
    grantry.clock.advance(999_999);
    expect(await web.refresh(used.refresh_token)).toMatchObject({ status: 200 });
    grantry.clock.advance(1);
    expect(await web.isActive(idle.refresh_token)).toBe(false);
    expect(await web.refresh(idle.refresh_token)).toMatchObject(invalidGrant('refresh_token_gone'));
  });

  it('dies with the absolute lifetime, however often it is used', async () => {
    let tokens = await begin();
    for (let use = 0; use < 3; use++) {
      grantry.clock.advance(900_000);
      tokens = (await web.refresh(tokens.refresh_token)).body;
    }
    grantry.clock.advance(300_000);
    expect(await web.isActive(tokens.refresh_token)).toBe(false);
    expect(await web.refresh(tokens.refresh_token)).toMatchObject(invalidGrant('refresh_token_gone'));
  });

  it('gives access tokens that live as long as they say, also where its lifetime has grown since the code', async () => {
    let tokens = await begin();
    const longer = settings({ refreshTokenLifetimeSeconds: 5000 });
    grantry.setClients(clients.map((client) => (client.clientId === WEB.clientId ? { ...client, ...longer } : client)));
    for (const seconds of [900, 900, 900, 900, 900, 490]) {
      grantry.clock.advance(seconds * 1000);
      tokens = (await web.refresh(tokens.refresh_token)).body;
    }
    grantry.clock.advance(599_000);
    expect(await api.isActive(tokens.access_token)).toBe(true);
    grantry.setClients(clients);
  });

  it('is never issued for client_credentials', async () => {
    const { status, body } = await web.post('/token', { grant_type: 'client_credentials' });
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('refresh_token');
  });
});

describe('the scope of a refresh', () => {
  it.each([
    ['a part', 'read', 'read'],
    ['another order', 'write read', 'write read'],
    ['duplicates', 'read read', 'read'],
    ['nothing', undefined, 'read write'],
  ])('may be %s of what was granted, and the family keeps all of it', async (_what, scope, granted) => {
    const first = await begin();
    const { status, body } = await web.refresh(first.refresh_token, { scope });
    expect(status).toBe(200);
    expect(body.scope).toBe(granted);
    expect((await web.refresh(body.refresh_token)).body.scope).toBe('read write');
  });

  it.each([
    ['wider', 'read write admin', 'scope_exceeded'],
    ['unknown', 'read other', 'scope_exceeded'],
    ['malformed', 'read,write"', 'scope_malformed'],
  ])('that is %s is invalid_scope and uses nothing up', async (_what, scope, reason) => {
    const first = await begin();
    const answer = await web.refresh(first.refresh_token, { scope });
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_scope' }, reason });
    const { body } = await web.refresh(first.refresh_token);
    expect(body.scope).toBe('read write');
    const retried = await web.refresh(first.refresh_token, { scope: 'read write admin' });
    expect(retried).toMatchObject({ status: 400, body: { error: 'invalid_scope' } });
    expect(await web.refresh(body.refresh_token)).toMatchObject({ status: 200 });
  });

  it('never widens the audience', async () => {
    const first = await begin();
    const answer = await web.refresh(first.refresh_token, { resource: 'https://elsewhere.example/' });
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_target' } });
    expect(await web.refresh(first.refresh_token, { resource: AUDIENCE })).toMatchObject({ status: 200 });
  });

  it('loses at once what left the manifest of the client', async () => {
    const first = await begin();
    grantry.setClients(
      clients.map((client) => (client.clientId === WEB.clientId ? { ...client, scopes: ['read'] } : client)),
    );
    const { body } = await web.refresh(first.refresh_token);
    grantry.setClients(clients);
    expect(body.scope).toBe('read');
  });
});

describe('a kill switch', () => {
  it('thrown between the check of the person and the rotation still counts', async () => {
    const first = await begin();
    const { grants } = grantry.stores;
    const rotate = vi.spyOn(grants, 'rotate').mockImplementationOnce(async (request) => {
      rotate.mockRestore();
      grantry.clock.advance(1);
      await grantry.stores.watermarks.raise({ kind: 'user', subject }, grantry.clock.now());
      return await grants.rotate(request);
    });
    expect(await web.refresh(first.refresh_token)).toMatchObject(invalidGrant('grant_before_watermark'));
    grantry.clock.advance(1);
  });

  it('is also the loss of the grant type: the refresh token is inactive and refused', async () => {
    const first = await begin();
    expect(await web.isActive(first.refresh_token)).toBe(true);
    const grantTypes = ['authorization_code', 'client_credentials'];
    grantry.setClients(
      clients.map((client) => (client.clientId === WEB.clientId ? { ...client, grantTypes } : client)),
    );
    const [active, refreshed] = [await web.isActive(first.refresh_token), await web.refresh(first.refresh_token)];
    grantry.setClients(clients);
    expect(active).toBe(false);
    expect(refreshed).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } });
  });
});

describe('a person who is disabled', () => {
  it('loses grants and tokens at the next use', async () => {
    const first = await begin();
    setDisabled(true);
    await grantry.usersRecorded();
    grantry.clock.advance(1);
    const answers = [
      await web.refresh(first.refresh_token),
      await web.redeem(await grantry.issueCode(WEB.clientId, { subject })),
    ];
    const active = await api.isActive(first.access_token);
    setDisabled(false);
    for (const answer of answers) expect(answer).toMatchObject(invalidGrant('subject_inactive'));
    expect(active).toBe(false);
  });
});
