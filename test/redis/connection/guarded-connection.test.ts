// A replica that serves refuses every action in a shard that it has not inspected yet, whichever store sends it.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import type { Session } from '../../../src/oauth/ports/login-stores.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { shardOfPerson } from '../../../src/oauth/values/shard.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { GuardedConnection } from '../../../src/redis/connection/guarded-connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { digest, redeemed, redeemRequest, rotateRequest, SHARD, uniqueId } from '../../contracts/sample-grants.ts';
import { connectTo, methodsOf } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');

const JTI = 'a token id';
const SHARD_OF_JTI = keys.shardOfKey(keys.revokedToken(JTI));

function signedIn(): Session {
  const subject = `usr_${uniqueId()}`;
  const sessionId = `${shardOfPerson(subject)}.${digest(uniqueId())}`;
  const times = { authTime: Date.now(), idleLifetime: 3_600_000, absoluteLifetime: 3_600_000 };
  return { sessionId, sid: digest(uniqueId()), subject, username: subject, displayName: subject, ...times };
}

/** Something that is asked of a store, and the shard that it is about. */
interface Asked {
  readonly shard: string;
  ask(stores: Stores): Promise<unknown>;
}

/** What ends something, and whether that is at its end. */
interface Ending extends Asked {
  isDone(stores: Stores): Promise<boolean>;
}

const ASKED: Readonly<Record<string, (grant: Grant) => Asked>> = {
  'redeem a code': (grant) => ({ shard: SHARD, ask: ({ grants }) => grants.redeem(redeemRequest(grant)) }),
  'rotate a refresh token': (grant) => ({ shard: SHARD, ask: ({ grants }) => grants.rotate(rotateRequest(grant, 0)) }),
  'revoke a grant': ({ grantId }) => ({ shard: SHARD, ask: ({ grants }) => grants.revoke(grantId) }),
  'read a grant': ({ grantId }) => ({ shard: SHARD, ask: ({ grants }) => grants.read(grantId) }),
  'revoke an opaque access token': () => ({
    shard: SHARD,
    ask: ({ accessTokens }) => accessTokens.revoke(`${SHARD}.${digest(uniqueId())}`),
  }),
  'mark a JWT': () => ({
    shard: SHARD_OF_JTI,
    ask: ({ revokedTokens }) => revokedTokens.mark(JTI, Math.ceil(Date.now() / 1000) + 600),
  }),
  'look for the mark on a JWT': () => ({
    shard: SHARD_OF_JTI,
    ask: ({ revokedTokens }) => revokedTokens.has(JTI),
  }),
  'withdraw a consent': ({ subject, clientUid }) => ({
    shard: keys.shardOfKey(keys.consentsOfUser(subject)),
    ask: ({ consents }) => consents.withdraw(subject, clientUid),
  }),
};

/** A try of these that was refused is replayed later all the same: an end that was requested may come late. */
const ENDED: Readonly<Record<string, (session: Session) => Ending>> = {
  'end a session': ({ sessionId, sid, subject }) => ({
    shard: keys.shardOfKey(keys.session(sessionId)),
    ask: ({ sessions }) => sessions.end({ sessionId, sid, subject }),
    isDone: async ({ sessions }) => (await sessions.use(sessionId)) === undefined,
  }),
  'raise a watermark': ({ subject, authTime }) => ({
    shard: shardOfPerson(subject),
    ask: ({ watermarks }) => watermarks.raise({ kind: 'user', subject }, authTime),
    isDone: async ({ watermarks }) => (await watermarks.read('any', subject)) === authTime,
  }),
};

describeRedis('in a shard that was not inspected yet', () => {
  let server: RedisServer;
  let real: ManagedConnection;
  let stores: Stores;
  /** Of a replica that has inspected all shards. */
  let others: Stores;
  const [open, sent, remembered] = [new Set<string>(), new Set<string>(), new Set<string>()];
  beforeAll(async () => {
    server = await startRedis();
    real = await connectTo(server);
  });
  afterAll(async () => {
    await real.close();
    await server.stop();
  });
  beforeEach(async () => {
    await real.replayRevocations('pending');
    for (const noted of [open, sent, remembered]) noted.clear();
    const noted: ManagedConnection = {
      ...methodsOf(real),
      run: (...action) => sent.add(action[0].script.name) && real.run(...action),
      runDurably: (...action) => sent.add(action[0].script.name) && real.runDurably(...action),
      recordForReplay: (...action) => remembered.add(action[0].script.name) && real.recordForReplay(...action),
    };
    const connection = new GuardedConnection({ connection: noted, keys, isOpen: (shard) => open.has(shard) });
    stores = redisStores({ connection, keys });
    others = redisStores({ connection: real, keys });
  });

  /** Asks before the shard is open. */
  async function refused({ ask }: Asked): Promise<void> {
    const refusal = await ask(stores).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal).toMatchObject({ reason: 'not_joined', retriable: true });
    // The compensation of a try that may have run is sent by itself, right after it.
    await real.info();
    expect([...sent]).toEqual([]);
  }

  /** Asks once it is. */
  async function admitted({ shard, ask }: Asked): Promise<void> {
    open.add(shard);
    await ask(stores);
    expect(sent.size).toBeGreaterThan(0);
  }

  it.each(Object.entries(ASKED))('nothing is sent, and nothing is to be done later: %s', async (_name, about) => {
    const asked = about(await redeemed(others.grants));
    await refused(asked);
    expect([...remembered]).toEqual([]);
    await admitted(asked);
  });

  it.each(Object.entries(ENDED))('nothing is sent until it was, and then it is done: %s', async (_name, about) => {
    const session = signedIn();
    await others.sessions.create(session, undefined);
    const asked = about(session);
    await refused(asked);
    expect(await asked.isDone(others)).toBe(false);
    expect(await real.replayRevocations('pending')).toEqual({ applied: 1, errors: [] });
    expect(await asked.isDone(others)).toBe(true);
    await admitted(asked);
  });
});
