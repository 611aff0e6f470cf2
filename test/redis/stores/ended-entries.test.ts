// What has ended in a key that holds several goes with the next write to it: where something in it always lives, the key
// itself never expires, and would grow without end.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { digest, MINUTE, sampleGrant, signedIn, uniqueId } from '../../contracts/sample-grants.ts';
import { type RedisWorld, redisWorlds } from '../setup/redis-world.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const HOUR = 60 * MINUTE;
const SUBJECT = 'usr_alice';
const SESSION = 'session of alice';

/** A key that holds several of something. */
interface Holder {
  key(keys: RedisKeys): string;
  /** Writes one more, that lives so long. @returns what it is called */
  add(stores: Stores, lifetime: number): Promise<string>;
  /** How to count what is there. */
  readonly count: 'HLEN' | 'ZCARD';
}

const HOLDERS: Readonly<Record<string, Holder>> = {
  'the sessions of a person': {
    key: (keys) => keys.sessionsOfUser(SUBJECT),
    async add({ sessions }, lifetime) {
      return (await signedIn(sessions, { subject: SUBJECT, idleLifetime: lifetime, absoluteLifetime: lifetime }))
        .sessionId;
    },
    count: 'ZCARD',
  },
  'the consents of a person': {
    key: (keys) => keys.consentsOfUser(SUBJECT),
    async add({ consents }, lifetime) {
      const clientUid = uniqueId();
      await consents.give(SUBJECT, clientUid, new Map([['https://api.example', ['read']]]), lifetime);
      return clientUid;
    },
    count: 'HLEN',
  },
  'the interactions of a session': {
    key: (keys) => keys.interactionsOfSession(SESSION),
    async add({ interactions }, lifetime) {
      const interactionId = digest(uniqueId());
      const { clientUid, clientId, redirectUri, scope, audiences, codeChallenge = '' } = sampleGrant();
      const request = { clientUid, clientId, redirectUri, scope, audiences, codeChallenge, state: undefined };
      const who = { interactionId, sessionId: SESSION, subject: SUBJECT, authTime: 1_700_000_000_000 };
      await interactions.create({ ...who, request }, lifetime);
      return interactionId;
    },
    count: 'HLEN',
  },
};

describeRedis('what has ended', () => {
  let server: RedisServer;
  let world: RedisWorld;
  const worlds = redisWorlds(() => server);
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    world = await worlds.makeStores();
  });
  afterEach(() => world.dispose());
  afterAll(async () => {
    await worlds.close();
    await server.stop();
  });

  it.each(Object.entries(HOLDERS))('goes with the next write, and nothing else: of %s', async (_name, holder) => {
    const held = () => server.command(holder.count, holder.key(world.keys));
    for (const lifetime of [HOUR, HOUR, HOUR, 3 * HOUR]) await holder.add(world.stores, lifetime);
    expect(await held()).toBe(4);
    world.advance(HOUR);
    expect(await held()).toBe(4);
    await holder.add(world.stores, 3 * HOUR);
    expect(await held()).toBe(2);
  });

  it('goes before its time where it was used up: an interaction that was taken', async () => {
    const { add, key } = HOLDERS['the interactions of a session'] as Holder;
    const { interactions } = world.stores;
    const taken = await add(world.stores, HOUR);
    await add(world.stores, HOUR);
    await interactions.decide(taken, SESSION, 'allow');
    expect(await interactions.take(taken, SESSION, { attemptId: uniqueId(), after: [] })).toBeDefined();
    await add(world.stores, HOUR);
    expect(await world.fieldsOf(key(world.keys))).toBe(2);
  });
});
