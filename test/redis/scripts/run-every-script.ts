// Runs every script there is, by the stores and by what belongs to no store: once each, and no more than that.

import { expect } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import type { RedisKeys } from '../../../src/redis/connection/keys.ts';
import type { StoreParts } from '../../../src/redis/connection/store-parts.ts';
import { claimIssuer } from '../../../src/redis/data-loss/issuer-claim.ts';
import { ShardMarkers } from '../../../src/redis/data-loss/shard-markers.ts';
import { DeliveryLeases } from '../../../src/redis/grants/delivery-leases.ts';
import { Outbox } from '../../../src/redis/grants/outbox.ts';
import type { PlainRead, Script } from '../../../src/redis/scripts/script.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import {
  DAY,
  digest,
  issued,
  MINUTE,
  redeemed,
  redeemRequest,
  rotatedTo,
  rotateRequest,
  SHARD,
  sampleGrant,
  tokenOf,
  uniqueId,
} from '../../contracts/sample-grants.ts';
import { methodsOf } from '../setup/connect.ts';

type Connect = (options?: Omit<ConnectionOptions, 'target'>) => Promise<ManagedConnection>;

/** Scripts that have run, by name. */
export type ScriptsRun = ReadonlyMap<string, Script | PlainRead>;

const MORE_THAN_THERE_ARE = 9;

/** @returns what has run. @throws where a script failed */
export async function runEveryScript(connect: Connect, keys: RedisKeys): Promise<ScriptsRun> {
  const run = new Map<string, Script | PlainRead>();
  const real = await connect();
  const parts = { connection: noted(real, run), keys };
  const stores = redisStores(parts);
  await grantsAndAlerts(stores, parts);
  await tokensAndCounters(stores);
  await signIns(stores);
  await deployment(parts);
  await stores.watermarks.raise({ kind: 'global' }, 1);
  const { errors } = await real.replayRevocations('all');
  if (errors.length > 0) throw errors[0];
  const unsure = await connect({ acknowledgement: { replicas: MORE_THAN_THERE_ARE, timeout: 1 } });
  await compensations(stores, { connection: noted(unsure, run), keys });
  return run;
}

async function grantsAndAlerts({ grants, watermarks }: Stores, parts: StoreParts): Promise<void> {
  const { grantId, clientUid } = await rotatedTo(grants, 1);
  await grants.subjectOf((await issued(grants)).grantId);
  await redisStores(parts).grants.subjectOf(grantId);
  await watermarks.read(clientUid, 'usr_alice');
  await grants.rotate(rotateRequest({ ...(await issued(grants)), grantId }, 0, { reuseGrace: 0 }));
  await grants.read(grantId);
  await grants.revoke(grantId);
  const [outbox, leases] = [new Outbox(parts), new DeliveryLeases(parts)];
  const [entry] = (await outbox.list(SHARD)).entries;
  const alertId = entry?.alert.id ?? '';
  await leases.take(alertId, { lease: 0, isAuditLogged: false });
  await leases.recordAuditLogged(alertId);
  await leases.postpone(alertId, 0);
  expect(await leases.isPendingFor(alertId, 'delivery')).toBe(true);
  for (const sink of ['controller', 'delivery'] as const) await leases.acknowledge(alertId, sink);
  expect(await outbox.discard(SHARD, alertId)).toBe(false);
}

async function tokensAndCounters({
  accessTokens,
  revokedTokens,
  watermarks,
  replays,
  rateLimits,
}: Stores): Promise<void> {
  const soon = Math.floor(Date.now() / 1000) + 600;
  const times = { issuedAtSeconds: soon - 600, expiresAtSeconds: soon };
  const token = { tokenId: `${SHARD}.${digest('a token')}`, ...times };
  await accessTokens.write(tokenOf({ ...sampleGrant() }, token, { scope: ['read'], audience: 'https://api.example' }));
  await accessTokens.read(token.tokenId);
  for (let times = 0; times < 2; times++) await accessTokens.revoke(token.tokenId);
  await revokedTokens.mark('jti', soon);
  await revokedTokens.has('jti');
  await watermarks.raise({ kind: 'client', clientUid: 'uid-of-mail' }, 1);
  await watermarks.raise({ kind: 'user', subject: 'usr_bob' }, 1);
  await watermarks.read('uid-of-mail', undefined);
  await replays.claim('test', 'value', Date.now() + MINUTE);
  await rateLimits.hit('key', 1, MINUTE);
  await rateLimits.refund('key');
}

async function signIns({ sessions, interactions, consents }: Stores): Promise<void> {
  const person = { subject: 'usr_alice', authTime: 1_700_000_000_000 };
  const lifetimes = { idleLifetime: DAY, absoluteLifetime: DAY };
  await sessions.create({ sessionId: 'a session', username: 'alice', displayName: 'Alice', ...person, ...lifetimes });
  await sessions.use('a session');
  await sessions.list('usr_alice');
  const { clientUid, clientId, redirectUri, scope, audiences } = sampleGrant();
  const request = { clientUid, clientId, redirectUri, scope, audiences, codeChallenge: '', state: undefined };
  await interactions.create({ interactionId: 'one', sessionId: 'a session', ...person, request }, MINUTE);
  await interactions.read('one', 'a session');
  await interactions.decide('one', 'a session', 'allow');
  await interactions.take('one', 'a session', { attemptId: uniqueId(), after: [] });
  await sessions.end('a session');
  await consents.give('usr_alice', clientUid, { scope: ['read'], audiences: [...audiences] }, DAY);
  await consents.read('usr_alice', clientUid);
  await consents.list('usr_alice');
  await consents.withdraw('usr_alice', clientUid);
}

/** What a process runs at its start, and afterwards each second. */
async function deployment(parts: StoreParts): Promise<void> {
  await claimIssuer(parts, { explicit: undefined, fallback: 'https://id.example' });
  const markers = new ShardMarkers(parts);
  const group = await markers.inspect(markers.groups[0] ?? SHARDS);
  await markers.restore(group, { watermark: 1, least: 1 });
  await markers.beat(group);
  await markers.raise(group, 2);
}

/** A redemption and a rotation that are refused, as too few replicas acknowledge them. */
async function compensations({ grants }: Stores, unsure: StoreParts): Promise<void> {
  const [code, grant] = [await issued(grants), await redeemed(grants)];
  const careful = redisStores(unsure).grants;
  await expect(careful.redeem(redeemRequest(code))).rejects.toThrow(StoreUnavailableError);
  await expect(careful.rotate(rotateRequest(grant, 0))).rejects.toThrow(StoreUnavailableError);
}

/** A connection that notes what is run. */
function noted(real: ManagedConnection, run: Map<string, Script | PlainRead>): ManagedConnection {
  const note = (script: Script | PlainRead) => run.set(script.name, script);
  return {
    ...methodsOf(real),
    run: (...action) => note(action[0].script) && real.run(...action),
    runDurably: (...action) => note(action[0].script) && real.runDurably(...action),
    recordForReplay: (...action) => note(action[0].script) && real.recordForReplay(...action),
  };
}
