// A session ends, and another server takes over that knows nothing of it: before a client was notified, and after. The replica
// of grantry that ended it remembers the end; any replica then processes the pending logouts.

import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import { SessionLogouts } from '../../../src/delivery/session-logouts.ts';
import type { PendingLogout } from '../../../src/oauth/ports/logout-store.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { replaced, rolesIn } from '../../chaos/replicated-set.ts';
import { redeemed, rotateRequest, signedIn } from '../../contracts/sample-grants.ts';
import { aClient } from '../../oauth/a-client.ts';
import { succeeds, until } from '../../until.ts';
import { connectTo } from '../setup/connect.ts';
import { losing } from '../setup/forgetful-redis.ts';
import { ownerOf, startCluster } from '../setup/redis-cluster.ts';
import { startReplicated } from '../setup/replicated-redis.ts';
import { inStep, isPrimary } from '../setup/replication.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');
const PATIENCE = 1000;

interface Ground {
  readonly url: string;
  /** Does something, and has a server take over that has nothing of it. */
  lose(work: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

/** Cuts these replicas off, does something, and kills their primary. */
async function unseen(primary: RedisServer, replicas: readonly RedisServer[], work: () => Promise<void>) {
  await inStep(primary, replicas);
  for (const replica of replicas) replica.pause();
  // What is in a stopped server's socket would still arrive.
  await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
  await work();
  await primary.kill();
  for (const replica of replicas) replica.resume();
}

const GROUNDS: Readonly<Record<string, () => Promise<Ground>>> = {
  async 'one Redis server'() {
    const server = await startRedis();
    const lose = async (work: () => Promise<void>) => {
      const connection = await connectTo(server);
      await losing({ server, connection }, work).finally(() => connection.close());
    };
    return { url: server.url, lose, stop: () => server.stop() };
  },
  async 'Redis under Sentinels'() {
    const redis = await startReplicated();
    const lose = async (work: () => Promise<void>) => {
      const { primary, replicas } = await rolesIn(redis);
      await unseen(primary, replicas, work);
      await replaced(redis, primary);
    };
    return { url: redis.url, lose, stop: () => redis.stop() };
  },
  async 'a Redis Cluster'() {
    const { url, primaries, replicas, stop } = await startCluster({ replicated: true });
    const lose = async (work: () => Promise<void>) => {
      const own = ownerOf(keys.sessionsOfUser('usr_alice'));
      const [primary, replica] = [primaries[own], replicas[own]];
      if (primary === undefined || replica === undefined) throw new Error('no server has the person');
      await unseen(primary, [replica], work);
      const others = [...primaries, ...replicas].filter((node) => node !== primary);
      await Promise.all(others.map((node) => node.command('CONFIG', 'SET', 'cluster-node-timeout', PATIENCE)));
      await until('its replica is promoted', () => isPrimary(replica), 30_000);
    };
    return { url, lose, stop };
  },
};

const stopped: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stopped.splice(0).reverse()) await stop();
});

/** A session with two families, of which one survives it. */
async function visit({ sessions, grants }: Stores) {
  const session = await signedIn(sessions);
  const { sessionId, sid } = session;
  const familyOf = (offline: boolean) => redeemed(grants, { login: { sessionId, sid, offline, namespace: 'shop' } });
  return { session, family: await familyOf(false), offline: await familyOf(true) };
}

/** Processes the pending logouts, as any replica of grantry does, and answers the sessions whose end was notified. */
async function processed(stores: Stores): Promise<readonly string[]> {
  const notified: string[] = [];
  const logouts = new SessionLogouts({
    stores,
    delivery: {
      recipient: () => aClient(),
      async deliver(_client, { sid }: PendingLogout) {
        notified.push(sid);
        return 'delivered';
      },
      giveUp() {},
    },
    clock: { now: () => Date.now() },
    log: pino({ level: 'silent' }),
  });
  await logouts.sweep();
  await until('no logout is pending', async () => {
    const pending = await Promise.all(SHARDS.map((shard) => stores.logouts.list(shard)));
    return pending.flat().length === 0;
  });
  await logouts.stop();
  return notified;
}

for (const [name, start] of Object.entries(GROUNDS)) {
  describeRedis(`an end of a session that ${name} has lost`, () => {
    it('before and after its notice → its client is notified, and no grant lives but by offline_access', {
      timeout: 60_000,
    }, async () => {
      const ground = await start();
      stopped.push(() => ground.stop());
      const connection = await connectTo(ground);
      stopped.push(() => connection.close());
      const stores = redisStores({ connection, keys });
      const { sessions, grants, logouts } = stores;
      const [before, after, other] = [await visit(stores), await visit(stores), await visit(stores)];
      await ground.lose(async () => {
        await sessions.end(before.session);
        const [pending] = await sessions.end(after.session);
        if (pending === undefined) throw new Error('no logout is pending');
        for (const grantId of pending.grantIds) await grants.revoke(grantId);
        await logouts.acknowledge(pending);
      });
      await until('the new server answers', () => succeeds(sessions.list('usr_alice')), 30_000);
      expect(await sessions.use(before.session.sessionId)).toBeDefined();
      await until('all is replayed', async () => {
        return (await connection.replayRevocations('all')).errors.length === 0;
      });
      const sids = [before, after].map(({ session }) => session.sid);
      expect([...(await processed(stores))].sort()).toEqual(sids.sort());
      const outcomes = async ({ family, offline }: Awaited<ReturnType<typeof visit>>) => {
        const answers = [family, offline].map((grant) => grants.rotate(rotateRequest(grant, 0)));
        return (await Promise.all(answers)).map(({ outcome }) => outcome);
      };
      for (const ended of [before, after]) {
        expect(await outcomes(ended)).toEqual(['gone', 'rotated']);
        expect(await sessions.use(ended.session.sessionId)).toBeUndefined();
      }
      expect(await outcomes(other)).toEqual(['rotated', 'rotated']);
      expect(await sessions.use(other.session.sessionId)).toEqual(other.session);
    });
  });
}
