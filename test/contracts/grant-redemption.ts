// The contract of GrantStore.issue and .redeem: one code, one redemption, and what a replay costs.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GrantStore, RedeemRequest } from '../../src/oauth/ports/grant-store.ts';
import {
  accessRequest,
  CODE_LIFETIME,
  DAY,
  digest,
  issued,
  MINUTE,
  RETENTION,
  redeemed,
  redeemRequest,
  rotateRequest,
  SECOND,
  SECRET_HASH,
  SHARD,
  sampleGrant,
  tally,
  tokenOf,
  uniqueId,
} from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

type Fault = readonly [name: string, different: Partial<RedeemRequest>];

const OTHER_SECRET: Fault = ['another secret', { secretHash: digest('other secret') }];
const OTHER_CLIENT: Fault = ['another client', { clientUid: 'uid-of-stranger' }];
const OTHER_REDIRECT: Fault = ['another redirect_uri', { redirectUri: 'https://shop.example/cb/' }];
const NO_VERIFIER: Fault = ['no verifier', { verifierChallenge: undefined }];
const WRONG_VERIFIER: Fault = ['a wrong verifier', { verifierChallenge: digest('other verifier') }];
const WIDER_SCOPE: Fault = ['a wider scope', { access: accessRequest({ scope: ['read', 'admin'] }) }];
const OTHER_TARGET: Fault = ['another resource', { access: accessRequest({ resource: 'https://other.example' }) }];

/** Runs the contract on one implementation. */
export function grantRedemptionContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: redeeming a code`, () => {
    let world: StoreWorld;
    let grants: GrantStore;
    beforeEach(async () => {
      world = await makeStores();
      grants = world.stores.grants;
    });
    afterEach(() => world.dispose());

    it('keeps the MAC of the grant', async () => {
      const grant = await issued(grants, { mac: 'a-mac-of-22-characters' });
      expect(await grants.read(grant.grantId)).toMatchObject({ grant: { mac: 'a-mac-of-22-characters' } });
      const answer = await grants.redeem(redeemRequest(grant));
      expect(answer).toMatchObject({ outcome: 'redeemed', grant: { mac: 'a-mac-of-22-characters' } });
    });

    it('gives the grant as it was issued, at generation 0', async () => {
      const before = world.now();
      const grant = await issued(grants);
      const unredeemed = await grants.read(grant.grantId);
      expect(unredeemed).toMatchObject({ grant, revoked: false, generation: undefined });
      expect(unredeemed?.grant.createdAt).toBeGreaterThanOrEqual(before);

      const answer = await grants.redeem(redeemRequest(grant));
      expect(answer).toEqual({
        outcome: 'redeemed',
        grant: unredeemed?.grant,
        scope: ['read', 'write'],
        audience: 'https://api.example',
      });
      expect(await grants.read(grant.grantId)).toMatchObject({ grant, revoked: false, generation: 0 });
    });

    it('narrows the token and leaves the grant as it was', async () => {
      const grant = await issued(grants);
      const access = accessRequest({ scope: ['write'], resource: 'https://files.example' });
      const answer = await grants.redeem(redeemRequest(grant, { access }));
      expect(answer).toMatchObject({ outcome: 'redeemed', scope: ['write'], audience: 'https://files.example' });
      expect((await grants.read(grant.grantId))?.grant).toMatchObject({ scope: ['read', 'write'] });
    });

    it('keeps a person without session: sessionId may be undefined', async () => {
      const grant = await issued(grants, { sessionId: undefined });
      const answer = await grants.redeem(redeemRequest(grant));
      expect(answer).toMatchObject({ outcome: 'redeemed', grant: { subject: 'usr_alice' } });
      expect(answer.outcome === 'redeemed' && answer.grant.sessionId).toBeUndefined();
    });

    it('answers gone for a grant that was never issued', async () => {
      expect(await grants.redeem(redeemRequest(sampleGrant()))).toEqual({ outcome: 'gone' });
      expect(await grants.read(sampleGrant().grantId)).toBeUndefined();
    });

    it('works until just before the code has lived its time', async () => {
      const grant = await issued(grants);
      world.advance(CODE_LIFETIME - world.tick);
      expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
    });

    it('answers gone from the end of the code’s lifetime on', async () => {
      const grant = await issued(grants);
      world.advance(CODE_LIFETIME);
      expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
      world.advance(MINUTE);
      expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
    });

    it('issued a second time stays what it has become', async () => {
      const grant = await redeemed(grants);
      await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
      expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'replayed' });
      await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
      expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
    });

    it('issued a second time lives as long as it would have', async () => {
      const grant = await redeemed(grants);
      const before = await grants.read(grant.grantId);
      world.advance(world.tick);
      await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
      expect(await grants.read(grant.grantId)).toEqual(before);
      world.advance(2 * CODE_LIFETIME);
      expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
    });

    describe('with something wrong', () => {
      const faults: readonly (readonly [Fault, string])[] = [
        [OTHER_SECRET, 'no_match'],
        [OTHER_CLIENT, 'no_match'],
        [OTHER_REDIRECT, 'bad_proof'],
        [NO_VERIFIER, 'bad_proof'],
        [WRONG_VERIFIER, 'wrong_verifier'],
        [WIDER_SCOPE, 'scope_exceeded'],
        [OTHER_TARGET, 'target_exceeded'],
      ];

      for (const [[fault, different], outcome] of faults) {
        it(`answers ${outcome} for ${fault} and consumes nothing`, async () => {
          const grant = await issued(grants);
          expect(await grants.redeem(redeemRequest(grant, different))).toEqual({ outcome });
          expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: undefined });
          expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
        });
      }

      for (const [index, [[first, one], outcome]] of faults.entries()) {
        for (const [[second, other]] of faults.slice(index + 1)) {
          // Two faults of one field cannot be sent together.
          if (Object.keys(one).some((field) => field in other)) continue;
          it(`answers ${outcome} for ${first} together with ${second}`, async () => {
            const grant = await issued(grants);
            expect(await grants.redeem(redeemRequest(grant, { ...one, ...other }))).toEqual({ outcome });
            expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
          });
        }
      }

      it('never redeems a code without challenge, with or without a verifier', async () => {
        const grant = await issued(grants, { codeChallenge: undefined });
        expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'bad_proof' });
        const without = redeemRequest(grant, { verifierChallenge: undefined });
        expect(await grants.redeem(without)).toEqual({ outcome: 'bad_proof' });
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: undefined });
      });
    });

    describe('with wrong verifiers', () => {
      async function guess(grantId: Partial<RedeemRequest>, times: number, request: RedeemRequest): Promise<string[]> {
        const outcomes: string[] = [];
        for (let time = 0; time < times; time++) {
          const answer = await grants.redeem({ ...request, ...WRONG_VERIFIER[1], attemptId: uniqueId(), ...grantId });
          outcomes.push(answer.outcome);
        }
        return outcomes;
      }

      it('still works after the fourth', async () => {
        const grant = await issued(grants);
        expect(await guess({}, 4, redeemRequest(grant))).toEqual(Array(4).fill('wrong_verifier'));
        expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
      });

      it('is gone after the fifth, also for the right one', async () => {
        const grant = await issued(grants);
        expect(await guess({}, 5, redeemRequest(grant))).toEqual(Array(5).fill('wrong_verifier'));
        expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
        expect(await grants.rotate(rotateRequest(grant, 0))).toEqual({ outcome: 'gone' });
      });

      it('counts parallel guesses one by one', async () => {
        const grant = await issued(grants);
        const guesses = Array.from({ length: 50 }, () => grants.redeem(redeemRequest(grant, WRONG_VERIFIER[1])));
        expect(tally(await Promise.all(guesses))).toEqual({ wrong_verifier: 5, gone: 45 });
      });

      it('counts only well-formed ones of the right client with the right secret and redirect_uri', async () => {
        const grant = await issued(grants);
        for (const [, different] of [OTHER_SECRET, OTHER_CLIENT, OTHER_REDIRECT]) {
          await guess(different, 6, redeemRequest(grant));
        }
        for (let time = 0; time < 6; time++) await grants.redeem(redeemRequest(grant, NO_VERIFIER[1]));
        expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
      });

      it('counts a repeated attempt once', async () => {
        const grant = await issued(grants);
        const attemptId = uniqueId();
        expect(await guess({ attemptId }, 8, redeemRequest(grant))).toEqual(Array(8).fill('wrong_verifier'));
        expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
      });
    });

    describe('a second time', () => {
      it('is a replay: the grant is revoked and one alert says so', async () => {
        const grant = await issued(grants);
        await grants.redeem(redeemRequest(grant, { address: '192.0.2.10' }));
        const answer = await grants.redeem(redeemRequest(grant, { address: '198.51.100.7' }));
        expect(answer).toMatchObject({
          outcome: 'replayed',
          alert: {
            type: 'authorization_code.replayed',
            clientUid: grant.clientUid,
            clientId: grant.clientId,
            subject: grant.subject,
            grantId: grant.grantId,
            presentedGeneration: undefined,
            currentGeneration: 0,
            address: '198.51.100.7',
            lastAddress: '192.0.2.10',
            action: 'grant_revoked',
          },
        });
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: true });
        expect(await grants.rotate(rotateRequest(grant, 0))).toEqual({ outcome: 'gone' });
      });

      it('raises no second alert: afterwards the code is gone', async () => {
        const grant = await redeemed(grants);
        await grants.redeem(redeemRequest(grant));
        expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
      });

      it('reports the current generation of a family that has moved on', async () => {
        const grant = await redeemed(grants);
        await grants.rotate(rotateRequest(grant, 0));
        await grants.rotate(rotateRequest(grant, 1));
        const answer = await grants.redeem(redeemRequest(grant));
        expect(answer).toMatchObject({ outcome: 'replayed', alert: { currentGeneration: 2 } });
        expect(await grants.rotate(rotateRequest(grant, 2))).toEqual({ outcome: 'gone' });
      });

      for (const [fault, different, outcome] of [
        [...OTHER_SECRET, 'no_match'],
        [...OTHER_CLIENT, 'no_match'],
        [...OTHER_REDIRECT, 'bad_proof'],
        [...NO_VERIFIER, 'bad_proof'],
        [...WRONG_VERIFIER, 'bad_proof'],
      ] as const) {
        it(`with ${fault} answers ${outcome} and revokes nothing, however often`, async () => {
          const grant = await redeemed(grants);
          for (let time = 0; time < 7; time++) {
            expect(await grants.redeem(redeemRequest(grant, different))).toEqual({ outcome });
          }
          expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 0 });
          expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
          expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'replayed' });
        });
      }

      it('is a replay whatever access it asks for', async () => {
        const grant = await redeemed(grants);
        expect(await grants.redeem(redeemRequest(grant, WIDER_SCOPE[1]))).toMatchObject({ outcome: 'replayed' });
      });

      it('is a replay as long as the grant can live, long after the code’s own lifetime', async () => {
        const grant = await redeemed(grants);
        world.advance(RETENTION - world.tick);
        expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'replayed' });
      });

      it('finds nothing once nothing issued under the grant can be alive', async () => {
        const grant = await redeemed(grants);
        world.advance(RETENTION);
        expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
        expect(await grants.read(grant.grantId)).toBeUndefined();
      });
    });

    describe('under one attempt id', () => {
      it('repeats the first answer, revokes nothing and raises nothing', async () => {
        const grant = await issued(grants);
        const request = redeemRequest(grant);
        const first = await grants.redeem(request);
        expect(await grants.redeem(request)).toEqual(first);
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 0 });
      });

      it('repeats the answer to 400 parallel copies', async () => {
        const grant = await issued(grants);
        const request = redeemRequest(grant);
        const answers = await Promise.all(Array.from({ length: 400 }, () => grants.redeem(request)));
        expect(tally(answers)).toEqual({ redeemed: 400 });
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 0 });
      });

      it('validates the request first: another client learns nothing from the id', async () => {
        const grant = await issued(grants);
        const request = redeemRequest(grant);
        await grants.redeem(request);
        expect(await grants.redeem({ ...request, ...OTHER_CLIENT[1] })).toEqual({ outcome: 'no_match' });
      });
    });

    it('in 400 parallel tries has one winner, one alert, and a revoked grant', async () => {
      const grant = await issued(grants);
      const answers = await Promise.all(Array.from({ length: 400 }, () => grants.redeem(redeemRequest(grant))));
      expect(tally(answers)).toEqual({ redeemed: 1, replayed: 1, gone: 398 });
      expect(answers.filter((answer) => answer.outcome === 'replayed' && answer.alert !== undefined)).toHaveLength(1);
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: true });
    });

    describe('for a client with opaque access tokens', () => {
      const ISSUED_AT = 1_800_000_000;

      it('writes the token with what was granted, in the same action', async () => {
        const grant = await issued(grants);
        const now = Math.floor(world.now() / 1000);
        const accessToken = { tokenId: `${SHARD}.${uniqueId()}`, issuedAtSeconds: now, expiresAtSeconds: now + 600 };
        const access = accessRequest({ scope: ['read'], resource: 'https://files.example' });
        await grants.redeem(redeemRequest(grant, { accessToken, access }));
        const given = { scope: ['read'], audience: 'https://files.example' };
        expect(await world.stores.accessTokens.read(accessToken.tokenId)).toEqual(tokenOf(grant, accessToken, given));
      });

      it.each([
        ['earlier', -DAY, -DAY],
        ['later', SECOND, 0],
      ])(
        'gives it the earlier time where that at the provider is %s, and the grant keeps both',
        async (_, by, told) => {
          const { authTime } = sampleGrant();
          const upstreamAuthTime = authTime + by;
          const grant = await issued(grants, { upstreamAuthTime });
          const now = Math.floor(world.now() / 1000);
          const token = () => ({
            tokenId: `${SHARD}.${uniqueId()}`,
            issuedAtSeconds: now,
            expiresAtSeconds: now + 600,
          });
          const [first, second] = [token(), token()];
          const both = { grant: { authTime, upstreamAuthTime } };
          expect(await grants.redeem(redeemRequest(grant, { accessToken: first }))).toMatchObject(both);
          expect(await grants.rotate(rotateRequest(grant, 0, { accessToken: second }))).toMatchObject(both);
          expect(await grants.read(grant.grantId)).toMatchObject(both);
          for (const { tokenId } of [first, second]) {
            expect((await world.stores.accessTokens.read(tokenId))?.authTime).toBe(authTime + told);
          }
        },
      );

      it('does not restore a revoked token when the attempt is repeated', async () => {
        const grant = await issued(grants);
        const now = Math.floor(world.now() / 1000);
        const accessToken = { tokenId: `${SHARD}.${uniqueId()}`, issuedAtSeconds: now, expiresAtSeconds: now + 600 };
        const request = redeemRequest(grant, { accessToken });
        const first = await grants.redeem(request);
        await world.stores.accessTokens.revoke(accessToken.tokenId);
        expect(await grants.redeem(request)).toEqual(first);
        expect(await world.stores.accessTokens.read(accessToken.tokenId)).toBeUndefined();
      });

      it('writes no token when the code is not redeemed', async () => {
        const grant = await issued(grants);
        const accessToken = {
          tokenId: `${SHARD}.${uniqueId()}`,
          issuedAtSeconds: ISSUED_AT,
          expiresAtSeconds: Number.MAX_SAFE_INTEGER / 1000,
        };
        const refused = [OTHER_SECRET, OTHER_CLIENT, OTHER_REDIRECT, NO_VERIFIER, WRONG_VERIFIER, WIDER_SCOPE];
        for (const [, different] of refused) await grants.redeem(redeemRequest(grant, { accessToken, ...different }));
        await grants.redeem(redeemRequest(grant));
        await grants.redeem(redeemRequest(grant, { accessToken }));
        await grants.redeem(redeemRequest(grant, { accessToken }));
        expect(await world.stores.accessTokens.read(accessToken.tokenId)).toBeUndefined();
      });
    });
  });
}
