// Random histories of one grant whose audiences differ, and whose rules change all the time: memory and Redis answer and keep
// the same, and no token has more than its grant, its request and its audience let it have.

import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { memoryStores } from '../../../src/memory/stores.ts';
import type { AccessRequest, Grant, RedeemAnswer, RotateAnswer } from '../../../src/oauth/ports/grant-store.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { StoredAccessToken } from '../../../src/oauth/ports/token-stores.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import {
  CODE_LIFETIME,
  RETENTION,
  redeemRequest,
  rotateRequest,
  SECOND,
  SECRET_HASH,
  SHARD,
  sampleGrant,
  uniqueId,
} from '../../contracts/sample-grants.ts';
import { frozen } from '../setup/frozen-time.ts';
import { connectPatiently } from '../setup/patience.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

const START = 1_800_000_000_000;
const LIFETIME = 600;
const SCOPES = ['a', 'b', 'c', 'd'] as const;
const AUDIENCES = ['https://x.example', 'https://y.example', 'urn:z'] as const;

const maybe = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined, freq: 1 });
const someScopes = fc.subarray([...SCOPES], { minLength: 1 });
const audience = fc.constantFrom(...AUDIENCES);
// No shorter: a key goes by the real time of Redis.
const cap = fc.constantFrom(undefined, 60, LIFETIME, 2 * LIFETIME);
const rules = fc.record({ scopes: fc.subarray([...SCOPES]), maxLifetimeSeconds: cap });

const access: fc.Arbitrary<AccessRequest> = fc.record({
  scope: maybe(someScopes),
  resource: maybe(audience),
  allowedScopes: someScopes,
  allowedAudiences: fc.subarray([...AUDIENCES], { minLength: 2 }),
  defaultAudience: maybe(audience),
  at: fc.option(fc.dictionary(audience, rules), { nil: undefined }),
});

/** A request of the client. An age is how many generations behind the current one the refresh token is. */
interface Step {
  readonly access: AccessRequest;
  readonly age: number;
  /** Whether the same attempt is sent once more. */
  readonly isSentTwice: boolean;
  /** Milliseconds that pass before. */
  readonly pause: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  access,
  age: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constantFrom(1, -1) }),
  isSentTwice: fc.boolean(),
  pause: fc.constantFrom(0, 1, SECOND, 9 * SECOND, 59_999),
});

type Answer = RedeemAnswer | RotateAnswer;

/** What a token may have at most, from the text of the rules alone. */
function expectWithin(
  token: StoredAccessToken,
  grant: Grant,
  { scope, allowedScopes, allowedAudiences, at }: AccessRequest,
) {
  const here = at?.[token.audience];
  expect(token.scope.length).toBeGreaterThan(0);
  for (const bound of [grant.scope, scope ?? SCOPES, here?.scopes ?? allowedScopes]) {
    expect(bound).toEqual(expect.arrayContaining([...token.scope]));
  }
  for (const bound of [grant.audiences, allowedAudiences]) expect(bound).toContain(token.audience);
  const life = Math.min(LIFETIME, here?.maxLifetimeSeconds ?? LIFETIME);
  expect(token.expiresAtSeconds - token.issuedAtSeconds).toBe(life);
}

const DEPLOYMENTS = [
  ['one Redis server', startRedis],
  ['a Redis Cluster', startCluster],
] as const;

for (const [name, start] of DEPLOYMENTS) {
  describeRedis(`any history of a grant whose audiences differ, over ${name}`, () => {
    let server: { readonly url: string; stop(): Promise<void> };
    let connection: ManagedConnection;
    let now = START;
    let histories = 0;
    const outcomes = new Set<string>();
    beforeAll(async () => {
      server = await start();
      connection = await connectPatiently(server, { clockOffset: () => now });
    });
    afterAll(async () => {
      await connection.close();
      await server.stop();
    });

    /** The value that both stores give. */
    async function same<Value>(both: readonly Stores[], ask: (stores: Stores) => Promise<Value>): Promise<Value> {
      const [memory, redis] = await Promise.all(both.map(ask));
      expect(redis).toEqual(memory);
      return memory as Value;
    }

    async function take(both: readonly Stores[], grant: Grant, { access, age, isSentTwice }: Step): Promise<void> {
      const read = () => same(both, ({ grants }) => grants.read(grant.grantId));
      const before = await read();
      const issuedAtSeconds = Math.floor(now / 1000);
      const tokenId = `${SHARD}.${uniqueId()}`;
      const accessToken = { tokenId, issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + LIFETIME };
      const generation = Math.max(0, (before?.generation ?? 0) - age);
      const [redemption, rotation] = [
        redeemRequest(grant, { access, accessToken }),
        rotateRequest(grant, generation, { access, accessToken }),
      ];
      const send = ({ grants }: Stores): Promise<Answer> =>
        before?.generation === undefined ? grants.redeem(redemption) : grants.rotate(rotation);
      const answer = await same(both, send);
      if (isSentTwice && answer.outcome !== 'healed') await same(both, send);
      outcomes.add(answer.outcome);
      const token = await same(both, ({ accessTokens }) => accessTokens.read(tokenId));
      if ('grant' in answer) {
        expect(answer.grant).toMatchObject(grant);
        expect(token).toMatchObject({ scope: answer.scope, audience: answer.audience });
        expectWithin(token as StoredAccessToken, grant, access);
      } else {
        expect(token).toBeUndefined();
        if (answer.outcome.endsWith('_exceeded')) expect(await read()).toEqual(before);
      }
    }

    it('is the same in memory, and gives no token more than the grant, the request and the audience', async () => {
      const covered = fc.record({
        scope: someScopes,
        audiences: fc.shuffledSubarray([...AUDIENCES], { minLength: 1 }),
      });
      await fc.assert(
        fc.asyncProperty(covered, fc.array(step, { minLength: 4, maxLength: 12 }), async (what, steps) => {
          now = START;
          histories += 1;
          const keys = new RedisKeys(`history-${histories}:`);
          const both = [
            memoryStores({ clock: { now: () => now } }),
            redisStores({ connection: frozen(connection), keys }),
          ];
          const grant = sampleGrant(what);
          await same(both, ({ grants }) => grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION));
          for (const each of steps) {
            await take(both, grant, each);
            now += each.pause;
          }
        }),
        { numRuns: 60 },
      );
      const met = ['redeemed', 'rotated', 'benign_retry', 'healed', 'scope_exceeded', 'target_exceeded'];
      expect([...outcomes]).toEqual(expect.arrayContaining(met));
    });
  });
}
