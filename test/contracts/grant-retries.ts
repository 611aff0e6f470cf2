// The contract of GrantStore.noteRetryElsewhere: three generations in a row raise one alert, and nothing is ever revoked.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Alert } from '../../src/oauth/ports/audit.ts';
import type { Grant, GrantStore } from '../../src/oauth/ports/grant-store.ts';
import { issued, RETENTION, redeemed, rotateRequest, SECOND } from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const HOME = '192.0.2.7';
const AWAY = '198.51.100.7';

/** Runs the contract on one implementation. */
export function grantRetriesContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: retries of refresh tokens from another network`, () => {
    let world: StoreWorld;
    let grants: GrantStore;
    beforeEach(async () => {
      world = await makeStores();
      grants = world.stores.grants;
    });
    afterEach(() => world.dispose());

    /** A rotation at home and its retry from another network, which is recorded. */
    async function retried({ grantId, ...grant }: Grant, generation: number): Promise<Alert | undefined> {
      const at = (address: string) => rotateRequest({ grantId, ...grant }, generation, { address });
      expect(await grants.rotate(at(HOME))).toMatchObject({ outcome: 'rotated' });
      expect(await grants.rotate(at(AWAY))).toMatchObject({ outcome: 'benign_retry', rotatedFrom: HOME });
      return await grants.noteRetryElsewhere({ grantId, generation, address: AWAY, rotatedFrom: HOME });
    }
    const rotate = (grant: Grant, generation: number) => grants.rotate(rotateRequest(grant, generation));

    it('in five generations in a row → one alert, by the third, and the family lives', async () => {
      const grant = await redeemed(grants);
      const alerts: (Alert | undefined)[] = [];
      for (const generation of [0, 1, 2, 3, 4]) alerts.push(await retried(grant, generation));
      expect(alerts).toEqual([
        undefined,
        undefined,
        {
          id: `${grant.grantId}.refresh_token.retried_elsewhere`,
          type: 'refresh_token.retried_elsewhere',
          action: 'answered_again',
          time: expect.any(Number),
          clientUid: grant.clientUid,
          clientId: grant.clientId,
          subject: grant.subject,
          grantId: grant.grantId,
          presentedGeneration: 2,
          currentGeneration: 3,
          address: AWAY,
          lastAddress: HOME,
        },
        undefined,
        undefined,
      ]);
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 5 });
    });

    it('in two of three generations, however often → no alert', async () => {
      const grant = await redeemed(grants);
      for (const generation of [0, 1, 3, 4, 6, 7]) {
        if (generation % 3 === 0 && generation > 0) await rotate(grant, generation - 1);
        expect(await retried(grant, generation)).toBeUndefined();
      }
      await rotate(grant, 8);
      for (const generation of [9, 10]) expect(await retried(grant, generation)).toBeUndefined();
      expect(await retried(grant, 11)).toMatchObject({ type: 'refresh_token.retried_elsewhere' });
    });

    it('often in one generation, at the same time and late → counted once', async () => {
      const grant = await redeemed(grants);
      const note = (generation: number) =>
        grants.noteRetryElsewhere({ grantId: grant.grantId, generation, address: AWAY, rotatedFrom: HOME });
      await retried(grant, 0);
      await retried(grant, 1);
      const again = await Promise.all([1, 0, 1, 0, 1].map(note));
      expect(again).toEqual(again.map(() => undefined));
      await rotate(grant, 2);
      const answers = await Promise.all(Array.from({ length: 20 }, () => note(2)));
      expect(answers.filter((alert) => alert !== undefined)).toHaveLength(1);
      expect(await grants.read(grant.grantId)).toMatchObject({ revoked: false, generation: 3 });
    });

    it('of a grant that is revoked, unredeemed or unknown → nothing', async () => {
      const dead = await redeemed(grants);
      await retried(dead, 0);
      await retried(dead, 1);
      await grants.revoke(dead.grantId);
      for (const { grantId } of [dead, await issued(grants), { grantId: '000.unknown' }]) {
        const retry = { grantId, generation: 2, address: AWAY, rotatedFrom: HOME };
        expect(await grants.noteRetryElsewhere(retry)).toBeUndefined();
      }
      expect(await grants.read('000.unknown')).toBeUndefined();
    });

    it('do not keep a grant longer', async () => {
      const grant = await redeemed(grants);
      world.advance(RETENTION - SECOND);
      const retry = { grantId: grant.grantId, generation: 0, address: AWAY, rotatedFrom: HOME };
      await grants.noteRetryElsewhere(retry);
      world.advance(SECOND);
      expect(await grants.read(grant.grantId)).toBeUndefined();
    });
  });
}
