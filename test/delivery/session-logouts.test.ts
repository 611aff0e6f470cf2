// The pending logouts of ended sessions are handled by any replica that finds them, once the store can be reached.

import { setImmediate } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { DeliveryOutcome } from '../../src/delivery/logout-delivery.ts';
import { SessionLogouts } from '../../src/delivery/session-logouts.ts';
import { memoryStores } from '../../src/memory/stores.ts';
import { StoreUnavailableError } from '../../src/oauth/ports/error.ts';
import type { PendingLogout } from '../../src/oauth/ports/logout-store.ts';
import type { Stores } from '../../src/oauth/ports/ports.ts';
import type { Client } from '../../src/oauth/registry/client.ts';
import { issued, SHARD, signedIn } from '../contracts/sample-grants.ts';
import { aClient } from '../oauth/a-client.ts';
import { until } from '../until.ts';

const log = pino({ level: 'silent' });

/** A session whose end makes the logouts of as many clients pending. */
async function ended(stores: Stores, clients: number) {
  const session = await signedIn(stores.sessions);
  const { sessionId, sid } = session;
  const grantIds: string[] = [];
  for (let client = 0; client < clients; client++) {
    const login = { sessionId, sid, offline: false, namespace: 'shop' };
    grantIds.push((await issued(stores.grants, { clientUid: `uid-${client}`, login })).grantId);
  }
  return { pending: await stores.sessions.end(session), grantIds };
}

async function areRevoked({ grants }: Stores, grantIds: readonly string[]): Promise<boolean> {
  const states = await Promise.all(grantIds.map((grantId) => grants.read(grantId)));
  return states.every((state) => state?.revoked === true);
}

const START = 1_800_000_000_000;

/** Stores and a clock that the test moves; the clients that are notified, and how each try ends. */
function aWorld(outcomeOf: (client: Client) => DeliveryOutcome | Promise<DeliveryOutcome> = () => 'delivered') {
  let now = START;
  const clock = { now: () => now };
  const stores = memoryStores({ clock });
  const tries: string[] = [];
  const givenUp: string[] = [];
  const clients = new Map<string, Client>();
  const delivery = {
    recipient: ({ clientUid }: PendingLogout) => clients.get(clientUid),
    async deliver(client: Client) {
      tries.push(client.uid);
      return await outcomeOf(client);
    },
    giveUp: ({ uid }: Client) => void givenUp.push(uid),
  };
  const replica = (different: Partial<Stores> = {}) =>
    new SessionLogouts({ stores: { ...stores, ...different }, delivery, clock, log });
  return {
    stores,
    tries,
    givenUp,
    replica,
    advance(milliseconds: number) {
      now += milliseconds;
    },
    /** Clients that have an address. */
    notify(...uids: readonly string[]) {
      for (const uid of uids) clients.set(uid, aClient({ uid, namespace: uid.startsWith('other') ? 'other' : 'shop' }));
    },
  };
}

describe('the pending logouts of an ended session', () => {
  it('left by a replica that is gone → the sweep of another one revokes its grants, and none is pending', async () => {
    const { stores, replica } = aWorld();
    const { grantIds } = await ended(stores, 40);
    await replica().sweep();
    expect(await areRevoked(stores, grantIds)).toBe(true);
    expect(await stores.logouts.list(SHARD)).toEqual([]);
  });

  it('whose grants cannot be revoked now → is pending, and handled by a later sweep', async () => {
    const { stores, replica } = aWorld();
    const { pending, grantIds } = await ended(stores, 2);
    const unavailable = {
      ...stores.grants,
      revoke: async () => {
        throw new StoreUnavailableError('grantRevoke');
      },
    };
    const cutOff = replica({ grants: unavailable });
    cutOff.enqueue(pending);
    await cutOff.sweep();
    expect(await stores.logouts.list(SHARD)).toHaveLength(2);
    await replica().sweep();
    expect(await areRevoked(stores, grantIds)).toBe(true);
  });

  it('however many → handled by the replica that ended it, without a sweep', async () => {
    const { stores, replica } = aWorld();
    const { pending, grantIds } = await ended(stores, 100);
    const logouts = replica();
    logouts.enqueue(pending);
    await until('no logout is pending', async () => (await stores.logouts.list(SHARD)).length === 0);
    expect(await areRevoked(stores, grantIds)).toBe(true);
    await logouts.stop();
  });

  it('given a replica that stops → what is under way is handled, and the rest left to another one', async () => {
    const { stores, replica } = aWorld();
    const { pending, grantIds } = await ended(stores, 20);
    const logouts = replica();
    logouts.enqueue(pending);
    await logouts.stop();
    expect(await stores.logouts.list(SHARD)).toHaveLength(4);
    expect(await areRevoked(stores, grantIds.slice(0, 16))).toBe(true);
    logouts.enqueue(pending);
    await logouts.sweep();
    expect(await stores.logouts.list(SHARD)).toHaveLength(4);
  });
});

describe('a client with an address for notices', () => {
  it('given several replicas that sweep at once → is notified once for each session', async () => {
    const world = aWorld();
    world.notify('uid-0');
    await ended(world.stores, 1);
    await ended(world.stores, 1);
    const replicas = Array.from({ length: 5 }, () => world.replica());
    await Promise.all(replicas.map((replica) => replica.sweep()));
    await Promise.all(replicas.map((replica) => replica.stop()));
    expect(world.tries).toEqual(['uid-0', 'uid-0']);
    expect(await world.stores.logouts.list(SHARD)).toEqual([]);
  });

  it('that refuses → is not notified again', async () => {
    const world = aWorld(() => 'refused');
    world.notify('uid-0');
    await ended(world.stores, 1);
    const replica = world.replica();
    await replica.sweep();
    await replica.stop();
    world.advance(7_200_000);
    await world.replica().sweep();
    expect([world.tries, world.givenUp]).toEqual([['uid-0'], []]);
  });

  it('that fails → is tried after 5 s, twice that, up to 10 min, for an hour; its grants end at once', async () => {
    const world = aWorld(() => 'failed');
    world.notify('uid-0');
    const { grantIds } = await ended(world.stores, 1);
    const triedAt: number[] = [];
    for (let second = 0; second <= 3700; second++) {
      const before = world.tries.length;
      const replica = world.replica();
      if (second === 0 || (await world.stores.logouts.list(SHARD)).length > 0) {
        await replica.sweep();
        await replica.stop();
      }
      if (second === 0) expect(await areRevoked(world.stores, grantIds)).toBe(true);
      if (world.tries.length > before) triedAt.push(second);
      world.advance(1000);
    }
    expect(triedAt).toEqual([0, 5, 15, 35, 75, 155, 315, 635, 1235, 1835, 2435, 3035]);
    expect(world.givenUp).toEqual(['uid-0']);
  });

  it('that fails for an hour → all notices of that time are given up then, also those that waited', async () => {
    const world = aWorld(() => 'failed');
    world.notify('uid-0');
    for (let session = 0; session < 30; session++) await ended(world.stores, 1);
    const replica = world.replica();
    for (let second = 0; second <= 3720; second += 120) {
      await replica.sweep();
      // No try waits for anything but promises.
      await setImmediate();
      world.advance(120_000);
    }
    expect(world.givenUp).toHaveLength(30);
    expect(await world.stores.logouts.list(SHARD)).toEqual([]);
    await replica.stop();
  });

  it('that fails → its other notices wait too, and those of another client do not', async () => {
    const world = aWorld(({ uid }) => (uid === 'uid-0' ? 'failed' : 'delivered'));
    world.notify('uid-0', 'uid-1');
    await ended(world.stores, 2);
    await ended(world.stores, 2);
    const replica = world.replica();
    for (let sweeps = 0; sweeps < 3; sweeps++) await replica.sweep();
    await replica.stop();
    expect(world.tries.filter((uid) => uid === 'uid-1')).toHaveLength(2);
    expect(world.tries.filter((uid) => uid === 'uid-0').length).toBeLessThanOrEqual(2);
    world.advance(4999);
    const before = world.tries.length;
    await replica.sweep();
    expect(world.tries).toHaveLength(before);
  });

  it('given 200 of one namespace that never answer → two tries run, and a client of another one is notified', async () => {
    const never = Promise.withResolvers<DeliveryOutcome>();
    const world = aWorld(({ namespace }) => (namespace === 'shop' ? never.promise : 'delivered'));
    const uids = Array.from({ length: 50 }, (_, index) => `uid-${index}`);
    world.notify(...uids, 'other');
    for (let session = 0; session < 4; session++) await ended(world.stores, 50);
    const replica = world.replica();
    for (let sweeps = 0; sweeps < 3; sweeps++) await replica.sweep();
    const { sessionId, sid, ...session } = await signedIn(world.stores.sessions);
    await issued(world.stores.grants, {
      clientUid: 'other',
      login: { sessionId, sid, offline: false, namespace: 'shop' },
    });
    replica.enqueue(await world.stores.sessions.end({ ...session, sessionId, sid }));
    await until('the other client is notified', () => world.tries.includes('other'));
    expect(world.tries).toHaveLength(3);
    never.resolve('delivered');
    await replica.stop();
  });
});
