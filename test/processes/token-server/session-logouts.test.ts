// What ended sessions owe is settled by whichever replica finds it, once the store can be reached.

import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { memoryStores } from '../../../src/memory/stores.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { SessionLogouts } from '../../../src/processes/token-server/session-logouts.ts';
import { issued, SHARD, signedIn } from '../../contracts/sample-grants.ts';

const log = pino({ level: 'silent' });

/** A session that owes the logout of as many clients. */
async function ended(stores: Stores, clients: number) {
  const session = await signedIn(stores.sessions);
  const { sessionId, sid } = session;
  const grantIds: string[] = [];
  for (let client = 0; client < clients; client++) {
    const login = { sessionId, sid, offline: false };
    grantIds.push((await issued(stores.grants, { clientUid: `uid-${client}`, login })).grantId);
  }
  return { owed: await stores.sessions.end(session), grantIds };
}

async function areRevoked({ grants }: Stores, grantIds: readonly string[]): Promise<boolean> {
  const states = await Promise.all(grantIds.map((grantId) => grants.read(grantId)));
  return states.every((state) => state?.revoked === true);
}

const newStores = () => memoryStores({ clock: { now: () => 1_800_000_000_000 } });

describe('what an ended session owes', () => {
  it('left by a replica that is gone → the sweep of another one revokes its grants, and nothing is owed', async () => {
    const stores = newStores();
    const { grantIds } = await ended(stores, 40);
    await new SessionLogouts({ stores, log }).sweep();
    expect(await areRevoked(stores, grantIds)).toBe(true);
    expect(await stores.logouts.list(SHARD)).toEqual([]);
  });

  it('whose grants cannot be revoked now → is still owed, and settled by a later sweep', async () => {
    const stores = newStores();
    const { owed, grantIds } = await ended(stores, 2);
    const away = {
      ...stores.grants,
      revoke: async () => {
        throw new StoreUnavailableError('grantRevoke');
      },
    };
    const cutOff = new SessionLogouts({ stores: { ...stores, grants: away }, log });
    cutOff.enqueue(owed);
    await cutOff.sweep();
    expect(await stores.logouts.list(SHARD)).toHaveLength(2);
    await new SessionLogouts({ stores, log }).sweep();
    expect(await areRevoked(stores, grantIds)).toBe(true);
  });

  it('at once by the replica that ended it → settled before it stops; more than it takes is left to the sweep', async () => {
    const stores = newStores();
    const { owed, grantIds } = await ended(stores, 20);
    const logouts = new SessionLogouts({ stores, log });
    logouts.enqueue(owed);
    await logouts.stop();
    expect(await stores.logouts.list(SHARD)).toHaveLength(4);
    expect(await areRevoked(stores, grantIds.slice(0, 16))).toBe(true);
    logouts.enqueue(owed);
    await logouts.sweep();
    expect(await stores.logouts.list(SHARD)).toHaveLength(4);
  });
});
