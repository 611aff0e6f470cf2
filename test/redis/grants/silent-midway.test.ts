// Redis falls silent between the actions of one request: it costs the request less than a second all the same.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Grant, GrantStore } from '../../../src/oauth/ports/grant-store.ts';
import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { GuardedConnection } from '../../../src/redis/connection/guarded-connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { issued, redeemed, redeemRequest, rotateRequest } from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { connectTo, expectWithin, methodsOf, timed } from '../setup/connect.ts';
import { type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');

/** Kill switches are read, and none was ever thrown in a manifest. */

function pause(servers: readonly RedisServer[]): void {
  for (const server of servers) server.pause();
}

describeRedis('a Redis that falls silent when it has done the first half of a request', () => {
  let single: RedisServer;
  let cluster: RedisCluster;
  let open: ManagedConnection[] = [];
  beforeAll(async () => {
    [single, cluster] = await Promise.all([startRedis(), startCluster()]);
  });
  afterEach(async () => {
    for (const server of [single, ...cluster.primaries]) server.resume();
    for (const connection of open) await connection.close();
    open = [];
  });
  afterAll(async () => {
    await Promise.all([single.stop(), cluster.stop()]);
  });

  /** A replica of grantry. @param afterScript called when a grant was moved and the second half is still to come */
  async function replica(
    { url }: { readonly url: string },
    { afterScript = () => {}, ...options }: Partial<ConnectionOptions> & { afterScript?: () => void } = {},
  ) {
    const real = await connectTo({ url }, options);
    open.push(real);
    const connection: ManagedConnection = {
      ...methodsOf(real),
      async runDurably(...action) {
        const answer = await real.runDurably(...action);
        afterScript();
        return answer;
      },
    };
    const guarded = new GuardedConnection({ connection, keys, isOpen: () => true });
    return { ...redisStores({ connection: guarded, keys }), connection: real };
  }

  /** How long a request takes that cannot be answered, in milliseconds. */
  async function refused(asked: () => Promise<unknown>): Promise<number> {
    const { error, milliseconds } = await timed(asked);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    return milliseconds;
  }

  /** Redis goes on: what was given up is recorded there, and replayed by the replica that gave it up. */
  async function goesOn({ connection }: { readonly connection: ManagedConnection }): Promise<void> {
    for (const server of [single, ...cluster.primaries]) server.resume();
    await until('what was given up is known', async () => {
      const { applied, errors } = await connection.replayRevocations('all');
      return applied > 0 && errors.length === 0;
    });
  }

  async function expectRepeatable(grants: GrantStore, grant: Grant): Promise<void> {
    expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated', generation: 1 });
  }

  /** Redis answers late what it is asked now. */
  function isSlow(servers: readonly RedisServer[], milliseconds: number): void {
    if (milliseconds === 0) return;
    pause(servers);
    setTimeout(() => {
      for (const server of servers) server.resume();
    }, milliseconds);
  }

  describe.each([0, 400])('after it took %i ms for that half', (slow) => {
    it('is not waited for by a redemption whose second read of the kill switches it owes', async () => {
      const asking = await replica(single, { afterScript: () => single.pause() });
      const { grants, watermarks } = await replica(single);
      await expectWithin(1000, async () => {
        const grant = await issued(grants);
        // Something was ended for a person of the shard since: it has to be found out whether for this one.
        await watermarks.raise({ kind: 'consent', subject: grant.subject, clientUid: 'another' }, Date.now() + 60_000);
        isSlow([single], slow);
        const milliseconds = await refused(() => asking.grants.redeem(redeemRequest(grant)));
        await goesOn(asking);
        // Whether it was redeemed or, on a busy machine, came too late for that: it is no replay.
        expect((await grants.redeem(redeemRequest(grant))).outcome).toMatch(/^(gone|redeemed)$/);
        return milliseconds;
      });
    });

    it('is not waited for by a refresh in a Cluster', async () => {
      const asking = await replica(cluster, { afterScript: () => pause(cluster.primaries) });
      const { grants } = await replica(cluster);
      await expectWithin(1000, async () => {
        const grant = await redeemed(grants);
        isSlow(cluster.primaries, slow);
        const rotated = () => asking.grants.rotate(rotateRequest(grant, 0));
        const milliseconds = await refused(rotated);
        await goesOn(asking);
        await expectRepeatable(grants, grant);
        return milliseconds;
      });
    });
  });

  it('is not waited for by a refresh that too few replicas acknowledged', async () => {
    const acknowledgement = { replicas: 1, timeout: 500 };
    const asking = await replica(single, { acknowledgement, afterScript: () => single.pause() });
    const { grants } = await replica(single);
    await expectWithin(1000, async () => {
      const grant = await redeemed(grants);
      const milliseconds = await refused(() => asking.grants.rotate(rotateRequest(grant, 0)));
      await goesOn(asking);
      await expectRepeatable(grants, grant);
      return milliseconds;
    });
  });
});
