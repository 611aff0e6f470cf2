// The contract of GrantStore.rotate: one successor per refresh token, a short grace for a lost answer, and death for reuse.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Grant, GrantStore } from '../../src/oauth/ports/grant-store.ts';
import {
  accessRequest,
  DAY,
  issued,
  RETENTION,
  redeemed,
  redeemRequest,
  rotatedTo,
  rotateRequest,
  SECOND,
  SHARD,
  sampleGrant,
  tally,
  tokenOf,
  uniqueId,
} from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const GRACE = 10 * SECOND;
const WIDER = { access: accessRequest({ scope: ['read', 'admin'] }) };
const OTHER_TARGET = { access: accessRequest({ resource: 'https://other.example' }) };
const STRANGER = { clientUid: 'uid-of-stranger' };
const NEVER = { rotation: 'Never' } as const;

/** Runs the contract on one implementation. */
export function grantRotationContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: refreshing`, () => {
    let world: StoreWorld;
    let grants: GrantStore;
    beforeEach(async () => {
      world = await makeStores();
      grants = world.stores.grants;
    });
    afterEach(() => world.dispose());

    it('moves the family to its next generation', async () => {
      const grant = await redeemed(grants);
      const stored = (await grants.read(grant.grantId))?.grant;
      for (const current of [0, 1, 2]) {
        expect(await grants.rotate(rotateRequest(grant, current))).toEqual({
          outcome: 'rotated',
          grant: stored,
          generation: current + 1,
          scope: ['read', 'write'],
          audience: 'https://api.example',
          alert: undefined,
        });
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: current + 1 });
      }
    });

    it('narrows one token and never the family', async () => {
      const grant = await redeemed(grants);
      const access = accessRequest({ scope: ['read'], resource: 'https://files.example' });
      const narrow = await grants.rotate(rotateRequest(grant, 0, { access }));
      expect(narrow).toMatchObject({ outcome: 'rotated', scope: ['read'], audience: 'https://files.example' });
      const full = await grants.rotate(rotateRequest(grant, 1));
      expect(full).toMatchObject({ outcome: 'rotated', scope: ['read', 'write'], audience: 'https://api.example' });
    });

    it('answers gone for a grant that was never issued and for one whose code is unredeemed', async () => {
      expect(await grants.rotate(rotateRequest(sampleGrant(), 0))).toEqual({ outcome: 'gone' });
      const grant = await issued(grants);
      expect(await grants.rotate(rotateRequest(grant, 0))).toEqual({ outcome: 'gone' });
      expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'redeemed' });
    });

    it('answers no_match to another client and leaves the family alive, also with an old or a future token', async () => {
      const grant = await rotatedTo(grants, 3);
      for (const generation of [3, 2, 0, 9]) {
        expect(await grants.rotate(rotateRequest(grant, generation, STRANGER))).toEqual({ outcome: 'no_match' });
      }
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 3 });
      expect(await grants.rotate(rotateRequest(grant, 3))).toMatchObject({ outcome: 'rotated', generation: 4 });
    });

    describe('over time', () => {
      const IDLE = 2 * DAY;
      const ABSOLUTE = 5 * DAY;
      const lifetimes = { idleLifetime: IDLE, absoluteLifetime: ABSOLUTE };

      it('works until just before the idle lifetime ends', async () => {
        const grant = await redeemed(grants);
        world.advance(IDLE - world.tick);
        expect(await grants.rotate(rotateRequest(grant, 0, lifetimes))).toMatchObject({ outcome: 'rotated' });
      });

      it('answers gone from the end of the idle lifetime on', async () => {
        const grant = await redeemed(grants);
        world.advance(IDLE);
        expect(await grants.rotate(rotateRequest(grant, 0, lifetimes))).toEqual({ outcome: 'gone' });
      });

      it('renews the idle time at each use, up to the absolute lifetime', async () => {
        const grant = await redeemed(grants);
        world.advance(IDLE - world.tick);
        expect(await grants.rotate(rotateRequest(grant, 0, lifetimes))).toMatchObject({ outcome: 'rotated' });
        world.advance(IDLE - world.tick);
        expect(await grants.rotate(rotateRequest(grant, 1, lifetimes))).toMatchObject({ outcome: 'rotated' });
        world.advance(DAY);
        expect(await grants.rotate(rotateRequest(grant, 2, lifetimes))).toMatchObject({ outcome: 'rotated' });
        world.advance(2 * world.tick);
        expect(await grants.rotate(rotateRequest(grant, 3, lifetimes))).toEqual({ outcome: 'gone' });
      });

      it('counts the absolute lifetime from the grant’s creation, not from redemption', async () => {
        const grant = await issued(grants);
        world.advance(30 * SECOND);
        await grants.redeem(redeemRequest(grant));
        world.advance(ABSOLUTE - 30 * SECOND - world.tick);
        const request = rotateRequest(grant, 0, { absoluteLifetime: ABSOLUTE });
        expect(await grants.rotate(request)).toMatchObject({ outcome: 'rotated' });
        world.advance(world.tick);
        expect(await grants.rotate(rotateRequest(grant, 1, { absoluteLifetime: ABSOLUTE }))).toEqual({
          outcome: 'gone',
        });
      });

      it('follows a client whose lifetimes have grown since the grant was made', async () => {
        const grown = { idleLifetime: 100 * DAY, absoluteLifetime: 200 * DAY, retention: 201 * DAY };
        const grant = await redeemed(grants);
        world.advance(80 * DAY);
        expect(await grants.rotate(rotateRequest(grant, 0, grown))).toMatchObject({ outcome: 'rotated' });
        world.advance(80 * DAY);
        expect(await grants.rotate(rotateRequest(grant, 1, grown))).toMatchObject({ outcome: 'rotated' });
        expect(await grants.redeem(redeemRequest(grant))).toMatchObject({ outcome: 'replayed' });
      });

      for (const [what, generation] of [
        ['moved', 0],
        ['healed', 5],
      ] as const) {
        it(`keeps a family that a refresh has ${what} as long as what that gave may live`, async () => {
          const grant = await redeemed(grants);
          // The lifetimes of the client have grown since; the last access token is made at the end of the family.
          const grown = { idleLifetime: 200 * DAY, absoluteLifetime: 100 * DAY, retention: 102 * DAY };
          world.advance(80 * DAY);
          await grants.rotate(rotateRequest(grant, generation, grown));
          world.advance(22 * DAY - world.tick);
          expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: generation + 1 });
          world.advance(world.tick);
          expect(await grants.read(grant.grantId)).toBeUndefined();
        });
      }

      it('still knows a rotated token as long as it was to, also where the client’s lifetimes have shrunk since', async () => {
        const grant = await redeemed(grants);
        for (const current of [0, 1]) await grants.rotate(rotateRequest(grant, current, { retention: DAY }));
        world.advance(RETENTION - world.tick);
        // Of no lifetime that ends it.
        const lasting = { idleLifetime: 2 * RETENTION, absoluteLifetime: 2 * RETENTION };
        expect(await grants.rotate(rotateRequest(grant, 0, lasting))).toMatchObject({ outcome: 'reused' });
      });

      it('raises nothing for an old token of an expired family', async () => {
        const grant = await rotatedTo(grants, 3);
        world.advance(ABSOLUTE);
        expect(await grants.rotate(rotateRequest(grant, 0, lifetimes))).toEqual({ outcome: 'gone' });
      });
    });

    describe('with the immediate predecessor', () => {
      it('gives the same successor again within the grace', async () => {
        const grant = await rotatedTo(grants, 2);
        for (let time = 0; time < 3; time++) {
          expect(await grants.rotate(rotateRequest(grant, 1))).toMatchObject({
            outcome: 'benign_retry',
            generation: 2,
            scope: ['read', 'write'],
            alert: undefined,
          });
        }
        expect(await grants.rotate(rotateRequest(grant, 2))).toMatchObject({ outcome: 'rotated', generation: 3 });
      });

      it('is benign up to the end of the grace, which a retry does not renew', async () => {
        const grant = await rotatedTo(grants, 1);
        world.advance(GRACE - world.tick + 1);
        expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'benign_retry' });
        world.advance(world.tick);
        expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'reused' });
      });

      it('is reuse at once when there is no grace', async () => {
        const grant = await rotatedTo(grants, 1);
        expect(await grants.rotate(rotateRequest(grant, 0, { reuseGrace: 0 }))).toMatchObject({ outcome: 'reused' });
      });

      it('is reuse once the successor has been used: a used child closes the grace', async () => {
        const grant = await rotatedTo(grants, 1);
        expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'benign_retry' });
        await grants.rotate(rotateRequest(grant, 1));
        expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'reused' });
      });

      it('does not renew the idle time', async () => {
        const grant = await rotatedTo(grants, 1);
        const before = (await grants.read(grant.grantId))?.refreshedAt;
        world.advance(5 * SECOND);
        await grants.rotate(rotateRequest(grant, 0));
        expect((await grants.read(grant.grantId))?.refreshedAt).toBe(before);
      });

      it('may ask for a narrower token, never for a wider one', async () => {
        const grant = await rotatedTo(grants, 1);
        expect(await grants.rotate(rotateRequest(grant, 0, WIDER))).toEqual({ outcome: 'scope_exceeded' });
        const access = accessRequest({ scope: ['read'] });
        const answer = await grants.rotate(rotateRequest(grant, 0, { access }));
        expect(answer).toMatchObject({ outcome: 'benign_retry', generation: 1, scope: ['read'] });
      });
    });

    describe('with a rotated token', () => {
      it('is reuse: the family is revoked and one alert says so', async () => {
        const grant = await rotatedTo(grants, 2);
        await grants.rotate(rotateRequest(grant, 2, { address: '192.0.2.20' }));
        const answer = await grants.rotate(rotateRequest(grant, 1, { address: '198.51.100.9' }));
        expect(answer).toMatchObject({
          outcome: 'reused',
          alert: {
            type: 'refresh_token.reuse_detected',
            clientUid: grant.clientUid,
            clientId: grant.clientId,
            subject: grant.subject,
            grantId: grant.grantId,
            presentedGeneration: 1,
            currentGeneration: 3,
            address: '198.51.100.9',
            lastAddress: '192.0.2.20',
            action: 'grant_revoked',
          },
        });
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: true });
      });

      it('leaves nothing of the family alive and raises nothing more', async () => {
        const grant = await rotatedTo(grants, 3);
        expect(await grants.rotate(rotateRequest(grant, 1))).toMatchObject({ outcome: 'reused' });
        for (const generation of [0, 1, 2, 3, 4, 100]) {
          expect(await grants.rotate(rotateRequest(grant, generation))).toEqual({ outcome: 'gone' });
        }
        expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
      });

      it('is reuse whatever access it asks for', async () => {
        const grant = await rotatedTo(grants, 3);
        expect(await grants.rotate(rotateRequest(grant, 0, WIDER))).toMatchObject({ outcome: 'reused' });
      });
    });

    describe('with a generation the store has not seen', () => {
      it('heals forward: the store had lost writes, and one alert says so', async () => {
        const grant = await redeemed(grants);
        const answer = await grants.rotate(rotateRequest(grant, 5, { address: '203.0.113.4' }));
        expect(answer).toMatchObject({
          outcome: 'healed',
          generation: 6,
          scope: ['read', 'write'],
          alert: {
            type: 'state_lost',
            grantId: grant.grantId,
            presentedGeneration: 5,
            currentGeneration: 0,
            address: '203.0.113.4',
            lastAddress: '192.0.2.1',
            action: 'healed_forward',
          },
        });
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 6 });
        expect(await grants.rotate(rotateRequest(grant, 6))).toMatchObject({ outcome: 'rotated', generation: 7 });
      });

      it('heals also when only one generation was lost', async () => {
        const grant = await redeemed(grants);
        const answer = await grants.rotate(rotateRequest(grant, 1));
        expect(answer).toMatchObject({ outcome: 'healed', generation: 2, alert: { type: 'state_lost' } });
      });

      for (const [what, generation, answer] of [
        [
          'gives the same successor to a retry within the grace',
          5,
          { outcome: 'benign_retry', generation: 6, alert: undefined },
        ],
        ['makes everything older reuse', 4, { outcome: 'reused' }],
        ['raises state_lost once per grant', 9, { outcome: 'healed', generation: 10, alert: undefined }],
        [
          'raises state_lost and reuse_detected side by side',
          2,
          { outcome: 'reused', alert: { type: 'refresh_token.reuse_detected' } },
        ],
      ] as const) {
        it(what, async () => {
          const grant = await redeemed(grants);
          await grants.rotate(rotateRequest(grant, 5));
          expect(await grants.rotate(rotateRequest(grant, generation))).toMatchObject(answer);
        });
      }
    });

    describe('with access the grant does not cover', () => {
      for (const [what, different, outcome] of [
        ['a wider scope', WIDER, 'scope_exceeded'],
        ['another resource', OTHER_TARGET, 'target_exceeded'],
      ] as const) {
        it(`answers ${outcome} for ${what} with the current token and consumes nothing`, async () => {
          const grant = await rotatedTo(grants, 1);
          expect(await grants.rotate(rotateRequest(grant, 1, different))).toEqual({ outcome });
          expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 1 });
          expect(await grants.rotate(rotateRequest(grant, 1))).toMatchObject({ outcome: 'rotated', generation: 2 });
        });

        it(`answers ${outcome} for ${what} with an unseen generation, heals nothing and raises nothing`, async () => {
          const grant = await rotatedTo(grants, 1);
          expect(await grants.rotate(rotateRequest(grant, 5, different))).toEqual({ outcome });
          expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 1 });
          expect(await grants.rotate(rotateRequest(grant, 5))).toMatchObject({
            outcome: 'healed',
            alert: { type: 'state_lost' },
          });
        });
      }

      it('gives only what the client may still have', async () => {
        const grant = await redeemed(grants);
        const access = accessRequest({ allowedScopes: ['read'], allowedAudiences: ['https://files.example'] });
        expect(await grants.rotate(rotateRequest(grant, 0, { access }))).toMatchObject({
          outcome: 'rotated',
          scope: ['read'],
          audience: 'https://files.example',
        });
      });
    });

    describe('without rotation', () => {
      it('keeps the same generation current, as often as it is used', async () => {
        const grant = await redeemed(grants);
        for (let time = 0; time < 5; time++) {
          world.advance(DAY);
          expect(await grants.rotate(rotateRequest(grant, 0, NEVER))).toMatchObject({
            outcome: 'rotated',
            generation: 0,
            alert: undefined,
          });
        }
      });

      it('renews the idle time', async () => {
        const grant = await redeemed(grants);
        const request = () => rotateRequest(grant, 0, { ...NEVER, idleLifetime: 2 * DAY });
        world.advance(2 * DAY - world.tick);
        expect(await grants.rotate(request())).toMatchObject({ outcome: 'rotated' });
        world.advance(2 * DAY - world.tick);
        expect(await grants.rotate(request())).toMatchObject({ outcome: 'rotated' });
        world.advance(2 * DAY);
        expect(await grants.rotate(request())).toEqual({ outcome: 'gone' });
      });

      it('answers 200 parallel refreshes alike', async () => {
        const grant = await redeemed(grants);
        const tries = Array.from({ length: 200 }, () => grants.rotate(rotateRequest(grant, 0, NEVER)));
        const answers = await Promise.all(tries);
        expect(tally(answers)).toEqual({ rotated: 200 });
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 0 });
      });

      it('heals to the presented generation', async () => {
        const grant = await redeemed(grants);
        expect(await grants.rotate(rotateRequest(grant, 3, NEVER))).toMatchObject({ outcome: 'healed', generation: 3 });
        expect(await grants.rotate(rotateRequest(grant, 3, NEVER))).toMatchObject({
          outcome: 'rotated',
          generation: 3,
        });
      });

      it('treats what was rotated before as reuse, and a used child closes the grace here too', async () => {
        const grant = await rotatedTo(grants, 1);
        expect(await grants.rotate(rotateRequest(grant, 1, NEVER))).toMatchObject({ outcome: 'rotated' });
        expect(await grants.rotate(rotateRequest(grant, 0, NEVER))).toMatchObject({ outcome: 'reused' });
      });
    });

    describe('under one attempt id', () => {
      it('repeats the first answer and moves the family once', async () => {
        const grant = await redeemed(grants);
        const request = rotateRequest(grant, 0, { reuseGrace: 0 });
        const first = await grants.rotate(request);
        expect(await grants.rotate(request)).toEqual(first);
        expect(await grants.rotate(request)).toEqual(first);
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 1 });
      });

      it('repeats the answer to 200 parallel copies', async () => {
        const grant = await redeemed(grants);
        const request = rotateRequest(grant, 0, { reuseGrace: 0 });
        const answers = await Promise.all(Array.from({ length: 200 }, () => grants.rotate(request)));
        expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 1 });
      });

      it('heals once and alerts once', async () => {
        const grant = await redeemed(grants);
        const request = rotateRequest(grant, 4);
        const first = await grants.rotate(request);
        expect(first).toMatchObject({ outcome: 'healed', generation: 5, alert: { type: 'state_lost' } });
        expect(await grants.rotate(request)).toEqual({ ...first, alert: undefined });
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 5 });
      });

      it('validates client and state first', async () => {
        const grant = await redeemed(grants);
        const request = rotateRequest(grant, 0);
        await grants.rotate(request);
        expect(await grants.rotate({ ...request, ...STRANGER })).toEqual({ outcome: 'no_match' });
        await grants.revoke(grant.grantId);
        expect(await grants.rotate(request)).toEqual({ outcome: 'gone' });
      });
    });

    describe('in 200 parallel tries', () => {
      it('has one rotation and 199 retries with the same successor', async () => {
        const grant = await redeemed(grants);
        const answers = await Promise.all(Array.from({ length: 200 }, () => grants.rotate(rotateRequest(grant, 0))));
        expect(tally(answers)).toEqual({ rotated: 1, benign_retry: 199 });
        expect(new Set(answers.map((answer) => 'generation' in answer && answer.generation))).toEqual(new Set([1]));
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 1 });
      });

      it('without grace has one rotation, one alert and a revoked family', async () => {
        const grant = await redeemed(grants);
        const tries = Array.from({ length: 200 }, () => grants.rotate(rotateRequest(grant, 0, { reuseGrace: 0 })));
        const answers = await Promise.all(tries);
        expect(tally(answers)).toEqual({ rotated: 1, reused: 1, gone: 198 });
        expect(answers.filter((answer) => 'alert' in answer && answer.alert !== undefined)).toHaveLength(1);
        expect(await grants.read(grant.grantId)).toMatchObject({ revoked: true });
      });
    });

    describe('for a client with opaque access tokens', () => {
      function newToken() {
        const now = Math.floor(world.now() / 1000);
        return { tokenId: `${SHARD}.${uniqueId()}`, issuedAtSeconds: now, expiresAtSeconds: now + 600 };
      }

      it('writes the token with what was granted, for a rotation, a retry and a healing', async () => {
        const grant = await redeemed(grants);
        for (const generation of [0, 0, 5]) {
          const accessToken = newToken();
          const access = accessRequest({ scope: ['read'] });
          await grants.rotate(rotateRequest(grant, generation, { accessToken, access }));
          const given = { scope: ['read'], audience: 'https://api.example' };
          expect(await world.stores.accessTokens.read(accessToken.tokenId)).toEqual(tokenOf(grant, accessToken, given));
        }
      });

      it('does not restore a revoked token when the attempt is repeated', async () => {
        const grant = await redeemed(grants);
        const request = rotateRequest(grant, 0, { accessToken: newToken(), reuseGrace: 0 });
        const first = await grants.rotate(request);
        const refreshedAt = (await grants.read(grant.grantId))?.refreshedAt;
        await world.stores.accessTokens.revoke(`${request.accessToken?.tokenId}`);
        world.advance(SECOND);
        expect(await grants.rotate(request)).toEqual(first);
        expect(await world.stores.accessTokens.read(`${request.accessToken?.tokenId}`)).toBeUndefined();
        expect((await grants.read(grant.grantId))?.refreshedAt).toBe(refreshedAt);
      });

      it('writes no token when the refresh fails', async () => {
        const grant = await rotatedTo(grants, 3);
        const accessToken = newToken();
        await grants.rotate(rotateRequest(grant, 3, { accessToken, ...WIDER }));
        await grants.rotate(rotateRequest(grant, 3, { accessToken, ...STRANGER }));
        await grants.rotate(rotateRequest(grant, 0, { accessToken }));
        await grants.rotate(rotateRequest(grant, 3, { accessToken }));
        expect(await world.stores.accessTokens.read(accessToken.tokenId)).toBeUndefined();
      });
    });
  });

  describe(`${name}: revoking a grant`, () => {
    let world: StoreWorld;
    let grants: GrantStore;
    beforeEach(async () => {
      world = await makeStores();
      grants = world.stores.grants;
    });
    afterEach(() => world.dispose());

    it('kills an unredeemed code', async () => {
      const grant = await issued(grants);
      await grants.revoke(grant.grantId);
      expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
    });

    it('kills every refresh token without an alert, and a second time changes nothing', async () => {
      const grant = await rotatedTo(grants, 2);
      await grants.revoke(grant.grantId);
      await grants.revoke(grant.grantId);
      expect(await grants.read(grant.grantId)).toMatchObject({ grant, revoked: true, generation: 2 });
      for (const generation of [2, 1, 0, 7]) {
        expect(await grants.rotate(rotateRequest(grant, generation))).toEqual({ outcome: 'gone' });
      }
      expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'gone' });
    });

    it('is remembered as long as the grant could have lived', async () => {
      const grant = await redeemed(grants);
      await grants.revoke(grant.grantId);
      world.advance(90 * DAY - world.tick);
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: true });
    });

    it('accepts a grant that was never issued', async () => {
      const { grantId } = sampleGrant();
      await grants.revoke(grantId);
      expect(await grants.read(grantId)).toBeUndefined();
    });

    it('touches no other grant', async () => {
      const [one, other] = [await redeemed(grants), await redeemed(grants)];
      await grants.revoke(one.grantId);
      expect(await grants.rotate(rotateRequest(other, 0))).toMatchObject({ outcome: 'rotated' });
    });

    describe('while kill switches count', () => {
      const { clientUid, subject } = sampleGrant();
      const kinds = [
        { kind: 'user', subject },
        { kind: 'consent', clientUid, subject },
        { kind: 'client', clientUid },
        { kind: 'global' },
      ] as const;
      const createdAt = async ({ grantId }: Grant) => (await grants.read(grantId))?.grant.createdAt ?? 0;

      it.each(kinds)('is ended by one of the kind $kind before it moves anything or raises an alert', async (kind) => {
        const grant = await redeemed(grants);
        const made = await createdAt(grant);
        await world.stores.watermarks.raise(kind, made - 1);
        const first = await grants.rotate(rotateRequest(grant, 0));
        expect(first).toMatchObject({ outcome: 'rotated' });
        await world.stores.watermarks.raise(kind, made);
        world.advance(GRACE + world.tick);
        for (const generation of [0, 1, 2]) {
          const request = rotateRequest(grant, generation);
          expect(await grants.rotate(request)).toEqual({ outcome: 'ended' });
        }
        expect(await grants.read(grant.grantId)).toMatchObject({ generation: 1, revoked: false });
      });

      it('is ended by that of the manifest', async () => {
        const grant = await redeemed(grants);
        const made = await createdAt(grant);
        const before = rotateRequest(grant, 0, { revokedBefore: made - 1 });
        expect(await grants.rotate(before)).toMatchObject({ outcome: 'rotated' });
        const at = rotateRequest(grant, 1, { revokedBefore: made });
        expect(await grants.rotate(at)).toEqual({ outcome: 'ended' });
      });

      it('is ended even where the grant is revoked, and another client learns nothing of it', async () => {
        const grant = await redeemed(grants);
        const made = await createdAt(grant);
        await grants.revoke(grant.grantId);
        expect(await grants.rotate(rotateRequest(grant, 0, { revokedBefore: made }))).toEqual({ outcome: 'ended' });
        const strange = rotateRequest(grant, 0, { ...STRANGER, revokedBefore: made });
        expect(await grants.rotate(strange)).toEqual({ outcome: 'no_match' });
      });

      it.each(kinds)('leaves nothing to be issued for a code when it is of the kind $kind', async (kind) => {
        const grant = await issued(grants);
        await world.stores.watermarks.raise(kind, await createdAt(grant));
        expect(await grants.redeem(redeemRequest(grant))).toEqual({ outcome: 'ended' });
      });

      it.each(kinds)('lets a code be redeemed that was made after one of the kind $kind', async (kind) => {
        const grant = await issued(grants);
        await world.stores.watermarks.raise(kind, (await createdAt(grant)) - 1);
        const answer = await grants.redeem(redeemRequest(grant));
        expect(answer).toMatchObject({ outcome: 'redeemed' });
      });

      it('leaves nothing to be issued for a code when it is that of the manifest', async () => {
        const grant = await issued(grants);
        const revokedBefore = await createdAt(grant);
        expect(await grants.redeem(redeemRequest(grant, { revokedBefore }))).toEqual({ outcome: 'ended' });
      });
    });

    it('knows whose the grant is', async () => {
      const grant = await issued(grants, { subject: 'usr_bob' });
      expect(await grants.subjectOf(grant.grantId)).toBe('usr_bob');
      expect(await grants.subjectOf(sampleGrant().grantId)).toBeUndefined();
    });
  });
}
