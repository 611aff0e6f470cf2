// TLS everywhere: to the Sentinels and whatever they call the primary, and to every node of a Cluster.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { until } from '../../until.ts';
import { type Certificates, makeCertificates, tlsOf } from '../setup/certificates.ts';
import { connectTo, isAcknowledged, WRITE } from '../setup/connect.ts';
import { failOver } from '../setup/fail-over.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { redisSuite } from '../setup/redis-suite.ts';
import { startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis } from '../setup/servers.ts';

const ACKNOWLEDGED = { acknowledgement: { replicas: 1, timeout: 300 } };

const folder = mkdtempSync(join(tmpdir(), 'grantry-tls-'));
let certificates: Certificates;
beforeAll(() => {
  certificates = makeCertificates(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

const open: ManagedConnection[] = [];
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close();
});

async function connected(redis: { readonly url: string }, options: Omit<ConnectionOptions, 'target'> = {}) {
  const connection = await connectTo(redis, { credentials: () => certificates, ...options }, 15_000);
  open.push(connection);
  return connection;
}

/** Refuses a client that does not know the authority, has no certificate, or speaks no TLS. */
async function isClosedToOthers({ url }: { readonly url: string }): Promise<void> {
  const { ca, certificate, key } = certificates;
  const tried = [{ ca }, { certificate, key }].map((others) => connectTo({ url }, { credentials: () => others }, 1000));
  tried.push(connectTo({ url: url.replace('rediss', 'redis') }, {}, 1000));
  const refused = (await Promise.allSettled(tried)).map((each) => each.status === 'rejected' && each.reason);
  expect(refused).toEqual(tried.map(() => expect.any(StoreUnavailableError)));
}

describeRedis('Sentinels and their servers with TLS', () => {
  const redis = redisSuite(() => startReplicated({ tls: tlsOf(folder, certificates) }));

  it('are used with our certificate and their authority, before and after a fail-over', async () => {
    const connection = await connected(redis.server, ACKNOWLEDGED);
    expect(redis.server.url).toMatch(/^rediss\+sentinel:/);
    expect(await connection.run({ script: WRITE, keys: ['{s000}:x'] })).toBe('OK');
    const acknowledges = () => isAcknowledged(connection, '{s000}:x');
    await until('a replica acknowledges', acknowledges);
    await failOver(redis.server, [connection]);
    await until('a replica of the other primary acknowledges', acknowledges);
  }, 120_000);

  it('are closed to all other clients', () => isClosedToOthers(redis.server));
});

describeRedis('a Cluster with TLS', () => {
  const redis = redisSuite(() => startCluster({ replicated: true, tls: tlsOf(folder, certificates) }));

  it('is used with our certificate and its authority at every node', async () => {
    const connection = await connected(redis.server, ACKNOWLEDGED);
    expect(redis.server.url).toMatch(/^rediss\+cluster:/);
    for (const shard of SHARDS) expect(await connection.run({ script: WRITE, keys: [`{s${shard}}:x`] })).toBe('OK');
    for (const key of ['{s000}:x', '{s001}:x', '{s002}:x']) {
      await until('a replica acknowledges', () => isAcknowledged(connection, key));
    }
    for (const primary of redis.server.primaries) expect(await primary.command('DBSIZE')).toBeGreaterThan(0);
  });

  it('is closed to all other clients', () => isClosedToOthers(redis.server));
});
