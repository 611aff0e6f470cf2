// A server of grantry that comes to a Cluster with replicas as the guide has it: its rights, and what it may ask of replicas.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readSettings } from '../../../src/processes/config/config.ts';
import { createLog } from '../../../src/processes/log/log.ts';
import { openRedisState, type RedisState } from '../../../src/processes/redis/redis-state.ts';
import { redeemed, rotateRequest } from '../../contracts/sample-grants.ts';
import { until } from '../../until.ts';
import { guideUser } from '../setup/guide-rights.ts';
import { type RedisCluster, startCluster } from '../setup/redis-cluster.ts';
import { describeRedis } from '../setup/servers.ts';

describeRedis('a Cluster on which a server has the rights of the guide, and replicas acknowledge', () => {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-rights-'));
  let cluster: RedisCluster;
  let state: RedisState;

  beforeAll(async () => {
    cluster = await startCluster({ replicated: true });
    const { username, password } = await guideUser([...cluster.primaries, ...cluster.replicas]);
    writeFileSync(join(folder, 'password'), password);
    const environment = {
      GRANTRY_REDIS_URL: cluster.url,
      GRANTRY_REDIS_WAIT: '1:500',
      GRANTRY_REDIS_USERNAME: username,
      GRANTRY_REDIS_PASSWORD_FILE: join(folder, 'password'),
    };
    const { redis } = readSettings({ environment });
    if (redis === undefined) throw new Error('no Redis is configured');
    const issuer = { explicit: 'https://id.example', fallback: 'https://id.example' };
    state = await openRedisState({ redis, issuer, log: createLog('silent', process.stdout) });
  });
  afterAll(async () => {
    await state?.close();
    await cluster?.stop();
    rmSync(folder, { recursive: true });
  });

  it('is joined and watched by it, and inspected by it as by any server', () => {
    expect(state.readiness.fault()).toBeUndefined();
    // What there is to find, and nothing about rights or replicas.
    expect(state.probe.warnings()).toEqual(['no_append_only_file']);
  });

  it('acknowledges what is redeemed and refreshed there, and not when the replica stands still', async () => {
    const { grants, watermarks } = state.stores;
    const grant = await redeemed(grants);
    expect(await grants.rotate(rotateRequest(grant, 0))).toMatchObject({ outcome: 'rotated' });
    await watermarks.raise({ kind: 'client', clientUid: 'uid' }, 1);
    for (const replica of cluster.replicas) replica.pause();
    const refusal = await grants.rotate(rotateRequest(grant, 1)).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ reason: 'not_acknowledged' });
    for (const replica of cluster.replicas) replica.resume();
    await until('it is rotated', () =>
      grants.rotate(rotateRequest(grant, 1)).then(
        ({ outcome }) => outcome === 'rotated',
        () => false,
      ),
    );
  });

  it('has refused nothing for want of a right', async () => {
    for (const node of [...cluster.primaries, ...cluster.replicas])
      expect(await node.command('ACL', 'LOG')).toEqual([]);
  });
});
