// The scripts narrow access in Lua; what they answer must be what `narrowAccess` says, whatever is granted and asked.

import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { narrowAccess } from '../../../src/oauth/access/access.ts';
import type { AccessRequest, RedeemAnswer, RotateAnswer } from '../../../src/oauth/ports/grant-store.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { redeemed, redeemRequest, rotateRequest, SECRET_HASH, sampleGrant } from '../../contracts/sample-grants.ts';
import { redisWorlds } from '../setup/redis-world.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const RUNS = 300;

const scopes = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'A', '"', '\\', '/', 'ä', '1', 'null'), { maxLength: 6 });
const audience = fc.constantFrom('https://x.example', 'https://x.example/', 'https://y.example', 'urn:z');
const audiences = fc.array(audience, { maxLength: 4 });
const maybe = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined });

const granted = fc.record({ scope: scopes, audiences });
const asked: fc.Arbitrary<AccessRequest> = fc.record({
  scope: maybe(scopes),
  resource: maybe(audience),
  allowedScopes: scopes,
  allowedAudiences: audiences,
  defaultAudience: maybe(audience),
  at: maybe(fc.dictionary(audience, fc.record({ scopes, maxLifetimeSeconds: maybe(fc.constantFrom(60, 7200)) }))),
});

function narrowed(answer: RedeemAnswer | RotateAnswer) {
  const { outcome } = answer;
  if (outcome !== 'redeemed' && outcome !== 'rotated') return { outcome };
  return { outcome: 'granted', scope: answer.scope, audience: answer.audience };
}

describeRedis('access in a script', () => {
  let server: RedisServer;
  let stores: Stores;
  const worlds = redisWorlds(() => server);
  beforeAll(async () => {
    server = await startRedis();
    ({ stores } = await worlds.makeStores());
  });
  afterAll(async () => {
    await worlds.close();
    await server.stop();
  });

  it('is narrowed by a redemption as the protocol does', async () => {
    await fc.assert(
      fc.asyncProperty(granted, asked, async (covered, access) => {
        const grant = sampleGrant(covered);
        await stores.grants.issue(grant, SECRET_HASH, 60_000, 60_000);
        const answer = await stores.grants.redeem(redeemRequest(grant, { access }));
        expect(narrowed(answer)).toEqual(narrowAccess(covered, access));
      }),
      { numRuns: RUNS },
    );
  });

  it('is narrowed by a refresh as the protocol does', async () => {
    const whole = { scope: ['a', 'b', 'c', '"', 'ä'], audiences: ['https://x.example', 'urn:z', 'https://x.example/'] };
    const all = { allowedScopes: whole.scope, allowedAudiences: whole.audiences };
    await fc.assert(
      fc.asyncProperty(asked, async (access) => {
        const grant = await redeemed(stores.grants, whole, all);
        const answer = await stores.grants.rotate(rotateRequest(grant, 0, { access }));
        expect(narrowed(answer)).toEqual(narrowAccess(whole, access));
      }),
      { numRuns: RUNS },
    );
  });
});
