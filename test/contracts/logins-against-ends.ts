// The contract of a client's requests against a sign-out and another sign-in of the same person, in every order. Each action
// of a store is atomic, so orders are all there is.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Session } from '../../src/oauth/ports/login-stores.ts';
import { shardOfPerson } from '../../src/oauth/values/shard.ts';
import {
  CODE_LIFETIME,
  RETENTION,
  redeemRequest,
  rotateRequest,
  SECRET_HASH,
  sampleGrant,
  sampleSession,
  signedIn,
  uniqueId,
} from './sample-grants.ts';
import type { MakeStores, StoreWorld } from './store-world.ts';

const OF_THE_CLIENT = ['issue', 'redeem', 'rotate'] as const;
/** A pending logout is processed in two steps: its grants are revoked, then the client is notified. */
const OF_THE_SIGN_OUT = ['end', 'revoke', 'notify'] as const;
const OF_THE_BROWSER = ['sign in again'] as const;

type Step = (typeof OF_THE_CLIENT | typeof OF_THE_SIGN_OUT | typeof OF_THE_BROWSER)[number];

/** Every order of the steps of both that keeps the order of each. */
function mergesOf(one: readonly Step[], other: readonly Step[]): readonly (readonly Step[])[] {
  const [first, ...rest] = one;
  const [second, ...others] = other;
  if (first === undefined || second === undefined) return [[...one, ...other]];
  return [
    ...mergesOf(rest, other).map((merged) => [first, ...merged]),
    ...mergesOf(one, others).map((merged) => [second, ...merged]),
  ];
}

const ORDERS = mergesOf(OF_THE_CLIENT, OF_THE_SIGN_OUT).flatMap((order) => [order, ...mergesOf(order, OF_THE_BROWSER)]);

const BATCH = 20;

/** What an order has to come to. */
function expected(order: readonly Step[], offline: boolean) {
  const isBefore = (one: Step, other: Step) => !order.includes(other) || order.indexOf(one) < order.indexOf(other);
  const isIssued = isBefore('issue', 'end') && isBefore('issue', 'sign in again');
  const isAlive = (step: Step) => isIssued && (offline || isBefore(step, 'revoke'));
  const isRedeemed = isAlive('redeem');
  return {
    issue: isIssued ? 'issued' : 'signed_out',
    redeem: isRedeemed ? 'redeemed' : 'gone',
    rotate: isRedeemed && isAlive('rotate') ? 'rotated' : 'gone',
    notified: isIssued,
    livesOn: isIssued && offline,
    keepsItsSid: isBefore('sign in again', 'end'),
  };
}

/** Runs the contract on one implementation. */
export function loginsAgainstEndsContract(name: string, makeStores: MakeStores): void {
  describe(`${name}: a client signs in while its person signs out`, () => {
    let world: StoreWorld;
    beforeEach(async () => {
      world = await makeStores();
    });
    afterEach(() => world.dispose());

    async function pendingOf({ subject }: Session) {
      const all = await world.stores.logouts.list(shardOfPerson(subject), 1000);
      return all.filter((logout) => logout.subject === subject);
    }

    /** Takes the steps one after the other, for a person of its own. */
    async function seen(order: readonly Step[], offline: boolean) {
      const { grants, sessions, logouts } = world.stores;
      const session = await signedIn(sessions, { subject: `usr_${uniqueId()}` });
      const { subject, sessionId, sid } = session;
      const grant = sampleGrant({ subject, login: { sessionId, sid, offline, namespace: 'shop' } });
      const answers: Record<string, unknown> = { notified: false, keepsItsSid: true };
      const steps: Readonly<Record<Step, () => Promise<unknown>>> = {
        issue: async () => (await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION)).outcome,
        redeem: async () => (await grants.redeem(redeemRequest(grant))).outcome,
        rotate: async () => (await grants.rotate(rotateRequest(grant, 0))).outcome,
        end: () => sessions.end(session),
        async revoke() {
          for (const { grantIds } of await pendingOf(session))
            await Promise.all(grantIds.map((id) => grants.revoke(id)));
        },
        async notify() {
          for (const logout of await pendingOf(session)) {
            answers.notified = logout.sid === sid;
            await logouts.acknowledge(logout);
          }
        },
        async 'sign in again'() {
          const pendingBefore = await pendingOf(session);
          const next = await sessions.create(sampleSession({ subject }), undefined, session);
          expect(await pendingOf(session)).toEqual(pendingBefore);
          answers.keepsItsSid = next !== 'outdated' && next.sid === sid;
        },
      };
      for (const step of order) answers[step] = await steps[step]();
      const { issue, redeem, rotate, notified, keepsItsSid } = answers;
      const livesOn = (await grants.read(grant.grantId))?.revoked === false;
      expect(await pendingOf(session)).toEqual([]);
      return { issue, redeem, rotate, notified, livesOn, keepsItsSid };
    }

    it.each([false, true])(
      'in every order, offline_access %s → no other grant outlives its notice',
      async (offline) => {
        const outcomes: unknown[] = [];
        // Side by side: they have no person in common.
        for (let from = 0; from < ORDERS.length; from += BATCH) {
          const some = ORDERS.slice(from, from + BATCH).map(async (order) => {
            return { order: order.join(', '), seen: await seen(order, offline) };
          });
          outcomes.push(...(await Promise.all(some)));
        }
        expect(outcomes).toHaveLength(160);
        expect(outcomes).toEqual(ORDERS.map((order) => ({ order: order.join(', '), seen: expected(order, offline) })));
      },
    );
  });
}
