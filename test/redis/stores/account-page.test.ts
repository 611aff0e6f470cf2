// The account page of two replicas over one Redis and over a Cluster: what a person ends at one is over at the other, and Redis
// keeps nothing of it that the person could read.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import type { TestClock } from '../../grantry.ts';
import { type AccountWorld, anAccountWorld, entriesOf, SHOP } from '../../http/account/account-world.ts';
import { API, TokenCalls } from '../../http/protocol/token-calls.ts';
import { until } from '../../until.ts';
import { connectFrozen } from '../setup/frozen-time.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

const DEPLOYMENTS = { 'one Redis server': startRedis, 'a Redis Cluster': startCluster } as const;
/** The clock stands still between steps. */
const STEP = 60_000;
const ALICE = 'usr__opn0Ky1LrfMdvbK8-HI2s';

for (const [name, start] of Object.entries(DEPLOYMENTS)) {
  describeRedis(`the account page over ${name}`, () => {
    let servers: { readonly url: string; stop(): Promise<void> };
    let connection: ManagedConnection;
    let clock: TestClock | undefined;
    let worlds = 0;
    beforeAll(async () => {
      servers = await start();
      connection = await connectFrozen(servers, { now: () => clock?.now() ?? 0 });
    });
    afterAll(async () => {
      await connection.close();
      await servers.stop();
    });

    /** The keys of each have a prefix of their own. */
    function aWorld(): Promise<AccountWorld> {
      worlds += 1;
      const keys = new RedisKeys(`world${worlds}:`);
      return anAccountWorld({
        storesFor: (ofWorld) => {
          clock = ofWorld;
          return redisStores({ connection, keys });
        },
      });
    }

    it('given a client that is revoked at one replica → refresh and introspection refuse at the other', async () => {
      const world = await aWorld();
      const alice = await world.browser().signIn();
      const held = await alice.letIn(SHOP);
      await until('the use is recorded', async () => (await world.stores.uses.list(ALICE)).length > 0);
      const calls = new TokenCalls(world.other);
      expect(await calls.as(API).isActive(held.access_token)).toBe(true);
      world.clock.advance(STEP);
      const page = await alice.get('/account/applications');
      expect(entriesOf(page)).toEqual([expect.stringContaining('Last used: January 1, 2026')]);
      expect((await alice.press(await alice.formAfter('/account/applications', 'revoke'))).status).toBe(303);
      expect((await calls.refresh(held.refresh_token)).status).toBe(400);
      expect(await calls.as(API).isActive(held.access_token)).toBe(false);
      expect(entriesOf(await alice.at(world.other).get('/account/applications'))).toEqual([]);
      expect(await world.stores.consents.list(ALICE)).toEqual([]);
    });

    it('given "sign out everywhere" at one replica → sessions and grants are over at the other', async () => {
      const world = await aWorld();
      const [here, there] = [await world.browser().signIn(), await world.browser().signIn()];
      const held = await here.letIn(SHOP);
      expect(entriesOf(await here.get('/account/sessions'))).toHaveLength(2);
      world.clock.advance(STEP);
      await here.press(await here.formAfter('/account', 'sign_out_everywhere'));
      expect((await there.at(world.other).get('/account')).body).toContain('name="password"');
      expect((await new TokenCalls(world.other).refresh(held.refresh_token)).status).toBe(400);
      expect(await world.stores.sessions.list(ALICE)).toEqual([]);
    });
  });
}
