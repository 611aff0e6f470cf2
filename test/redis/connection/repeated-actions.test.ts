// What is asked for again after a refusal, from another connection, while the replica still lacks it. WAIT counts the last
// write of its own connection: an action that finds everything done has to write all the same.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { WatermarkSubject } from '../../../src/oauth/ports/token-stores.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import {
  digest,
  issued,
  MINUTE,
  redeemed,
  redeemRequest,
  rotateRequest,
  uniqueId,
} from '../../contracts/sample-grants.ts';
import { succeeds, until } from '../../until.ts';
import { connectTo } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');

/** Everything that is refused without acknowledgement: made ready, then done any number of times. */
const ACTIONS: Readonly<Record<string, (stores: Stores) => Promise<(stores: Stores) => Promise<unknown>>>> = {
  'raising the watermark of a person': raising({ kind: 'user', subject: 'usr_alice' }),
  'raising the global watermark': raising({ kind: 'global' }),
  async 'revoking a grant'(ready) {
    const { grantId } = await redeemed(ready.grants);
    return ({ grants }) => grants.revoke(grantId);
  },
  async 'revoking an opaque access token'(ready) {
    const token = await opaqueToken(ready);
    return ({ accessTokens }) => accessTokens.revoke(token);
  },
  async 'marking a JWT'() {
    const [jti, ends] = [uniqueId(), Math.ceil(Date.now() / 1000) + 60];
    return ({ revokedTokens }) => revokedTokens.mark(jti, ends);
  },
  async 'refreshing, each time as another try'(ready) {
    const grant = await redeemed(ready.grants);
    return ({ grants }) => grants.rotate(rotateRequest(grant, 0));
  },
  async 'refreshing, each time as the same try'(ready) {
    const request = rotateRequest(await redeemed(ready.grants), 0);
    return ({ grants }) => grants.rotate(request);
  },
};

function raising(subject: WatermarkSubject) {
  const time = Date.now();
  return async () => (stores: Stores) => stores.watermarks.raise(subject, time);
}

async function opaqueToken({ grants }: Stores): Promise<string> {
  const grant: Grant = await issued(grants);
  const tokenId = `${grant.grantId.slice(0, 3)}.${digest(uniqueId())}`;
  const issuedAtSeconds = Math.floor(Date.now() / 1000);
  const accessToken = { tokenId, issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + MINUTE / 1000 };
  await grants.redeem(redeemRequest(grant, { accessToken }));
  return tokenId;
}

/** Acts until it was done and is not acknowledged: on a busy machine it may be refused before. @throws when it is answered */
async function refusedForReplicas(act: () => Promise<unknown>): Promise<void> {
  await until('it is refused for want of replicas', async () => {
    const error = await act().then(
      () => {
        throw new Error('it was answered');
      },
      (refusal: unknown) => refusal,
    );
    expect(error).toBeInstanceOf(StoreUnavailableError);
    return (error as StoreUnavailableError).reason === 'not_acknowledged';
  });
}

describeRedis('an action that replicas have to acknowledge', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  let connections: ManagedConnection[] = [];
  beforeAll(async () => {
    // Nothing but what the tests write is replicated.
    const settings = { 'repl-ping-replica-period': 3600, 'repl-diskless-sync-delay': 0 };
    primary = await startRedis({ settings });
    replica = await startRedis({ settings: { ...settings, replicaof: `127.0.0.1 ${primary.port}` } });
  });
  beforeEach(async () => {
    await until('the replica is in step', async () => String(await replication()).includes('state=online'));
  });
  afterEach(async () => {
    replica.resume();
    await Promise.all(connections.map((connection) => connection.close()));
    connections = [];
  });
  afterAll(async () => {
    await replica.stop();
    await primary.stop();
  });

  const replication = () => primary.command('INFO', 'replication');
  // Not the replication offset: WAIT itself makes that grow by asking the replicas.
  const writes = async () => {
    const info = String(await primary.command('INFO', 'persistence'));
    return Number(/^rdb_changes_since_last_save:(\d+)/m.exec(info)?.[1]);
  };

  /** The stores of one more replica of grantry. */
  async function connected(acknowledgement?: { replicas: number; timeout: number }): Promise<Stores> {
    const connection = await connectTo(primary, { acknowledgement });
    connections.push(connection);
    return redisStores({ connection, keys });
  }

  for (const [name, ready] of Object.entries(ACTIONS)) {
    it(`is refused again as long as they do not, whichever replica repeats it, and done once they do: ${name}`, async () => {
      const act = await ready(await connected());
      replica.pause();
      const acknowledgement = { replicas: 1, timeout: 100 };
      for (let repetition = 0; repetition < 3; repetition++) {
        const before = await writes();
        const again = await connected(acknowledgement);
        await refusedForReplicas(() => act(again));
        expect(await writes()).toBeGreaterThan(before);
      }
      replica.resume();
      const patient = await connected({ replicas: 1, timeout: 500 });
      await until('it is acknowledged', () => succeeds(act(patient)));
    });
  }

  it('is not even sent for an opaque token that never was: no connection is leased', async () => {
    replica.pause();
    const leases = async () =>
      String(await primary.command('INFO', 'commandstats')).match(/^cmdstat_wait:calls=(\d+)/m)?.[1];
    const before = await leases();
    const { accessTokens } = await connected({ replicas: 1, timeout: 100 });
    const madeUp = Array.from({ length: 300 }, () => `000.${digest(uniqueId())}`);
    await Promise.all(madeUp.map((tokenId) => accessTokens.revoke(tokenId)));
    expect(await leases()).toBe(before);
  });

  it('is refused also where only its answer was lost: a redemption by the same try', async () => {
    const unsure = await connected();
    replica.pause();
    const careful = await connected({ replicas: 1, timeout: 100 });
    let before = 0;
    await refusedForReplicas(async () => {
      const request = redeemRequest(await issued(unsure.grants));
      expect(await unsure.grants.redeem(request)).toMatchObject({ outcome: 'redeemed' });
      before = await writes();
      await careful.grants.redeem(request);
    });
    expect(await writes()).toBeGreaterThan(before);
  });
});
