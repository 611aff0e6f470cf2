import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { startGrantry } from '../../grantry.ts';
import { API, aDirectory, TokenCalls, WEB } from './token-calls.ts';

const AUDIENCE = 'https://api.shop.example/';
const OPAQUE = { clientId: 'shop.opaque', secret: 'the-secret-of-the-opaque-application' };
const tokens = {
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 1000,
  refreshTokenLifetimeSeconds: 3000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;
const clients = [
  { ...WEB, audiences: [AUDIENCE] },
  { ...OPAQUE, audiences: [AUDIENCE], tokens: { ...tokens, accessTokenFormat: 'opaque' as const } },
  { ...API, resourceServerAudiences: [AUDIENCE] },
];

/** Stores of which one can be made to fail. */
let broken: keyof Stores | undefined;
function breakable(stores: Stores): Stores {
  const entries = Object.entries(stores).map(([name, store]) => [
    name,
    new Proxy(store, {
      get(target, method) {
        const action: unknown = Reflect.get(target, method);
        if (typeof action !== 'function') return action;
        return (...given: unknown[]) => {
          if (broken === name) return Promise.reject(new StoreUnavailableError(`${name}.${String(method)}`));
          return action.apply(target, given);
        };
      },
    }),
  ]);
  return Object.fromEntries(entries) as unknown as Stores;
}

const { owners, subject } = await aDirectory();
const grantry = await startGrantry({ owners, clients, wrapStores: breakable });
const web = new TokenCalls(grantry);
const opaque = web.as(OPAQUE);
const api = web.as(API);

async function begin(calls: TokenCalls, clientId: string) {
  const { status, body } = await calls.redeem(await grantry.issueCode(clientId, { subject }));
  expect(status).toBe(200);
  return body;
}

describe.each([
  ['JWT', web, WEB.clientId],
  ['opaque', opaque, OPAQUE.clientId],
])('a %s access token of a person', (_format, calls, clientId) => {
  const clientUid = `uid-of-${clientId}`;
  const switches: readonly [string, (issued: Record<string, unknown>) => Promise<unknown>][] = [
    ['global watermark', () => grantry.stores.watermarks.raise({ kind: 'global' }, grantry.clock.now())],
    ['client watermark', () => grantry.stores.watermarks.raise({ kind: 'client', clientUid }, grantry.clock.now())],
    ['user watermark', () => grantry.stores.watermarks.raise({ kind: 'user', subject }, grantry.clock.now())],
    ['grant', (issued) => calls.revoke(issued.refresh_token)],
    ['token', (issued) => calls.revoke(issued.access_token)],
  ];

  it('is dead by each kill switch and by each set of them, and by none of them alive', async () => {
    for (let set = 0; set < 32; set++) {
      // Watermarks only rise: a later instant for each round.
      grantry.clock.advance(1);
      const issued = await begin(calls, clientId);
      const thrown = switches.filter((_, index) => (set >> index) & 1);
      for (const [, pull] of thrown) await pull(issued);
      const names = thrown.map(([name]) => name).join(', ');
      expect(await api.isActive(issued.access_token), names).toBe(set === 0);
      const refreshed = await calls.refresh(issued.refresh_token);
      const onlyToken = thrown.every(([name]) => name === 'token');
      expect(refreshed.status, names).toBe(onlyToken ? 200 : 400);
    }
  });

  it('is dead when its consent is withdrawn', async () => {
    grantry.clock.advance(1);
    const issued = await begin(calls, clientId);
    await grantry.stores.watermarks.raise({ kind: 'consent', clientUid, subject }, grantry.clock.now());
    expect(await api.isActive(issued.access_token)).toBe(false);
    expect(await calls.refresh(issued.refresh_token)).toMatchObject({ status: 400, reason: 'grant_before_watermark' });
  });

  it('is dead by revokeTokensBefore in its client’s manifest', async () => {
    grantry.clock.advance(1);
    const issued = await begin(calls, clientId);
    const revokeTokensBefore = grantry.clock.now();
    grantry.setClients(clients.map((client) => ({ ...client, revokeTokensBefore })));
    expect(await api.isActive(issued.access_token)).toBe(false);
    grantry.clock.advance(1);
    expect(await calls.refresh(issued.refresh_token)).toMatchObject({ status: 400, reason: 'grant_before_watermark' });
    grantry.setClients(clients);
  });

  it('is dead when its client is gone, also when one of the same id is made again', async () => {
    grantry.clock.advance(1);
    const issued = await begin(calls, clientId);
    grantry.setClients(clients.filter((client) => client.clientId !== clientId));
    expect(await api.isActive(issued.access_token)).toBe(false);
    const uid = 'uid-of-its-successor';
    grantry.setClients(clients.map((client) => (client.clientId === clientId ? { ...client, uid } : client)));
    expect(await api.isActive(issued.access_token)).toBe(false);
    const refreshed = await calls.refresh(issued.refresh_token);
    expect(refreshed).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
      reason: 'refresh_token_mismatch',
    });
    grantry.setClients(clients);
  });

  it('is dead the second it expires', async () => {
    const issued = await begin(calls, clientId);
    grantry.clock.advance(599_000);
    expect(await api.isActive(issued.access_token)).toBe(true);
    grantry.clock.advance(1000);
    expect(await api.isActive(issued.access_token)).toBe(false);
  });
});

describe.each([
  ['JWT', web],
  ['opaque', opaque],
])('a %s access token of client_credentials', (_format, calls) => {
  it('dies by the client’s watermark and by revocation', async () => {
    for (const kill of ['watermark', 'revocation'] as const) {
      grantry.clock.advance(1000);
      const { body } = await calls.post('/token', { grant_type: 'client_credentials' });
      expect(await api.isActive(body.access_token)).toBe(true);
      if (kill === 'revocation') expect(await calls.revoke(body.access_token)).toMatchObject({ status: 200 });
      else await grantry.stores.watermarks.raise({ kind: 'global' }, grantry.clock.now());
      expect(await api.isActive(body.access_token)).toBe(false);
    }
  });
});

describe('a client made again under the id of another', () => {
  it('neither inherits, sees nor revokes the machine tokens of the one before', async () => {
    for (const calls of [web, opaque]) {
      grantry.clock.advance(1000);
      const { body } = await calls.post('/token', { grant_type: 'client_credentials' });
      grantry.setClients(clients.map((client) => ({ ...client, uid: `second-uid-of-${client.clientId}` })));
      const [seen, seenByApi] = [await calls.isActive(body.access_token), await api.isActive(body.access_token)];
      const revoked = await calls.revoke(body.access_token);
      grantry.setClients(clients);
      expect([seen, seenByApi]).toEqual([false, false]);
      expect(revoked).toMatchObject({ status: 400, reason: 'token_of_another_client' });
      expect(await api.isActive(body.access_token)).toBe(true);
    }
  });
});

describe('a client that is gone', () => {
  it('can do nothing at any endpoint', async () => {
    grantry.clock.advance(1000);
    const issued = await begin(web, WEB.clientId);
    grantry.setClients(clients.filter(({ clientId }) => clientId !== WEB.clientId));
    const answers = [
      await web.refresh(issued.refresh_token),
      await web.post('/token', { grant_type: 'client_credentials' }),
      await web.revoke(issued.refresh_token),
      await web.introspect(issued.access_token),
    ];
    grantry.setClients(clients);
    for (const answer of answers) expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
    const page = await fetch(grantry.url(`/authorize?client_id=${WEB.clientId}x&redirect_uri=https://app.example/cb`));
    expect(page.status).toBe(400);
  });
});

describe('a store that does not answer', () => {
  const unavailable = { status: 503, body: { error: 'temporarily_unavailable' }, reason: 'store_unavailable' };

  it.each(['grants', 'watermarks', 'revokedTokens'] as const)(
    'never lets %s be guessed: introspection is 503, not active and not inactive',
    async (store) => {
      grantry.clock.advance(1000);
      const body = await begin(web, WEB.clientId);
      broken = store;
      const answer = await api.introspect(body.access_token);
      broken = undefined;
      expect(answer).toMatchObject(unavailable);
    },
  );

  it('makes refresh and redemption 503 and uses nothing up', async () => {
    grantry.clock.advance(1000);
    const body = await begin(web, WEB.clientId);
    const code = await grantry.issueCode(WEB.clientId, { subject });
    broken = 'grants';
    const answers = [await web.refresh(body.refresh_token), await web.redeem(code)];
    broken = undefined;
    for (const answer of answers) expect(answer).toMatchObject(unavailable);
    expect(await web.refresh(body.refresh_token)).toMatchObject({ status: 200 });
    expect(await web.redeem(code)).toMatchObject({ status: 200 });
  });

  it('makes a revocation 503, never a false 200', async () => {
    grantry.clock.advance(1000);
    const body = await begin(web, WEB.clientId);
    broken = 'grants';
    const refused = await web.revoke(body.refresh_token);
    broken = 'revokedTokens';
    const refusedToo = await web.revoke(body.access_token);
    broken = undefined;
    expect([refused, refusedToo]).toMatchObject([unavailable, unavailable]);
    expect(await api.isActive(body.access_token)).toBe(true);
  });

  it('leaves client_credentials with JWTs alone', async () => {
    for (const store of ['grants', 'watermarks', 'revokedTokens', 'accessTokens', 'replays'] as const) {
      broken = store;
      const answer = await web.post('/token', { grant_type: 'client_credentials' });
      broken = undefined;
      expect(answer.status).toBe(200);
    }
  });

  it('refuses client_credentials with opaque tokens', async () => {
    broken = 'accessTokens';
    const answer = await opaque.post('/token', { grant_type: 'client_credentials' });
    broken = undefined;
    expect(answer).toMatchObject(unavailable);
  });
});
