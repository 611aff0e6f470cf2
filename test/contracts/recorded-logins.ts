// The contract of how many logins of one session `issue` records, and what becomes of those that make room.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { IssueAnswer } from '../../src/oauth/ports/grant-store.ts';
import type { Session } from '../../src/oauth/ports/login-stores.ts';
import { RECORDED_LOGINS } from '../../src/oauth/ports/logout-store.ts';
import {
  CODE_LIFETIME,
  RETENTION,
  redeemRequest,
  rotateRequest,
  SECRET_HASH,
  sampleGrant,
  signedIn,
} from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

interface Visit {
  readonly clientUid: string;
  readonly namespace?: string;
  readonly offline?: boolean;
}

/** Runs the contract on one implementation. */
export function recordedLoginsContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: the logins that a session records`, () => {
    let world: StoreWorld;
    let session: Session;
    beforeEach(async () => {
      world = await makeStores();
      session = await signedIn(world.stores.sessions);
    });
    afterEach(() => world.dispose());

    async function visit({ clientUid, namespace = 'shop', offline = false }: Visit) {
      const { sessionId, sid, subject } = session;
      const grant = sampleGrant({ subject, clientUid, login: { sessionId, sid, offline, namespace } });
      const answer: IssueAnswer = await world.stores.grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
      return { grant, answer };
    }

    it(`are its newest ${RECORDED_LOGINS}; the grant of the one before ends, so no grant outlives the session`, async () => {
      const oldest = await visit({ clientUid: 'uid-0' });
      expect(await world.stores.grants.redeem(redeemRequest(oldest.grant))).toMatchObject({ outcome: 'redeemed' });
      const newer: string[] = [];
      for (let made = 1; made < RECORDED_LOGINS; made++) {
        newer.push((await visit({ clientUid: `uid-${made % 10}` })).grant.grantId);
      }
      const last = await visit({ clientUid: 'uid-0' });
      expect(last.answer).toEqual({ outcome: 'issued', evicted: [], forgotten: oldest.grant.grantId });
      expect(await world.stores.grants.rotate(rotateRequest(oldest.grant, 0))).toEqual({ outcome: 'gone' });
      const pending = (await world.stores.sessions.end(session)).flatMap(({ grantIds }) => grantIds);
      expect([...pending].sort()).toEqual([...newer, last.grant.grantId].sort());
    });

    it('that make room end no grant that survives the session', async () => {
      const oldest = await visit({ clientUid: 'uid-0', offline: true });
      await world.stores.grants.redeem(redeemRequest(oldest.grant));
      for (let made = 0; made < RECORDED_LOGINS; made++) {
        expect((await visit({ clientUid: 'uid-0' })).answer).toEqual({ outcome: 'issued', evicted: [] });
      }
      expect(await world.stores.grants.rotate(rotateRequest(oldest.grant, 0))).toMatchObject({ outcome: 'rotated' });
    });

    it.each<[greedy: string, visitOf: (made: number) => Visit]>([
      ['a client that asks again and again', () => ({ clientUid: 'uid-of-greedy', offline: true })],
      ['many clients of one namespace', (made) => ({ clientUid: `uid-${made}`, namespace: 'greedy' })],
    ])('of a client are not pushed out by %s', async (_, visitOf) => {
      const own = { clientUid: 'uid-of-wiki', namespace: 'wiki' };
      const { grant } = await visit(own);
      for (let made = 0; made <= RECORDED_LOGINS; made++) {
        expect((await visit(visitOf(made))).answer.outcome).toBe('issued');
      }
      const pending = await world.stores.sessions.end(session);
      expect(pending.find(({ clientUid }) => clientUid === own.clientUid)).toMatchObject({ grantIds: [grant.grantId] });
    });
  });
}
