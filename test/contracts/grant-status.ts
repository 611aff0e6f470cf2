// The contract of GrantStore.status: what a token of a grant depends on.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Grant, NewGrant } from '../../src/oauth/ports/grant-store.ts';
import type { WatermarkSubject } from '../../src/oauth/ports/token-stores.ts';
import { shardOfPerson } from '../../src/oauth/values/shard.ts';
import { CODE_LIFETIME, RETENTION, redeemRequest, SECRET_HASH, sampleGrant } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

/** Runs the contract on one implementation. */
export function grantStatusContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: the status of a grant`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    async function issued(different: Partial<NewGrant> = {}): Promise<Grant> {
      const grant = sampleGrant(different);
      await world.stores.grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
      return grant;
    }

    const statusOf = (grant: Grant, different: Partial<Grant> = {}) =>
      world.stores.grants.status(grant.grantId, { ...grant, ...different });

    it('given a code, a redeemed and a revoked grant → the state that is read, and no watermark', async () => {
      const { grants } = world.stores;
      const grant = await issued();
      expect(await statusOf(grant)).toEqual({ ...(await grants.read(grant.grantId)), watermark: 0 });
      await grants.redeem(redeemRequest(grant));
      expect(await statusOf(grant)).toEqual({ ...(await grants.read(grant.grantId)), watermark: 0 });
      expect(await statusOf(grant)).toMatchObject({ generation: 0, revoked: false });
      await grants.revoke(grant.grantId);
      expect(await statusOf(grant)).toMatchObject({ generation: 0, revoked: true });
    });

    it('given none, and past its lifetime → undefined', async () => {
      const grant = await issued();
      expect(await statusOf(sampleGrant())).toBeUndefined();
      world.advance(CODE_LIFETIME);
      expect(await statusOf(grant)).toBeUndefined();
    });

    it('given another client, or another person of the shard, than the grant’s → the grant with their watermark', async () => {
      const { watermarks } = world.stores;
      const grant = await issued();
      const subject = personOfShard(shardOfPerson(grant.subject));
      await watermarks.raise({ kind: 'client', clientUid: 'uid-of-mail' }, 4000);
      await watermarks.raise({ kind: 'user', subject }, 5000);
      expect(await statusOf(grant, { clientUid: 'uid-of-mail' })).toMatchObject({ grant, watermark: 4000 });
      expect(await statusOf(grant, { subject })).toMatchObject({ grant, watermark: 5000 });
      expect(await statusOf(grant)).toMatchObject({ grant, watermark: 0 });
    });

    it('given a person of another shard → no grant of another person', async () => {
      const grant = await issued();
      const status = await statusOf(grant, { subject: 'usr_bob' });
      expect(status?.grant.subject ?? grant.subject).toBe(grant.subject);
    });

    it.each<WatermarkSubject>([
      { kind: 'global' },
      { kind: 'client', clientUid: 'uid-of-shop' },
      { kind: 'user', subject: 'usr_alice' },
      { kind: 'consent', clientUid: 'uid-of-shop', subject: 'usr_alice' },
    ])('given a watermark of $kind → that, and the highest of two', async (subject) => {
      const { watermarks } = world.stores;
      const grant = await issued();
      await watermarks.raise(subject, 5000);
      expect(await statusOf(grant)).toMatchObject({ watermark: 5000 });
      await watermarks.raise({ kind: 'user', subject: 'usr_alice' }, 4000);
      await watermarks.raise({ kind: 'client', clientUid: 'uid-of-shop' }, 3000);
      expect(await statusOf(grant)).toMatchObject({ watermark: 5000 });
    });

    it('given watermarks of another client and another person → none', async () => {
      const { watermarks } = world.stores;
      const grant = await issued();
      await watermarks.raise({ kind: 'client', clientUid: 'uid-of-mail' }, 5000);
      await watermarks.raise({ kind: 'user', subject: 'usr_bob' }, 5000);
      await watermarks.raise({ kind: 'consent', clientUid: 'uid-of-mail', subject: 'usr_alice' }, 5000);
      expect(await statusOf(grant)).toMatchObject({ watermark: 0 });
    });
  });
}

/** Another person of a shard. */
function personOfShard(shard: string): string {
  for (let number = 0; ; number += 1) {
    const subject = `usr_${number}`;
    if (shardOfPerson(subject) === shard) return subject;
  }
}
