// A refresh that ran and whose answer was not delivered, retried when every grace is over: by a replica that does not
// know of it, over a connection that works. The clock of the test moves; compensations are recorded, and replayed by
// the test.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Grant, GrantStore, RotateRequest } from '../../../src/oauth/ports/grant-store.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { DAY, MINUTE, redeemed, rotateRequest } from '../../contracts/sample-grants.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');
const GRACE = 10_000;

describeRedis('a refresh whose answer was not delivered', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let offset = 0;
  /** Of a replica that gets its answers. */
  let grants: GrantStore;
  let grant: Grant;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectPatiently(server, { clockOffset: () => offset });
    ({ grants } = redisStores({ connection, keys }));
  });
  beforeEach(async () => {
    grant = await redeemed(grants);
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  type Fault = 'the answer is lost' | 'too few replicas acknowledge';

  /** A try of a replica that can do nothing more; it does not know itself what became of it. */
  async function givenUp(fault: Fault, generation: number, different: Partial<RotateRequest> = {}) {
    const remembered: (() => Promise<unknown>)[] = [];
    let isAway = false;
    const failing = redisStores({
      keys,
      connection: {
        allowsCrossSlot: true,
        async run(action, deadline) {
          if (isAway) throw new StoreUnavailableError(action.script.name);
          return await connection.run(action, deadline);
        },
        async runDurably(action, deadline) {
          const reply = await connection.run(action, deadline);
          isAway = true;
          if (fault === 'too few replicas acknowledge') return { reply, acknowledged: false };
          throw new StoreUnavailableError(action.script.name, new Error('Connection is closed.'));
        },
        recordForReplay: (action) => remembered.push(() => connection.run(action)),
      },
    });
    const asked = failing.grants.rotate(rotateRequest(grant, generation, different));
    await expect(asked).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(remembered).toHaveLength(1);
    /** Redis can be reached again. */
    return async () => {
      for (const again of remembered) await again();
    };
  }

  const refresh = (generation: number, different: Partial<RotateRequest> = {}) =>
    grants.rotate(rotateRequest(grant, generation, different));

  const graceIsOver = () => {
    offset += GRACE + MINUTE;
  };

  describe.each<Fault>(['the answer is lost', 'too few replicas acknowledge'])('because %s', (fault) => {
    it('may be repeated however late, and has the same successor, which is good', async () => {
      const known = await givenUp(fault, 0);
      await known();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'rotated', generation: 1 });
      expect(await refresh(1)).toMatchObject({ outcome: 'rotated', generation: 2 });
    });

    it('may be repeated late though its repetition was given up too, in whatever order that becomes known', async () => {
      for (const order of ['first to last', 'last to first', 'first to last, and all again']) {
        grant = await redeemed(grants);
        const all = [await givenUp(fault, 0), await givenUp(fault, 0)];
        if (order === 'last to first') all.reverse();
        for (const known of all) await known();
        if (order.endsWith('again')) for (const known of all) await known();
        graceIsOver();
        expect(await refresh(0)).toMatchObject({ outcome: 'rotated', generation: 1 });
      }
    });

    it('may be repeated late though several were on their way at once before any of that became known', async () => {
      const all = [];
      for (let tries = 0; tries < 4; tries++) all.push(await givenUp(fault, 0));
      for (const known of all) await known();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'rotated', generation: 1 });
      expect(await refresh(1)).toMatchObject({ outcome: 'rotated', generation: 2 });
    });

    it('is reuse where more were on their way at once than are recorded', async () => {
      const all = [];
      for (let tries = 0; tries < 12; tries++) all.push(await givenUp(fault, 0));
      for (const known of all) await known();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'reused' });
    });

    it('begins a new grace when it is repeated, and is over then: after that it is reuse', async () => {
      const known = await givenUp(fault, 0);
      await known();
      graceIsOver();
      await refresh(0);
      await known();
      expect(await refresh(0)).toMatchObject({ outcome: 'benign_retry', generation: 1 });
      await known();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'reused' });
    });

    it.each(['before', 'after'])('is reuse where another was given the successor, %s it became known', async (when) => {
      const known = await givenUp(fault, 0);
      if (when === 'after') await known();
      expect(await refresh(0)).toMatchObject({ generation: 1 });
      await known();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'reused' });
    });

    it('is reuse where one of several repetitions was answered', async () => {
      const known = [await givenUp(fault, 0), await givenUp(fault, 0)];
      expect(await refresh(0)).toMatchObject({ outcome: 'benign_retry', generation: 1 });
      known.push(await givenUp(fault, 0));
      for (const again of known) await again();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'reused' });
    });

    it('is reuse once the successor was used', async () => {
      const known = await givenUp(fault, 0);
      expect(await refresh(1)).toMatchObject({ outcome: 'rotated', generation: 2 });
      await known();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'reused' });
    });

    it('may be repeated late also where the refresh before it was repeated, and that answered', async () => {
      await refresh(0);
      expect(await refresh(0)).toMatchObject({ outcome: 'benign_retry', generation: 1 });
      const known = await givenUp(fault, 1);
      await known();
      graceIsOver();
      expect(await refresh(1)).toMatchObject({ outcome: 'rotated', generation: 2 });
    });

    it('says nothing of tokens before it', async () => {
      await refresh(0);
      const known = await givenUp(fault, 1);
      await known();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'reused' });
    });

    it('says nothing of the token before it where nothing was rotated', async () => {
      await refresh(0);
      const known = await givenUp(fault, 1, { rotation: 'Never' });
      await known();
      graceIsOver();
      expect(await refresh(0)).toMatchObject({ outcome: 'reused' });
    });

    it('never takes the family back, also where its client rotates no longer', async () => {
      const known = await givenUp(fault, 0);
      await known();
      expect(await refresh(0, { rotation: 'Never' })).toMatchObject({ outcome: 'rotated', generation: 1 });
      expect(await refresh(1, { rotation: 'Never' })).toMatchObject({ outcome: 'rotated', generation: 1 });
    });

    it('may be repeated late though its repetition was given up too, of a client that rotates no longer', async () => {
      for (const rotation of ['Always', 'Never'] as const) {
        const known = await givenUp(fault, 0, { rotation });
        await known();
        graceIsOver();
      }
      expect(await refresh(0)).toMatchObject({ outcome: 'rotated', generation: 1 });
    });
  });

  it('keeps no family alive for longer', async () => {
    const known = await givenUp('the answer is lost', 0);
    await known();
    offset += 15 * DAY;
    expect(await refresh(0)).toEqual({ outcome: 'gone' });
  });

  it('leaves a revoked family revoked, and nothing behind of one that is not there', async () => {
    const known = await givenUp('the answer is lost', 0);
    await grants.revoke(grant.grantId);
    await known();
    expect(await refresh(0)).toEqual({ outcome: 'gone' });
    await server.command('DEL', keys.grant(grant.grantId));
    await known();
    expect(await server.command('EXISTS', keys.grant(grant.grantId))).toBe(0);
  });
});
