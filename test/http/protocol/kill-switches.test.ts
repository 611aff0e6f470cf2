import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { startGrantry, type TestClient } from '../../grantry.ts';
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
/** What happens right after the next action of a name, before its answer arrives. */
let afterwards: { readonly action: string; readonly happens: () => void } | undefined;
function breakable(stores: Stores): Stores {
  const entries = Object.entries(stores).map(([name, store]) => [
    name,
    new Proxy(store, {
      get(target, method) {
        const action: unknown = Reflect.get(target, method);
        if (typeof action !== 'function') return action;
        return async (...given: unknown[]) => {
          if (broken === name) throw new StoreUnavailableError(`${name}.${String(method)}`);
          const answer: unknown = await action.apply(target, given);
          if (afterwards?.action === method) afterwards.happens();
          return answer;
        };
      },
    }),
  ]);
  return Object.fromEntries(entries) as unknown as Stores;
}

const { owners, subject, setDisabled } = await aDirectory();
const grantry = await startGrantry({ owners, clients, wrapStores: breakable });
const web = new TokenCalls(grantry);
const opaque = web.as(OPAQUE);
const api = web.as(API);

/** Acts while the clients of the server are these. */
async function withClients<T>(changed: readonly TestClient[], act: () => Promise<T>): Promise<T> {
  grantry.setClients(changed);
  try {
    return await act();
  } finally {
    grantry.setClients(clients);
  }
}

/** Acts while a store fails. */
async function without<T>(store: keyof Stores, act: () => Promise<T>): Promise<T> {
  broken = store;
  try {
    return await act();
  } finally {
    broken = undefined;
  }
}

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

  it('is revoked by each kill switch and by each set of them, and active without any', async () => {
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

  it('is revoked when its consent is withdrawn', async () => {
    grantry.clock.advance(1);
    const issued = await begin(calls, clientId);
    await grantry.stores.watermarks.raise({ kind: 'consent', clientUid, subject }, grantry.clock.now());
    expect(await api.isActive(issued.access_token)).toBe(false);
    expect(await calls.refresh(issued.refresh_token)).toMatchObject({ status: 400, reason: 'grant_before_watermark' });
  });

  it('is revoked by revokeTokensBefore in its client’s manifest', async () => {
    grantry.clock.advance(1);
    const issued = await begin(calls, clientId);
    const revokeTokensBefore = grantry.clock.now();
    await withClients(
      clients.map((client) => ({ ...client, revokeTokensBefore })),
      async () => {
        expect(await api.isActive(issued.access_token)).toBe(false);
        grantry.clock.advance(1);
        const refreshed = await calls.refresh(issued.refresh_token);
        expect(refreshed).toMatchObject({ status: 400, reason: 'grant_before_watermark' });
      },
    );
  });

  it('is revoked when its client is gone, also when one of the same id is made again', async () => {
    grantry.clock.advance(1);
    const issued = await begin(calls, clientId);
    const others = clients.filter((client) => client.clientId !== clientId);
    expect(await withClients(others, () => api.isActive(issued.access_token))).toBe(false);
    const uid = 'uid-of-its-successor';
    const successors = clients.map((client) => (client.clientId === clientId ? { ...client, uid } : client));
    await withClients(successors, async () => {
      expect(await api.isActive(issued.access_token)).toBe(false);
      expect(await calls.refresh(issued.refresh_token)).toMatchObject({
        status: 400,
        body: { error: 'invalid_grant' },
        reason: 'refresh_token_mismatch',
      });
    });
  });

  it('is inactive the second it expires', async () => {
    const issued = await begin(calls, clientId);
    grantry.clock.advance(599_000);
    expect(await api.isActive(issued.access_token)).toBe(true);
    grantry.clock.advance(1000);
    expect(await api.isActive(issued.access_token)).toBe(false);
  });
});

describe.each([
  ['JWT', web, WEB.clientId],
  ['opaque', opaque, OPAQUE.clientId],
])('a %s access token of client_credentials', (_format, calls, clientId) => {
  const machineToken = async () => {
    const { status, body } = await calls.post('/token', { grant_type: 'client_credentials' });
    expect(status).toBe(200);
    return body.access_token;
  };

  const clientUid = `uid-of-${clientId}`;
  const kills: readonly [string, (time: number, act: () => Promise<void>) => Promise<void>][] = [
    ['the global watermark', (time, act) => grantry.stores.watermarks.raise({ kind: 'global' }, time).then(act)],
    [
      'the watermark of the client',
      (time, act) => grantry.stores.watermarks.raise({ kind: 'client', clientUid }, time).then(act),
    ],
    [
      'revokeTokensBefore',
      (revokeTokensBefore, act) =>
        withClients(
          clients.map((client) => ({ ...client, revokeTokensBefore })),
          act,
        ),
    ],
  ];

  // A token says in which second it was issued, and not when in that second.
  it.each(kills)('issued in the second of %s → revoked, and one of the next second active', async (_kill, kill) => {
    for (const millisecond of [0, 500]) {
      grantry.clock.advance(1000 + millisecond - (grantry.clock.now() % 1000));
      const token = await machineToken();
      await kill(grantry.clock.now(), async () => {
        expect(await api.isActive(token)).toBe(false);
        grantry.clock.advance(1000 - millisecond);
        expect(await api.isActive(await machineToken())).toBe(true);
      });
    }
  });

  it('dies by the client’s watermark and by revocation', async () => {
    for (const kill of ['watermark', 'revocation'] as const) {
      grantry.clock.advance(1000);
      const token = await machineToken();
      expect(await api.isActive(token)).toBe(true);
      if (kill === 'revocation') expect(await calls.revoke(token)).toMatchObject({ status: 200 });
      else await grantry.stores.watermarks.raise({ kind: 'client', clientUid }, grantry.clock.now());
      expect(await api.isActive(token)).toBe(false);
    }
  });
});

describe('an authorization code', () => {
  const ended = { status: 400, body: { error: 'invalid_grant' }, reason: 'grant_before_watermark' };
  const clientUid = `uid-of-${WEB.clientId}`;

  it.each([
    ['the global watermark', { kind: 'global' }],
    ['the watermark of its client', { kind: 'client', clientUid }],
    ['the watermark of its person', { kind: 'user', subject }],
    ['a withdrawn consent', { kind: 'consent', clientUid, subject }],
  ] as const)('issued at the time of %s → invalid_grant, and one issued later is redeemed', async (_kill, target) => {
    grantry.clock.advance(1);
    const code = await grantry.issueCode(WEB.clientId, { subject });
    await grantry.stores.watermarks.raise(target, grantry.clock.now());
    expect(await web.redeem(code)).toMatchObject(ended);
    grantry.clock.advance(1);
    const later = await grantry.issueCode(WEB.clientId, { subject });
    expect(await web.redeem(later)).toMatchObject({ status: 200 });
  });

  it('issued at or before revokeTokensBefore → invalid_grant, and one issued later is redeemed', async () => {
    const codes: string[] = [];
    for (let round = 0; round < 3; round++) {
      grantry.clock.advance(1);
      codes.push(await grantry.issueCode(WEB.clientId, { subject }));
    }
    const revokeTokensBefore = grantry.clock.now() - 1;
    const changed = clients.map((client) => ({ ...client, revokeTokensBefore }));
    const answers = await withClients(changed, () => Promise.all(codes.map((code) => web.redeem(code))));
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 200]);
    expect(answers[1]?.body).toEqual({ error: 'invalid_grant', error_description: expect.any(String) });
  });
});

describe('a person who is disabled while a request runs', () => {
  const inactive = { status: 400, body: { error: 'invalid_grant' }, reason: 'subject_inactive' };

  /** Disables the person right after an action of the store. */
  async function disabledAfter<T>(action: keyof Stores['grants'], act: () => Promise<T>): Promise<T> {
    afterwards = { action, happens: () => setDisabled(true) };
    try {
      return await act();
    } finally {
      afterwards = undefined;
      setDisabled(false);
    }
  }

  it('between the rotation and the answer of a refresh → gets no token', async () => {
    grantry.clock.advance(1);
    const { refresh_token } = await begin(web, WEB.clientId);
    expect(await disabledAfter('rotate', () => web.refresh(refresh_token))).toMatchObject(inactive);
  });

  it('between the redemption of a code and the answer → gets no token', async () => {
    grantry.clock.advance(1);
    const code = await grantry.issueCode(WEB.clientId, { subject });
    expect(await disabledAfter('redeem', () => web.redeem(code))).toMatchObject(inactive);
  });
});

describe('a client made again under the id of another', () => {
  it('neither inherits, sees nor revokes the machine tokens of the one before', async () => {
    for (const calls of [web, opaque]) {
      grantry.clock.advance(1000);
      const { body } = await calls.post('/token', { grant_type: 'client_credentials' });
      const successors = clients.map((client) => ({ ...client, uid: `second-uid-of-${client.clientId}` }));
      await withClients(successors, async () => {
        expect(await calls.isActive(body.access_token)).toBe(false);
        expect(await api.isActive(body.access_token)).toBe(false);
        const revoked = await calls.revoke(body.access_token);
        expect(revoked).toMatchObject({ status: 400, reason: 'token_of_another_client' });
      });
      expect(await api.isActive(body.access_token)).toBe(true);
    }
  });
});

describe('a client that is gone', () => {
  it('can do nothing at any endpoint', async () => {
    grantry.clock.advance(1000);
    const issued = await begin(web, WEB.clientId);
    const others = clients.filter(({ clientId }) => clientId !== WEB.clientId);
    const answers = await withClients(others, async () => [
      await web.refresh(issued.refresh_token),
      await web.post('/token', { grant_type: 'client_credentials' }),
      await web.revoke(issued.refresh_token),
      await web.introspect(issued.access_token),
    ]);
    for (const answer of answers) expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
    const page = await fetch(grantry.url(`/authorize?client_id=${WEB.clientId}x&redirect_uri=https://app.example/cb`));
    expect(page.status).toBe(400);
  });
});

describe('a store that does not answer', () => {
  const unavailable = { status: 503, body: { error: 'temporarily_unavailable' }, reason: 'store_unavailable' };

  it.each(['grants', 'revokedTokens'] as const)(
    'never lets %s be guessed: introspection is 503, not active and not inactive',
    async (store) => {
      grantry.clock.advance(1000);
      const body = await begin(web, WEB.clientId);
      const answer = await without(store, () => api.introspect(body.access_token));
      expect(answer).toMatchObject(unavailable);
    },
  );

  it('never lets watermarks be guessed: introspection of a token without a grant, and of a refresh token, is 503', async () => {
    grantry.clock.advance(1000);
    const { refresh_token } = await begin(web, WEB.clientId);
    const { body } = await web.post('/token', { grant_type: 'client_credentials' });
    const answers = await without('watermarks', async () => [
      await web.introspect(body.access_token),
      await web.introspect(refresh_token),
    ]);
    for (const answer of answers) expect(answer).toMatchObject(unavailable);
  });

  it('makes refresh and redemption 503 and uses nothing up', async () => {
    grantry.clock.advance(1000);
    const body = await begin(web, WEB.clientId);
    const code = await grantry.issueCode(WEB.clientId, { subject });
    const answers = await without('grants', async () => [
      await web.refresh(body.refresh_token),
      await web.redeem(code),
    ]);
    for (const answer of answers) expect(answer).toMatchObject(unavailable);
    expect(await web.refresh(body.refresh_token)).toMatchObject({ status: 200 });
    expect(await web.redeem(code)).toMatchObject({ status: 200 });
  });

  it('makes a revocation 503, never a false 200', async () => {
    grantry.clock.advance(1000);
    const body = await begin(web, WEB.clientId);
    const refused = await without('grants', () => web.revoke(body.refresh_token));
    const refusedToo = await without('revokedTokens', () => web.revoke(body.access_token));
    expect([refused, refusedToo]).toMatchObject([unavailable, unavailable]);
    expect(await api.isActive(body.access_token)).toBe(true);
  });

  it('leaves client_credentials with JWTs alone', async () => {
    for (const store of ['grants', 'watermarks', 'revokedTokens', 'accessTokens', 'replays'] as const) {
      const answer = await without(store, () => web.post('/token', { grant_type: 'client_credentials' }));
      expect(answer.status).toBe(200);
    }
  });

  it('refuses client_credentials with opaque tokens', async () => {
    const answer = await without('accessTokens', () => opaque.post('/token', { grant_type: 'client_credentials' }));
    expect(answer).toMatchObject(unavailable);
  });
});
