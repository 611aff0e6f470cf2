// The contract of GrantStore.issue: how many grants and codes of one person at one client are kept.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Grant,
  type GrantStore,
  KEPT_CODES,
  KEPT_GRANTS,
  MOST_RECORDS,
} from '../../src/oauth/ports/grant-store.ts';
import {
  CODE_LIFETIME,
  issued,
  RETENTION,
  redeemRequest,
  rotateRequest,
  SECRET_HASH,
  sampleGrant,
} from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

/** Runs the contract on one implementation. */
export function grantEvictionContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: the grants of one person at one client`, () => {
    let world: StoreWorld;
    let grants: GrantStore;
    beforeEach(async () => {
      world = await makeStores();
      grants = world.stores.grants;
    });
    afterEach(() => world.dispose());

    const issue = (grant: Grant) => grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
    const issueOne = () => issue(sampleGrant());

    /** Grants whose codes were issued in this order. */
    async function codesOf(count: number, different: Partial<Grant> = {}): Promise<readonly Grant[]> {
      const all: Grant[] = [];
      while (all.length < count) all.push(await issued(grants, different));
      return all;
    }

    async function grantsOf(count: number, different: Partial<Grant> = {}): Promise<readonly Grant[]> {
      const all: Grant[] = [];
      // Fewer at a time than codes are kept.
      while (all.length < count) {
        const some = await codesOf(Math.min(KEPT_CODES, count - all.length), different);
        await Promise.all(some.map((grant) => grants.redeem(redeemRequest(grant))));
        all.push(...some);
      }
      return all;
    }

    const idsOf = (all: readonly Grant[]) => all.map(({ grantId }) => grantId);

    /** Which of these can be refreshed. */
    async function active(all: readonly Grant[]): Promise<readonly string[]> {
      const answers = await Promise.all(all.map((grant) => grants.rotate(rotateRequest(grant, 0))));
      return idsOf(all.filter((_, index) => answers[index]?.outcome === 'rotated'));
    }

    it('as many as there may be → with the next code the oldest end, and the answer names them', async () => {
      const all = await grantsOf(MOST_RECORDS);
      const [old, young] = [all.slice(0, -KEPT_GRANTS), all.slice(-KEPT_GRANTS)];
      const last = sampleGrant();
      expect(await issue(last)).toEqual({ outcome: 'issued', evicted: idsOf(old) });
      expect(await grants.read(old[0]?.grantId ?? '')).toBeUndefined();
      expect(await active(all)).toEqual(idsOf(young));
      expect(await grants.redeem(redeemRequest(last))).toMatchObject({ outcome: 'redeemed' });
      expect(await issueOne()).toEqual({ outcome: 'issued', evicted: [] });
    });

    it('1 000 codes are opened → no grant ends, and the newest codes can be redeemed', async () => {
      const all = await grantsOf(KEPT_GRANTS);
      const codes = await codesOf(1000);
      expect(await active(all)).toEqual(idsOf(all));
      const newest = await Promise.all(codes.slice(-KEPT_CODES).map((code) => grants.redeem(redeemRequest(code))));
      expect(newest.map(({ outcome }) => outcome)).toEqual(newest.map(() => 'redeemed'));
      const states = await Promise.all(codes.map(({ grantId }) => grants.read(grantId)));
      expect(states.filter((state) => state !== undefined).length).toBeLessThanOrEqual(MOST_RECORDS - KEPT_GRANTS);
    });

    it('a revoked grant goes before an active one, and is not named', async () => {
      const all = await grantsOf(MOST_RECORDS);
      const revoked = all.slice(-(MOST_RECORDS - KEPT_GRANTS - 1));
      for (const { grantId } of revoked) await grants.revoke(grantId);
      expect(await issueOne()).toEqual({ outcome: 'issued', evicted: idsOf(all.slice(0, 1)) });
      const left = all.filter((grant) => !revoked.includes(grant)).slice(1);
      expect(await active(all)).toEqual(idsOf(left));
    });

    it('codes that have expired make no other one go', async () => {
      const all = await grantsOf(KEPT_GRANTS);
      await codesOf(MOST_RECORDS - KEPT_GRANTS - 20);
      world.advance(CODE_LIFETIME);
      const codes = await codesOf(20);
      expect(await issueOne()).toEqual({ outcome: 'issued', evicted: [] });
      expect(await active(all)).toEqual(idsOf(all));
      const answers = await Promise.all(codes.map((code) => grants.redeem(redeemRequest(code))));
      expect(answers.map(({ outcome }) => outcome)).toEqual(codes.map(() => 'redeemed'));
    });

    it('what the person has at another client, or another person at this one, stays and does not count', async () => {
      const most = MOST_RECORDS - 1;
      const elsewhere = await grantsOf(most, { clientUid: 'uid-of-another', clientId: 'default.another' });
      const others = await grantsOf(most, { subject: 'usr_bob' });
      const own = await grantsOf(most);
      expect(await issueOne()).toEqual({ outcome: 'issued', evicted: [] });
      expect(await issueOne()).toMatchObject({ evicted: idsOf(own.slice(0, -KEPT_GRANTS)) });
      expect(await active(elsewhere)).toEqual(idsOf(elsewhere));
      expect(await active(others)).toEqual(idsOf(others));
    });

    it('issued a second time counts once', async () => {
      const all = await grantsOf(MOST_RECORDS - 2);
      const again = sampleGrant();
      for (let times = 0; times < 3; times++) expect(await issue(again)).toEqual({ outcome: 'issued', evicted: [] });
      expect(await active(all)).toEqual(idsOf(all));
    });

    it('a person who has to sign in again makes no room', async () => {
      const all = await grantsOf(MOST_RECORDS);
      expect(await world.stores.grants.read(all[0]?.grantId ?? '')).toBeDefined();
      await world.stores.watermarks.raise({ kind: 'consent', clientUid: 'uid-of-shop', subject: 'usr_alice' }, 5000);
      const outdated = await issue(sampleGrant({ authTime: 4000 }));
      expect(outdated).toEqual({ outcome: 'outdated' });
      expect(await active(all)).toEqual(idsOf(all));
    });

    it('50 codes at once where there is no room → the newest grants stay, and there is room after the next ones', async () => {
      const before = await grantsOf(MOST_RECORDS - 1);
      // As many as one person may ask for; concurrent calls do not see each other's codes.
      const codes = await Promise.all(Array.from({ length: KEPT_CODES }, () => issued(grants)));
      await Promise.all(codes.map((code) => grants.redeem(redeemRequest(code))));
      await codesOf(MOST_RECORDS - KEPT_GRANTS);
      const left = await active([...before, ...codes]);
      expect(left.length).toBeGreaterThanOrEqual(KEPT_GRANTS);
      expect(left.length).toBeLessThanOrEqual(MOST_RECORDS);
    });
  });
}
