// The contracts of AccessTokenStore, RevokedTokenStore and WatermarkStore: what is alive among tokens already issued.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StoredAccessToken, WatermarkSubject } from '../../src/oauth/ports/token-stores.ts';
import { DAY, MINUTE, redeemRequest, SECRET_HASH, sampleGrant, signedIn, uniqueId } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

/** Runs the contract of opaque access tokens on one implementation. */
export function accessTokenStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: an opaque access token`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    async function written(): Promise<StoredAccessToken> {
      const now = Math.floor(world.now() / 1000);
      const token: StoredAccessToken = {
        tokenId: `012.${uniqueId()}`,
        issuedAtSeconds: now,
        expiresAtSeconds: now + 600,
        clientUid: 'uid-of-job',
        clientId: 'default.job',
        subject: 'default.job',
        scope: ['read'],
        audience: 'https://api.example',
        grantId: undefined,
        authTime: undefined,
      };
      await world.stores.accessTokens.write(token);
      return token;
    }

    it('is read as it was written', async () => {
      const token = await written();
      expect(await world.stores.accessTokens.read(token.tokenId)).toEqual(token);
    });

    it('is unknown under any other name', async () => {
      await written();
      expect(await world.stores.accessTokens.read('012.unknown')).toBeUndefined();
    });

    it('lives until just before its exp and not at it', async () => {
      const token = await written();
      const left = token.expiresAtSeconds * 1000 - world.now();
      world.advance(left - world.tick);
      expect(await world.stores.accessTokens.read(token.tokenId)).toEqual(token);
      world.advance(world.tick);
      expect(await world.stores.accessTokens.read(token.tokenId)).toBeUndefined();
    });

    it('is gone once revoked, alone', async () => {
      const [one, other] = [await written(), await written()];
      await world.stores.accessTokens.revoke(one.tokenId);
      await world.stores.accessTokens.revoke(one.tokenId);
      expect(await world.stores.accessTokens.read(one.tokenId)).toBeUndefined();
      expect(await world.stores.accessTokens.read(other.tokenId)).toEqual(other);
    });

    it('may be revoked without being known', async () => {
      await world.stores.accessTokens.revoke('012.unknown');
      expect(await world.stores.accessTokens.read('012.unknown')).toBeUndefined();
    });
  });
}

/** Runs the contract of marks on revoked JWT ids on one implementation. */
export function revokedTokenStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a mark on a revoked token id`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    it('is there once made, for that id alone', async () => {
      const expiresAtSeconds = Math.ceil(world.now() / 1000) + 600;
      await world.stores.revokedTokens.mark('one', expiresAtSeconds);
      expect(await world.stores.revokedTokens.has('one')).toBe(true);
      expect(await world.stores.revokedTokens.has('One')).toBe(false);
      expect(await world.stores.revokedTokens.has('')).toBe(false);
    });

    it('stays as long as the token would have lived', async () => {
      const expiresAtSeconds = Math.ceil(world.now() / 1000) + 600;
      await world.stores.revokedTokens.mark('one', expiresAtSeconds);
      world.advance(expiresAtSeconds * 1000 - world.now() - world.tick);
      expect(await world.stores.revokedTokens.has('one')).toBe(true);
    });

    it('goes some time after the token would have died by itself', async () => {
      await world.stores.revokedTokens.mark('one', Math.ceil(world.now() / 1000) + 600);
      world.advance(DAY);
      expect(await world.stores.revokedTokens.has('one')).toBe(false);
    });

    it('made again with a nearer end keeps the later one', async () => {
      const expiresAtSeconds = Math.ceil(world.now() / 1000) + 600;
      await world.stores.revokedTokens.mark('one', expiresAtSeconds);
      await world.stores.revokedTokens.mark('one', expiresAtSeconds - 590);
      world.advance(5 * MINUTE);
      expect(await world.stores.revokedTokens.has('one')).toBe(true);
    });
  });
}

/** Runs the contract of not-before watermarks on one implementation. */
export function watermarkStoreContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a watermark`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    const subjects: readonly WatermarkSubject[] = [
      { kind: 'global' },
      { kind: 'client', clientUid: 'shop' },
      { kind: 'user', subject: 'alice' },
      { kind: 'consent', clientUid: 'shop', subject: 'alice' },
    ];

    it('is 0 when none was raised', async () => {
      expect(await world.stores.watermarks.read('shop', 'alice')).toBe(0);
      expect(await world.stores.watermarks.read('shop', undefined)).toBe(0);
    });

    // Security row T4: every one of them is read, whichever others are set.
    for (let set = 1; set < 1 << subjects.length; set++) {
      const raised = subjects.filter((_, bit) => set & (1 << bit));
      it(`is the highest of ${raised.map((subject) => subject.kind).join(', ')}`, async () => {
        for (const top of raised) {
          const fresh = await makeStores();
          for (const subject of raised) await fresh.stores.watermarks.raise(subject, subject === top ? 5000 : 4000);
          expect(await fresh.stores.watermarks.read('shop', 'alice')).toBe(5000);
          await fresh.dispose();
        }
      });
    }

    it('only rises', async () => {
      for (const subject of subjects) {
        await world.stores.watermarks.raise(subject, 7000);
        await world.stores.watermarks.raise(subject, 6000);
        await world.stores.watermarks.raise(subject, 7000);
      }
      expect(await world.stores.watermarks.read('shop', 'alice')).toBe(7000);
      for (const subject of [...subjects].reverse()) await world.stores.watermarks.raise(subject, 8000);
      expect(await world.stores.watermarks.read('shop', 'alice')).toBe(8000);
    });

    it('ends at the same value in whatever order raises arrive', async () => {
      const times = [3000, 9000, 1000, 8000, 2000];
      await Promise.all(times.map((time) => world.stores.watermarks.raise({ kind: 'user', subject: 'alice' }, time)));
      expect(await world.stores.watermarks.read('shop', 'alice')).toBe(9000);
    });

    it('is raised to the time of the store where none is given, and no grant of an earlier sign-in is issued', async () => {
      const { watermarks, grants, sessions } = world.stores;
      for (const kind of ['user', 'consent', 'global'] as const) {
        const { authTime } = await signedIn(sessions);
        const subject = { kind, subject: 'usr_alice', clientUid: 'uid-of-shop' };
        const earliest = world.now();
        await watermarks.raise(subject);
        expect(await watermarks.read('uid-of-shop', 'usr_alice')).toBeGreaterThanOrEqual(earliest);
        expect(await grants.issue(sampleGrant({ authTime }), SECRET_HASH, MINUTE, MINUTE), kind).toEqual({
          outcome: 'outdated',
        });
        world.advance(world.tick);
        const later = await signedIn(sessions);
        expect(
          await grants.issue(sampleGrant({ authTime: later.authTime }), SECRET_HASH, MINUTE, MINUTE),
          kind,
        ).toMatchObject({ outcome: 'issued' });
      }
      const bob = { subject: 'usr_bob', authTime: 1 + (await watermarks.read('uid-of-shop', undefined)) };
      expect(await grants.issue(sampleGrant(bob), SECRET_HASH, MINUTE, MINUTE)).toMatchObject({ outcome: 'issued' });
    });

    it('that is raised while a grant is issued leaves no active grant of a sign-in before it, in 400 rounds', async () => {
      const { watermarks, grants } = world.stores;
      const active: unknown[] = [];
      const round = async () => {
        const grant = sampleGrant({ authTime: world.now() });
        const [{ outcome }] = await Promise.all([
          grants.issue(grant, SECRET_HASH, MINUTE, MINUTE),
          watermarks.raise({ kind: 'user', subject: grant.subject }),
        ]);
        const redeemed = outcome === 'issued' ? await grants.redeem(redeemRequest(grant)) : { outcome };
        const raised = await watermarks.read(grant.clientUid, grant.subject);
        if (redeemed.outcome === 'redeemed' && grant.authTime <= raised) active.push([outcome, grant.authTime, raised]);
      };
      for (let rounds = 0; rounds < 400; rounds += 20) {
        await Promise.all(Array.from({ length: 20 }, round));
        world.advance(1);
      }
      expect(active).toEqual([]);
    });

    it('of a client holds for all its people and for itself, and for no other client', async () => {
      await world.stores.watermarks.raise({ kind: 'client', clientUid: 'shop' }, 5000);
      expect(await world.stores.watermarks.read('shop', 'bob')).toBe(5000);
      expect(await world.stores.watermarks.read('shop', undefined)).toBe(5000);
      expect(await world.stores.watermarks.read('other', 'alice')).toBe(0);
    });

    it('of a person holds at every client, and for no other person', async () => {
      await world.stores.watermarks.raise({ kind: 'user', subject: 'alice' }, 5000);
      expect(await world.stores.watermarks.read('other', 'alice')).toBe(5000);
      expect(await world.stores.watermarks.read('shop', 'bob')).toBe(0);
      expect(await world.stores.watermarks.read('shop', undefined)).toBe(0);
    });

    it('of a pair holds for that pair alone', async () => {
      await world.stores.watermarks.raise({ kind: 'consent', clientUid: 'shop', subject: 'alice' }, 5000);
      expect(await world.stores.watermarks.read('other', 'alice')).toBe(0);
      expect(await world.stores.watermarks.read('shop', 'bob')).toBe(0);
      expect(await world.stores.watermarks.read('shop', undefined)).toBe(0);
    });

    it('does not mistake one kind, or one split of a pair, for another', async () => {
      await world.stores.watermarks.raise({ kind: 'user', subject: 'shop' }, 5000);
      await world.stores.watermarks.raise({ kind: 'consent', clientUid: 'a","b', subject: 'c' }, 5000);
      await world.stores.watermarks.raise({ kind: 'consent', clientUid: 'a:b', subject: 'c' }, 5000);
      expect(await world.stores.watermarks.read('shop', 'alice')).toBe(0);
      expect(await world.stores.watermarks.read('a', 'b","c')).toBe(0);
      expect(await world.stores.watermarks.read('a', 'b:c')).toBe(0);
    });

    it('outlives every grant', async () => {
      await world.stores.watermarks.raise({ kind: 'client', clientUid: 'shop' }, 5000);
      world.advance(90 * DAY);
      expect(await world.stores.watermarks.read('shop', 'alice')).toBe(5000);
    });
  });
}
