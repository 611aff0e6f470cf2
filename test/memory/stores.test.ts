// What the memory stores do at their limits: they refuse, they never drop active state, and a refused request consumed nothing.

import { describe, expect, it } from 'vitest';
import { memoryStores } from '../../src/memory/stores.ts';
import { StoreUnavailableError } from '../../src/oauth/ports/error.ts';
import type { Stores } from '../../src/oauth/ports/ports.ts';
import { assertedRecord } from '../contracts/person-store.ts';
import {
  DAY,
  digest,
  issued,
  MINUTE,
  redeemed,
  redeemRequest,
  rotateRequest,
  sampleGrant,
  sampleSession,
} from '../contracts/sample-grants.ts';

const LIMIT = 50;

function worldWithLimit(store: keyof Stores) {
  let now = 1_800_000_000_000;
  const stores = memoryStores({ clock: { now: () => now }, limits: { [store]: LIMIT } });
  return {
    stores,
    now: () => now,
    advance(milliseconds: number) {
      now += milliseconds;
    },
  };
}

type World = ReturnType<typeof worldWithLimit>;

/** How each store is made to remember one more thing for a minute, by a name. */
const FILLERS: Readonly<Record<keyof Stores, (world: World, name: string) => Promise<unknown>>> = {
  grants: ({ stores }, name) => stores.grants.issue(sampleGrant({ grantId: name }), digest(name), MINUTE, MINUTE),
  accessTokens: ({ stores, now }, name) =>
    stores.accessTokens.write({
      tokenId: name,
      issuedAtSeconds: now() / 1000,
      expiresAtSeconds: now() / 1000 + 60,
      clientUid: 'uid',
      clientId: 'id',
      subject: 'id',
      scope: ['read'],
      audience: 'https://api.example',
      grantId: undefined,
      authTime: undefined,
    }),
  revokedTokens: ({ stores, now }, name) => stores.revokedTokens.mark(name, now() / 1000 + 60),
  watermarks: ({ stores, now }, name) => stores.watermarks.raise({ kind: 'user', subject: name }, now()),
  users: ({ stores }, name) => stores.users.record(name, 'digest-of-a-hash'),
  persons: ({ stores }, name) => stores.persons.remember(assertedRecord({ subject: name }), MINUTE),
  sessions: ({ stores }, name) =>
    stores.sessions.create(
      sampleSession({ sessionId: name, idleLifetime: MINUTE, absoluteLifetime: MINUTE }),
      undefined,
    ),
  logouts: async ({ stores }, name) => {
    const session = await stores.sessions.create(sampleSession({ absoluteLifetime: MINUTE }), undefined);
    if (session === 'outdated') throw new Error('another credential is recorded');
    const login = { sessionId: session.sessionId, sid: session.sid, offline: false, namespace: 'shop' };
    await stores.grants.issue(sampleGrant({ grantId: name, login }), digest(name), MINUTE, MINUTE);
  },
  interactions: ({ stores, now }, name) =>
    stores.interactions.create(
      {
        interactionId: name,
        sessionId: `session of ${name}`,
        subject: 'usr_alice',
        authTime: now(),
        request: {
          clientUid: 'uid',
          clientId: 'id',
          redirectUri: 'https://shop.example/cb',
          scope: ['read'],
          audiences: ['https://api.example'],
          codeChallenge: digest('verifier'),
          state: undefined,
        },
      },
      MINUTE,
    ),
  uses: ({ stores }, name) => stores.uses.note('usr_alice', name),
  consents: ({ stores }, name) =>
    stores.consents.give('usr_alice', name, new Map([['https://api.example', ['read']]]), MINUTE),
  replays: ({ stores, now }, name) => stores.replays.claim('assertion', name, now() + MINUTE),
  rateLimits: ({ stores }, name) => stores.rateLimits.hit(name, 5, MINUTE),
};

async function fill(world: World, store: keyof Stores, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await FILLERS[store](world, `${store} ${index}`);
}

describe('a full memory store', () => {
  for (const store of Object.keys(FILLERS) as (keyof Stores)[]) {
    if (store === 'rateLimits' || store === 'uses') continue;
    it(`refuses more: ${store}`, async () => {
      const world = worldWithLimit(store);
      await fill(world, store, LIMIT);
      await expect(FILLERS[store](world, 'one more')).rejects.toThrow(StoreUnavailableError);
    });

    if (store === 'watermarks') continue;
    it(`has room again once time has passed: ${store}`, async () => {
      const world = worldWithLimit(store);
      await fill(world, store, LIMIT);
      world.advance(MINUTE);
      await fill(world, store, LIMIT);
      await expect(FILLERS[store](world, 'one more')).rejects.toThrow(StoreUnavailableError);
    });
  }

  it('of watermarks keeps every one for good: a lost watermark would revive ended grants', async () => {
    const world = worldWithLimit('watermarks');
    await fill(world, 'watermarks', LIMIT);
    const raisedAt = world.now();
    world.advance(10_000 * DAY);
    await expect(FILLERS.watermarks(world, 'one more')).rejects.toThrow(StoreUnavailableError);
    expect(await world.stores.watermarks.read('uid', 'watermarks 0')).toBe(raisedAt);
  });

  it('of attempt counters forgets the oldest window: a flood of addresses locks out no other address', async () => {
    const world = worldWithLimit('rateLimits');
    const { rateLimits } = world.stores;
    for (let index = 0; index < LIMIT + 1; index++) expect(await rateLimits.hit(`address ${index}`, 1, MINUTE)).toBe(0);
    expect(await rateLimits.hit(`address ${LIMIT}`, 1, MINUTE)).toBe(60);
    expect(await rateLimits.hit('address 0', 1, MINUTE)).toBe(0);
  });

  it('of uses forgets the oldest one: the page that shows them is no reason to refuse a token', async () => {
    const world = worldWithLimit('uses');
    await fill(world, 'uses', LIMIT + 1);
    const uses = await world.stores.uses.list('usr_alice');
    expect(uses.map(({ clientUid }) => clientUid)).toEqual(
      Array.from({ length: LIMIT }, (_, index) => `uses ${index + 1}`),
    );
  });

  it('of grants records no use with a code that it refuses', async () => {
    const world = worldWithLimit('grants');
    await fill(world, 'grants', LIMIT);
    const { grants, uses } = world.stores;
    const refused = sampleGrant({ clientUid: 'uid-of-mail' });
    await expect(grants.issue(refused, digest('secret'), MINUTE, MINUTE)).rejects.toThrow(StoreUnavailableError);
    expect((await uses.list(refused.subject)).map(({ clientUid }) => clientUid)).toEqual(['uid-of-shop']);
  });

  it('of attempt counters takes no room for what was refunded', async () => {
    const world = worldWithLimit('rateLimits');
    const { rateLimits } = world.stores;
    expect(await rateLimits.hit('kept', 1, MINUTE)).toBe(0);
    for (let index = 0; index < 10 * LIMIT; index++) {
      await rateLimits.hit(`good ${index}`, 1, MINUTE);
      await rateLimits.refund(`good ${index}`);
    }
    expect(await rateLimits.hit('kept', 1, MINUTE)).toBe(60);
  });

  it('of replay marks still knows every mark: flooding flushes none', async () => {
    const world = worldWithLimit('replays');
    await fill(world, 'replays', LIMIT);
    for (let flood = 0; flood < 1000; flood++) {
      await expect(FILLERS.replays(world, `flood ${flood}`)).rejects.toThrow(StoreUnavailableError);
    }
    for (let index = 0; index < LIMIT; index++) {
      expect(await FILLERS.replays(world, `replays ${index}`)).toBe('seen');
    }
  });

  it('of access tokens refuses a redemption, which can be tried again: nothing was consumed', async () => {
    const world = worldWithLimit('accessTokens');
    const { grants, accessTokens } = world.stores;
    const grant = await issued(grants);
    await fill(world, 'accessTokens', LIMIT);
    const seconds = world.now() / 1000;
    const accessToken = { tokenId: 'of the grant', issuedAtSeconds: seconds, expiresAtSeconds: seconds + 60 };
    const request = redeemRequest(grant, { accessToken });
    await expect(grants.redeem(request)).rejects.toThrow(StoreUnavailableError);
    await accessTokens.revoke('accessTokens 0');
    expect(await grants.redeem(request)).toMatchObject({ outcome: 'redeemed' });
  });

  it('of access tokens refuses a refresh, which can be tried again: nothing was consumed', async () => {
    const world = worldWithLimit('accessTokens');
    const { grants, accessTokens } = world.stores;
    const grant = await redeemed(grants);
    await fill(world, 'accessTokens', LIMIT);
    const seconds = world.now() / 1000;
    const accessToken = { tokenId: 'of the grant', issuedAtSeconds: seconds, expiresAtSeconds: seconds + 60 };
    const rotate = () => grants.rotate(rotateRequest(grant, 0, { accessToken, reuseGrace: 0 }));
    await expect(rotate()).rejects.toThrow(StoreUnavailableError);
    await accessTokens.revoke('accessTokens 0');
    expect(await rotate()).toMatchObject({ outcome: 'rotated', generation: 1 });
  });

  it('of grants still redeems, rotates and revokes those it holds', async () => {
    const world = worldWithLimit('grants');
    const { grants } = world.stores;
    const grant = await issued(grants);
    await fill(world, 'grants', LIMIT - 1);
    expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
    expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
    await grants.revoke(grant.grantId);
    expect(await grants.read(grant.grantId)).toMatchObject({ revoked: true });
  });
});
