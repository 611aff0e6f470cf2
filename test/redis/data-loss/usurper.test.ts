// A server that came up empty and calls itself the primary although another one is, as the old primary does where Sentinels
// have not demoted it yet: what it lacks says nothing about what the true primary has.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import type { ShardEvent } from '../../../src/redis/data-loss/shard-repair.ts';
import { ShardWatch } from '../../../src/redis/data-loss/shard-watch.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { startProxy, type TcpProxy } from '../../chaos/tcp-proxy.ts';
import { redeemed, rotateRequest } from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { connectTo, methodsOf, portOf } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');

/** Nothing is raised that it would not outlive. */

describeRedis('an empty server that is taken for the primary for a while', () => {
  let primary: RedisServer;
  let usurper: RedisServer;
  let way: TcpProxy;
  let connection: ManagedConnection;
  beforeEach(async () => {
    [primary, usurper] = await Promise.all([startRedis(), startRedis()]);
    way = await startProxy(primary.port, () => false);
    connection = await connectTo({ url: `redis://127.0.0.1:${way.port}` });
  });
  afterEach(async () => {
    await connection.close();
    await way.stop();
    await Promise.all([primary.stop(), usurper.stop()]);
  });

  /** The connection breaks, and comes back to this server. */
  async function movedTo(server: RedisServer, real = connection): Promise<void> {
    way.leadTo(server.port);
    await until('it is asked', async () => (await portOf(real).catch(() => undefined)) === server.port);
  }

  function watchOver(over: ManagedConnection) {
    const events: ShardEvent[] = [];
    const { grants } = redisStores({ connection, keys });
    const observe = (event: ShardEvent) => void events.push(event);
    const watch = new ShardWatch({ connection: over, keys, issuer: 'https://id.example', clock: systemClock, observe });
    return { watch, grants, losses: () => events.filter(({ kind }) => kind === 'found_empty').length };
  }

  /** Looks once, after a while in which what is made outlives what was raised before. */
  async function begun({ watch }: ReturnType<typeof watchOver>): Promise<void> {
    await watch.start();
    watch.stop();
  }

  it('is filled with markers of its own, and the families of the true primary live', async () => {
    const watched = watchOver(connection);
    await begun(watched);
    const grant = await redeemed(watched.grants);
    await movedTo(usurper);
    await watched.watch.check();
    expect(watched.losses()).toBe(2);
    await movedTo(primary);
    for (let looks = 0; looks < 3; looks++) await watched.watch.check();
    expect(await watched.grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
    expect(watched.losses()).toBe(2);
  });

  /** The connection as it is when it breaks before this script is sent, and comes back to that server. */
  function movingBefore(script: string, server: () => RedisServer, real = connection): ManagedConnection {
    let isMoved = false;
    return {
      ...methodsOf(real),
      async run(action, deadline) {
        if (action.script.name === script && !isMoved) {
          isMoved = true;
          await movedTo(server(), real);
        }
        return await real.run(action, deadline);
      },
    };
  }

  it('has nothing done to the true primary that answers before it is filled', async () => {
    const before = watchOver(connection);
    await begun(before);
    const grant = await redeemed(before.grants);
    await movedTo(usurper);
    const watched = watchOver(movingBefore('markerRestore', () => primary));
    await expect(watched.watch.check()).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(watched.losses()).toBe(0);
    await watched.watch.check();
    expect(watched.losses()).toBe(0);
    expect(await watched.grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
    expect(await usurper.command('DBSIZE')).toBe(0);
  });

  it('does not get a heartbeat that hides how old it is, where another server was inspected', async () => {
    const due = { clockOffset: () => 60_000 };
    const later = await connectTo({ url: `redis://127.0.0.1:${way.port}` }, due);
    try {
      const watched = watchOver(connection);
      await begun(watched);
      await movedTo(usurper);
      await watched.watch.check();
      const before = await usurper.command('GET', keys.marker('000'));
      await movedTo(primary, later);
      const moving = watchOver(movingBefore('markerBeat', () => usurper, later));
      await moving.watch.check();
      await expect(moving.watch.check()).rejects.toBeInstanceOf(StoreUnavailableError);
      expect(await usurper.command('GET', keys.marker('000'))).toBe(before);
    } finally {
      await later.close();
    }
  });

  it('gets no heartbeat that hides that it was emptied after the inspection', async () => {
    const later = await connectTo(primary, { clockOffset: () => 60_000 });
    try {
      await begun(watchOver(connection));
      const watched = watchOver({
        ...methodsOf(later),
        async run(action, deadline) {
          if (action.script.name === 'markerBeat') await primary.command('FLUSHALL');
          return await later.run(action, deadline);
        },
      });
      // The first check learns what is there; the second finds the heartbeat due.
      await watched.watch.check();
      await watched.watch.check();
      expect(watched.losses()).toBe(0);
      await watched.watch.check();
      expect(watched.losses()).toBe(1);
    } finally {
      await later.close();
    }
  });

  it('is emptied itself, being the true one: everything made until then is revoked', async () => {
    const watched = watchOver(connection);
    await begun(watched);
    const { grants } = watched;
    const grant = await redeemed(grants);
    await primary.command('FLUSHALL');
    await redeemed(grants, { grantId: grant.grantId });
    await watched.watch.check();
    expect(await grants.rotate(rotateRequest(grant, 0))).toEqual({ outcome: 'ended' });
  });
});
