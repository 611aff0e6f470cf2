// The contract of grants that are bound to keys (RFC 9449 §5, §10): codes of any client, refresh tokens of a public one, and
// the opaque access tokens of both.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GrantStore } from '../../src/oauth/ports/grant-store.ts';
import {
  digest,
  issued,
  RETENTION,
  redeemRequest,
  rotateRequest,
  SECRET_HASH,
  SHARD,
  sampleGrant,
  uniqueId,
} from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const KEY = 'jkt.0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I';
const OTHER = 'jkt.1ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I';
const BOUND = { confirmation: KEY } as const;
const NEVER = { rotation: 'Never' } as const;

/** Runs the contract on one implementation. */
export function keyBindingContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: binding to a key`, () => {
    let world: StoreWorld;
    let grants: GrantStore;
    beforeEach(async () => {
      world = await makeStores();
      grants = world.stores.grants;
    });
    afterEach(() => world.dispose());

    const redeemedBy = async (confirmation: typeof KEY | undefined, bindsRefreshTokens = true) => {
      const grant = await issued(grants);
      const request = redeemRequest(grant, { confirmation, bindsRefreshTokens });
      expect(await grants.redeem(request)).toMatchObject({ outcome: 'redeemed' });
      return grant;
    };

    it.each([
      ['another key', OTHER],
      ['no key', undefined],
    ] as const)(
      'a code that is bound to a key, redeemed with %s → bad_proof, and it lives',
      async (_, confirmation) => {
        const grant = await issued(grants, BOUND);
        expect(await grants.redeem(redeemRequest(grant, { confirmation }))).toEqual({ outcome: 'bad_proof' });
        const right = await grants.redeem(redeemRequest(grant, BOUND));
        expect(right).toMatchObject({ outcome: 'redeemed', grant: { confirmation: KEY } });
      },
    );

    it('a code that is bound to a key, presented again with another one → bad_proof, nothing is revoked', async () => {
      const grant = await issued(grants, BOUND);
      await grants.redeem(redeemRequest(grant, BOUND));
      expect(await grants.redeem(redeemRequest(grant, { confirmation: OTHER }))).toEqual({ outcome: 'bad_proof' });
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false });
      expect(await grants.redeem(redeemRequest(grant, BOUND))).toMatchObject({ outcome: 'replayed' });
    });

    it('a code that is bound to no key → any key redeems it, the record names none', async () => {
      const grant = await redeemedBy(KEY);
      expect((await grants.read(grant.grantId))?.grant.confirmation).toBeUndefined();
    });

    it('a refresh token of a public client → its key alone refreshes, each time', async () => {
      const grant = await redeemedBy(KEY);
      for (const confirmation of [OTHER, undefined] as const) {
        const wrong = rotateRequest(grant, 0, { confirmation, isPublic: true });
        expect(await grants.rotate(wrong)).toEqual({ outcome: 'bad_proof' });
      }
      for (const generation of [0, 1]) {
        const right = rotateRequest(grant, generation, { ...BOUND, isPublic: true });
        expect(await grants.rotate(right)).toMatchObject({ outcome: 'rotated', generation: generation + 1 });
      }
    });

    it('the predecessor within the grace, or reused after it, with another key → bad_proof, nothing is revoked', async () => {
      const grant = await redeemedBy(KEY);
      await grants.rotate(rotateRequest(grant, 0, { ...BOUND, isPublic: true }));
      const wrong = () => rotateRequest(grant, 0, { confirmation: OTHER, isPublic: true });
      expect(await grants.rotate(wrong())).toEqual({ outcome: 'bad_proof' });
      world.advance(60_000);
      expect(await grants.rotate(wrong())).toEqual({ outcome: 'bad_proof' });
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 1 });
    });

    it('a bound refresh token without rotation → its key alone, and the same generation', async () => {
      const grant = await redeemedBy(KEY);
      const wrong = rotateRequest(grant, 0, { ...NEVER, confirmation: OTHER, isPublic: true });
      expect(await grants.rotate(wrong)).toEqual({ outcome: 'bad_proof' });
      const right = rotateRequest(grant, 0, { ...NEVER, ...BOUND, isPublic: true });
      expect(await grants.rotate(right)).toMatchObject({ outcome: 'rotated', generation: 0 });
    });

    it('an unbound refresh token of a public client without rotation → bad_proof, whatever the key', async () => {
      const grant = await redeemedBy(undefined);
      for (const confirmation of [KEY, undefined] as const) {
        const request = rotateRequest(grant, 0, { ...NEVER, confirmation, isPublic: true });
        expect(await grants.rotate(request)).toEqual({ outcome: 'bad_proof' });
      }
    });

    it('an unbound refresh token of a public client with rotation → any key or none', async () => {
      const grant = await redeemedBy(undefined);
      expect(await grants.rotate(rotateRequest(grant, 0, { ...BOUND, isPublic: true }))).toMatchObject({
        generation: 1,
      });
      expect(await grants.rotate(rotateRequest(grant, 1, { isPublic: true }))).toMatchObject({ generation: 2 });
    });

    it('a refresh token of a confidential client → not bound: the client proves itself', async () => {
      const grant = await redeemedBy(KEY, false);
      expect(await grants.rotate(rotateRequest(grant, 0, { confirmation: OTHER }))).toMatchObject({ generation: 1 });
    });

    it('an opaque access token → it says what it is bound to, after redemption and refresh', async () => {
      const grant = sampleGrant();
      await grants.issue(grant, SECRET_HASH, 60_000, RETENTION);
      const at = Math.floor(world.now() / 1000);
      const newToken = () => ({
        tokenId: `${SHARD}.${digest(uniqueId())}`,
        issuedAtSeconds: at,
        expiresAtSeconds: at + 600,
        ...BOUND,
      });
      const [first, second] = [newToken(), newToken()];
      await grants.redeem(redeemRequest(grant, { ...BOUND, bindsRefreshTokens: true, accessToken: first }));
      expect(await world.stores.accessTokens.read(first.tokenId)).toMatchObject(BOUND);
      await grants.rotate(rotateRequest(grant, 0, { ...BOUND, isPublic: true, accessToken: second }));
      expect(await world.stores.accessTokens.read(second.tokenId)).toMatchObject(BOUND);
    });
  });
}
