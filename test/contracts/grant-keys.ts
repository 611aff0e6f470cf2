// The contract of GrantStore about keys: a code that is bound to one, and the refresh tokens of public clients.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Grant, GrantStore, RotateRequest } from '../../src/oauth/ports/grant-store.ts';
import type { Confirmation } from '../../src/oauth/ports/token-stores.ts';
import { digest, issued, redeemRequest, rotateRequest, SECOND } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const KEY: Confirmation = `jkt.${digest('key')}`;
const OTHER: Confirmation = `jkt.${digest('other key')}`;
const WRONG_KEYS = [
  ['another key', OTHER],
  ['a certificate', `x5t.${digest('key')}` as Confirmation],
  ['no key', undefined],
] as const;

/** Runs the contract on one implementation. */
export function grantKeysContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: keys of grants`, () => {
    let world: StoreWorld;
    let grants: GrantStore;
    beforeEach(async () => {
      world = await makeStores();
      grants = world.stores.grants;
    });
    afterEach(() => world.dispose());

    it('keeps the key of a code', async () => {
      const grant = await issued(grants, { confirmation: KEY });
      expect((await grants.read(grant.grantId))?.grant.confirmation).toBe(KEY);
      const answer = await grants.redeem(redeemRequest(grant, { confirmation: KEY }));
      expect(answer).toMatchObject({ outcome: 'redeemed', grant: { confirmation: KEY } });
    });

    it.each(WRONG_KEYS)('redeems no bound code with %s, and that uses nothing up', async (_, confirmation) => {
      const grant = await issued(grants, { confirmation: KEY });
      for (const verifierChallenge of Array.from({ length: 10 }, () => digest('wrong'))) {
        const request = redeemRequest(grant, { confirmation, verifierChallenge });
        expect(await grants.redeem(request)).toEqual({ outcome: 'bad_proof' });
      }
      expect(await grants.redeem(redeemRequest(grant, { confirmation }))).toEqual({ outcome: 'bad_proof' });
      expect(await grants.redeem(redeemRequest(grant, { confirmation: KEY }))).toMatchObject({ outcome: 'redeemed' });
    });

    it.each(WRONG_KEYS)('takes a redeemed code with %s for no replay', async (_, confirmation) => {
      const grant = await issued(grants, { confirmation: KEY });
      await grants.redeem(redeemRequest(grant, { confirmation: KEY }));
      expect(await grants.redeem(redeemRequest(grant, { confirmation }))).toEqual({ outcome: 'bad_proof' });
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false });
      expect(await grants.redeem(redeemRequest(grant, { confirmation: KEY }))).toMatchObject({ outcome: 'replayed' });
    });

    /** A grant of a public client, redeemed with a key or with none. */
    async function ofPublicClient(confirmation: Confirmation | undefined): Promise<Grant> {
      const grant = await issued(grants);
      await grants.redeem(redeemRequest(grant, { bindsRefreshTokens: true, confirmation }));
      return grant;
    }

    function refresh(grant: Grant, generation: number, different: Partial<RotateRequest>) {
      return grants.rotate(rotateRequest(grant, generation, { isPublic: true, ...different }));
    }

    it.each(WRONG_KEYS)('rotates no bound refresh token with %s, and nothing moves', async (_, confirmation) => {
      const grant = await ofPublicClient(KEY);
      for (const rotation of ['Always', 'Never'] as const) {
        expect(await refresh(grant, 0, { rotation, confirmation })).toEqual({ outcome: 'bad_proof' });
      }
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 0 });
      expect(await refresh(grant, 0, { confirmation: KEY })).toMatchObject({ outcome: 'rotated', generation: 1 });
      expect(await refresh(grant, 0, { confirmation })).toEqual({ outcome: 'bad_proof' });
      expect(await refresh(grant, 0, { confirmation: KEY })).toMatchObject({ outcome: 'benign_retry', generation: 1 });
      world.advance(11 * SECOND);
      // With a wrong key it is no reuse: a thief must not be able to end the family.
      expect(await refresh(grant, 0, { confirmation })).toEqual({ outcome: 'bad_proof' });
      expect(await refresh(grant, 1, { confirmation: KEY })).toMatchObject({ outcome: 'rotated', generation: 2 });
      expect(await refresh(grant, 0, { confirmation: KEY })).toMatchObject({ outcome: 'reused' });
    });

    it('keeps a bound refresh token that is never rotated', async () => {
      const grant = await ofPublicClient(KEY);
      for (let time = 0; time < 3; time++) {
        const answer = await refresh(grant, 0, { rotation: 'Never', confirmation: KEY });
        expect(answer).toMatchObject({ outcome: 'rotated', generation: 0 });
      }
      expect(await refresh(grant, 0, { rotation: 'Never', confirmation: OTHER })).toEqual({ outcome: 'bad_proof' });
    });

    it('rotates an unbound refresh token of a public client with any key, but none that is never rotated', async () => {
      const grant = await ofPublicClient(undefined);
      expect(await refresh(grant, 0, { confirmation: KEY })).toMatchObject({ outcome: 'rotated', generation: 1 });
      expect(await refresh(grant, 1, { confirmation: OTHER })).toMatchObject({ outcome: 'rotated', generation: 2 });
      expect(await refresh(grant, 2, {})).toMatchObject({ outcome: 'rotated', generation: 3 });
      for (const confirmation of [KEY, undefined]) {
        expect(await refresh(grant, 3, { rotation: 'Never', confirmation })).toEqual({ outcome: 'bad_proof' });
      }
    });

    it('binds no refresh token of a confidential client', async () => {
      const grant = await issued(grants, { confirmation: KEY });
      await grants.redeem(redeemRequest(grant, { confirmation: KEY }));
      for (const [generation, confirmation] of [undefined, OTHER, KEY].entries()) {
        expect(await grants.rotate(rotateRequest(grant, generation, { confirmation }))).toMatchObject({
          outcome: 'rotated',
        });
      }
    });

    it('binds the refresh tokens of one grant and not those of another', async () => {
      const [one, other] = [await ofPublicClient(KEY), await ofPublicClient(OTHER)];
      expect(await refresh(one, 0, { confirmation: OTHER })).toEqual({ outcome: 'bad_proof' });
      expect(await refresh(other, 0, { confirmation: OTHER })).toMatchObject({ outcome: 'rotated' });
    });
  });
}
