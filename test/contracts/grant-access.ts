// The contract of GrantStore about audiences that differ: which scopes a token has at each, and how long it lives there.
// A refused request consumes nothing.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AccessRequest, Grant, GrantStore } from '../../src/oauth/ports/grant-store.ts';
import type { NewAccessToken } from '../../src/oauth/ports/token-stores.ts';
import {
  accessRequest,
  issued,
  redeemed,
  redeemRequest,
  rotateRequest,
  SECOND,
  SHARD,
  tokenOf,
  uniqueId,
} from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const [API, FILES, NOTES] = ['https://api.example', 'https://files.example', 'urn:example:notes'] as const;

/** Covers a scope of each audience, and one that both of the first have. */
const COVERED: Partial<Grant> = {
  scope: ['files.read', 'read', 'notes.read', 'common', 'write'],
  audiences: [API, FILES, NOTES],
};
const CAP = 60;
/** API has no rules: all that the client may have. */
const AT = {
  [FILES]: { scopes: ['common', 'files.read'], maxLifetimeSeconds: CAP },
  [NOTES]: { scopes: ['notes.read', 'notes.write'], maxLifetimeSeconds: undefined },
};

function asked(different: Partial<AccessRequest> = {}): { readonly access: AccessRequest } {
  const allowed = { allowedScopes: ['read', 'write', 'common'], allowedAudiences: [API, FILES, NOTES] };
  return { access: accessRequest({ ...allowed, at: AT, ...different }) };
}

type Sample = readonly [what: string, asked: Partial<AccessRequest>, given: { scope: string[]; audience: string }];

const GIVEN: readonly Sample[] = [
  ['nothing', {}, { scope: ['read', 'common', 'write'], audience: API }],
  ['the default audience', { defaultAudience: NOTES }, { scope: ['notes.read'], audience: NOTES }],
  ['an audience', { resource: FILES }, { scope: ['files.read', 'common'], audience: FILES }],
  [
    'a scope with parts of another audience',
    { resource: FILES, scope: ['write', 'common', 'notes.read', 'files.read'] },
    { scope: ['common', 'files.read'], audience: FILES },
  ],
  ['a scope that an audience without rules has', { scope: ['write'] }, { scope: ['write'], audience: API }],
  [
    'nothing where the first audience is no longer allowed',
    { allowedAudiences: [NOTES, FILES] },
    { scope: ['files.read', 'common'], audience: FILES },
  ],
];

type Excess = readonly [what: string, asked: Partial<AccessRequest>, outcome: 'scope_exceeded' | 'target_exceeded'];

const EXCESSES: readonly Excess[] = [
  ['a scope of the other audience only', { resource: FILES, scope: ['notes.read', 'write'] }, 'scope_exceeded'],
  ['a scope of its audience that was not granted', { resource: NOTES, scope: ['notes.write'] }, 'scope_exceeded'],
  ['a scope that no audience has', { at: { ...AT, [API]: AT[NOTES] }, scope: ['read', 'common'] }, 'scope_exceeded'],
  ['an audience without scopes', { at: { [FILES]: { ...AT[FILES], scopes: [] } }, resource: FILES }, 'scope_exceeded'],
  ['a dropped audience', { allowedAudiences: [API, FILES], resource: NOTES }, 'target_exceeded'],
  ['a scope of a dropped audience', { allowedAudiences: [API, FILES], scope: ['notes.read'] }, 'scope_exceeded'],
  [
    'a scope of a dropped audience, and that audience',
    { allowedAudiences: [API, FILES], resource: NOTES, scope: ['notes.read'] },
    'target_exceeded',
  ],
  ['nothing where all audiences are dropped', { allowedAudiences: [] }, 'target_exceeded'],
  ['a scope where all audiences are dropped', { allowedAudiences: [], scope: ['notes.read'] }, 'target_exceeded'],
];

/** Runs the contract on one implementation. */
export function grantAccessContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a grant whose audiences differ`, () => {
    let world: StoreWorld;
    let grants: GrantStore;
    beforeEach(async () => {
      world = await makeStores();
      grants = world.stores.grants;
    });
    afterEach(() => world.dispose());

    function newToken(): NewAccessToken {
      const now = Math.floor(world.now() / 1000);
      const macs = { mac: 'mac of the whole life', macAt: { [FILES]: 'mac of the cap' } };
      return { tokenId: `${SHARD}.${uniqueId()}`, issuedAtSeconds: now, expiresAtSeconds: now + 600, ...macs };
    }

    const stored = (token: NewAccessToken) => world.stores.accessTokens.read(token.tokenId);

    it.each(GIVEN)('given a request for %s → its scope at one audience, by code and by refresh', async (...sample) => {
      const [, different, given] = sample;
      const grant = await issued(grants, COVERED);
      const redemption = redeemRequest(grant, asked(different));
      expect(await grants.redeem(redemption)).toMatchObject({ outcome: 'redeemed', ...given });
      expect(await grants.redeem(redemption)).toMatchObject({ outcome: 'redeemed', ...given });
      const rotation = rotateRequest(grant, 0, asked(different));
      expect(await grants.rotate(rotation)).toMatchObject({ outcome: 'rotated', ...given });
      expect(await grants.rotate(rotation)).toMatchObject({ outcome: 'rotated', ...given });
      const retry = rotateRequest(grant, 0, asked(different));
      expect(await grants.rotate(retry)).toMatchObject({ outcome: 'benign_retry', ...given });
    });

    it.each(EXCESSES)('given a request for %s → refused, the code and the refresh token work on', async (...excess) => {
      const [, different, outcome] = excess;
      const grant = await issued(grants, COVERED);
      const accessToken = newToken();
      const refused = { ...asked(different), accessToken };
      expect(await grants.redeem(redeemRequest(grant, refused))).toEqual({ outcome });
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: undefined });
      expect(await grants.redeem(redeemRequest(grant, asked()))).toMatchObject({ outcome: 'redeemed' });

      const before = await grants.read(grant.grantId);
      for (const generation of [0, 3]) {
        expect(await grants.rotate(rotateRequest(grant, generation, refused))).toEqual({ outcome });
      }
      expect(await grants.read(grant.grantId)).toEqual(before);
      expect(await grants.rotate(rotateRequest(grant, 0, asked()))).toMatchObject({ outcome: 'rotated' });
      expect(await grants.rotate(rotateRequest(grant, 0, refused))).toEqual({ outcome });
      expect(await stored(accessToken)).toBeUndefined();
    });

    it('given narrowing at one audience → the next refresh has all of another: the grant is unchanged', async () => {
      const grant = await redeemed(grants, COVERED, asked({ resource: NOTES }).access);
      const answer = await grants.rotate(rotateRequest(grant, 0, asked({ resource: API })));
      expect(answer).toMatchObject({ scope: ['read', 'common', 'write'], grant: COVERED });
    });

    it('given rules that have changed since → the present ones count', async () => {
      const grant = await redeemed(grants, COVERED, asked({ resource: FILES }).access);
      const at = { [FILES]: { ...AT[FILES], scopes: ['common', 'write'] } };
      const answer = await grants.rotate(rotateRequest(grant, 0, asked({ at, resource: FILES })));
      expect(answer).toMatchObject({ scope: ['common', 'write'] });
    });

    describe('and an opaque access token', () => {
      const CAPPED = asked({ resource: FILES });

      it('for an audience with a cap → it ends there, with the MAC of that end, however it was made', async () => {
        const grant = await issued(grants, COVERED);
        const tokens = Array.from({ length: 4 }, newToken);
        const [first, second, third, fourth] = tokens.map((accessToken) => ({ ...CAPPED, accessToken }));
        await grants.redeem(redeemRequest(grant, first));
        await grants.rotate(rotateRequest(grant, 0, second));
        await grants.rotate(rotateRequest(grant, 0, third));
        await grants.rotate(rotateRequest(grant, 5, fourth));
        const given = { scope: ['files.read', 'common'], audience: FILES };
        for (const { macAt, ...token } of tokens) {
          const capped = { ...token, expiresAtSeconds: token.issuedAtSeconds + CAP, mac: macAt?.[FILES] };
          expect(await stored(token)).toEqual(tokenOf(grant, capped, given));
        }
      });

      it('for an audience with a cap → alive until just before it, and not at it', async () => {
        const grant = await issued(grants, COVERED);
        const accessToken = newToken();
        await grants.redeem(redeemRequest(grant, { ...CAPPED, accessToken }));
        world.advance((accessToken.issuedAtSeconds + CAP) * SECOND - world.now() - world.tick);
        expect(await stored(accessToken)).toBeDefined();
        world.advance(world.tick);
        expect(await stored(accessToken)).toBeUndefined();
      });

      it.each([
        ['without rules', API, AT],
        ['without a cap', NOTES, AT],
        ['with a longer cap', FILES, { [FILES]: { ...AT[FILES], maxLifetimeSeconds: 601 } }],
        ['where none differs', API, undefined],
      ])('for an audience %s → it lives as long as its client says', async (_, resource, at) => {
        const grant = await issued(grants, COVERED);
        const accessToken = newToken();
        const answer = await grants.redeem(redeemRequest(grant, { ...asked({ resource, at }), accessToken }));
        const { macAt, ...kept } = accessToken;
        const { scope = [] } = 'scope' in answer ? answer : {};
        expect(await stored(accessToken)).toEqual(tokenOf(grant, kept, { scope, audience: resource }));
      });
    });
  });
}
