// What waits in the socket of a Redis that was stopped, and was refused meanwhile: when Redis goes on, the client has long done
// the same elsewhere, and more.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Alert } from '../../../src/oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { startProxy } from '../../chaos/tcp-proxy.ts';
import { digest, issued, redeemed, redeemRequest, rotateRequest, uniqueId } from '../../contracts/sample-grants.ts';
import { connectTo, WRITE } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';
import { alertsAbout } from '../setup/waiting-alerts.ts';

const keys = new RedisKeys('grantry:');
const REQUEST = {
  clientUid: 'uid-of-shop',
  clientId: 'default.shop',
  redirectUri: 'https://shop.example/cb',
  state: undefined,
  scope: ['read'],
  audiences: ['https://api.example'],
  codeChallenge: digest('verifier'),
};

describeRedis('a request that was refused while Redis was stopped', () => {
  let server: RedisServer;
  let open: ManagedConnection[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(async () => {
    server.resume();
    for (const connection of open) await connection.close();
    open = [];
  });
  afterAll(() => server.stop());

  /** One more replica of grantry, which has asked Redis already. */
  async function replica(acknowledgement?: ConnectionOptions['acknowledgement'], url = server.url) {
    const connection = await connectTo({ url }, { acknowledgement });
    open.push(connection);
    const { grants } = redisStores({ connection, keys });
    await redeemed(grants);
    return { connection, grants };
  }

  /** Stops Redis. What this connection sends from now on is run first when it goes on: it was the first to send. */
  function stopped({ connection }: { readonly connection: ManagedConnection }): void {
    server.pause();
    connection.run({ script: WRITE, keys: ['{s000}:test'] }).catch(() => {});
  }

  async function refused(asked: Promise<unknown>): Promise<void> {
    await expect(asked).rejects.toBeInstanceOf(StoreUnavailableError);
  }

  /** Redis goes on, and has seen to all that waited. */
  async function goesOn(): Promise<void> {
    server.resume();
    await server.command('PING');
    await server.command('PING');
  }

  async function alerts(grant: Grant): Promise<readonly Alert[]> {
    const { connection } = await replica();
    return await alertsAbout(grant, { connection, keys });
  }

  describe.each([
    ['the shared connection', undefined],
    ['a connection whose writes are acknowledged', { replicas: 0, timeout: 100 }],
  ])('on %s', (_name, acknowledgement) => {
    it('does not refresh any more: the successor was used since, which would look like reuse', async () => {
      const [waiting, other] = [await replica(acknowledgement), await replica()];
      const grant = await redeemed(other.grants);
      await other.grants.rotate(rotateRequest(grant, 0));
      stopped(other);
      await refused(waiting.grants.rotate(rotateRequest(grant, 0)));
      const use = other.grants.rotate(rotateRequest(grant, 1)).catch(() => {});
      await goesOn();
      await use;
      expect(await alerts(grant)).toEqual([]);
      expect(await (await replica()).grants.read(grant.grantId)).toMatchObject({ revoked: false });
    });

    it('does not redeem any more: the code was redeemed since, which would look like a replay', async () => {
      const [waiting, other] = [await replica(acknowledgement), await replica()];
      const grant = await issued(other.grants);
      stopped(other);
      await refused(waiting.grants.redeem(redeemRequest(grant)));
      const again = other.grants.redeem(redeemRequest(grant)).catch(() => {});
      await goesOn();
      await again;
      expect(await alerts(grant)).toEqual([]);
      expect(await (await replica()).grants.read(grant.grantId)).toMatchObject({ revoked: false });
    });

    it('has not run and never will, also where its connection broke before its time was over', async () => {
      const waiting = await replica(acknowledgement);
      const grant = await redeemed(waiting.grants);
      server.pause();
      const asked = refused(waiting.grants.rotate(rotateRequest(grant, 0)));
      // It is on its way by then.
      await sleep(50);
      await waiting.connection.close();
      await asked;
      await goesOn();
      expect(await (await replica()).grants.read(grant.grantId)).toMatchObject({ generation: 0 });
    });
  });

  it('does not take the decision of a person who was asked to load the page again', async () => {
    const { connection } = await replica();
    const { interactions } = redisStores({ connection, keys });
    const [interactionId, sessionId] = [digest(uniqueId()), digest(uniqueId())];
    const person = { subject: 'usr_alice', authTime: 1_700_000_000_000 };
    await interactions.create({ interactionId, sessionId, ...person, request: REQUEST }, 60_000);
    await interactions.decide(interactionId, sessionId, 'allow');
    server.pause();
    await refused(interactions.take(interactionId, sessionId, { attemptId: uniqueId(), after: [] }));
    await goesOn();
    const { connection: later } = await replica();
    const other = { attemptId: uniqueId(), after: [] };
    const taken = await redisStores({ connection: later, keys }).interactions.take(interactionId, sessionId, other);
    expect(taken).toMatchObject({ interactionId, decision: 'allow' });
  });

  it('is taken over by the next try where it was done and only its answer was lost', async () => {
    const way = await startProxy(server.port, () => false);
    try {
      const connection = await connectTo({ url: `redis://127.0.0.1:${way.port}` });
      open.push(connection);
      const { interactions } = redisStores({ connection, keys });
      const [interactionId, sessionId] = [digest(uniqueId()), digest(uniqueId())];
      const person = { subject: 'usr_alice', authTime: 1_700_000_000_000 };
      await interactions.create({ interactionId, sessionId, ...person, request: REQUEST }, 60_000);
      await interactions.decide(interactionId, sessionId, 'allow');
      const lost = uniqueId();
      way.setMode('swallow');
      await refused(interactions.take(interactionId, sessionId, { attemptId: lost, after: [] }));
      const { connection: other } = await replica();
      const later = redisStores({ connection: other, keys }).interactions;
      expect(await later.read(interactionId, sessionId)).toBeUndefined();
      expect(await later.take(interactionId, sessionId, { attemptId: uniqueId(), after: [] })).toBeUndefined();
      const taken = await later.take(interactionId, sessionId, { attemptId: uniqueId(), after: [lost] });
      expect(taken).toMatchObject({ interactionId, decision: 'allow' });
    } finally {
      await way.stop();
    }
  });

  it.each([-3600, 3600])('is not one of a Redis that is well and whose clock was set, by %i s', async (seconds) => {
    const { grants } = await replica();
    const families = await Promise.all([1, 2, 3].map(() => redeemed(grants)));
    const way = await startProxy(server.port, () => false);
    try {
      way.setClock(-seconds);
      const connection = await connectTo({ url: `redis://127.0.0.1:${way.port}` });
      open.push(connection);
      // Its answer comes after the one that says what time it is.
      await connection.run({ script: WRITE, keys: ['{s000}:test'] });
      way.setClock(0);
      const asked = redisStores({ connection, keys });
      for (let generation = 0; generation < 2; generation++) {
        const answers = families.map((grant) => asked.grants.rotate(rotateRequest(grant, generation)));
        for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ outcome: 'rotated' });
      }
    } finally {
      await way.stop();
    }
  });
});
