// The Redis of `redis.dev` as the chart configures it: the arguments of its container run on a real redis-server.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { REDIS_SECRET } from '../../src/admission/references/secret-parts.ts';
import { readSettings, type Settings } from '../../src/processes/config/config.ts';
import { createLog } from '../../src/processes/log/log.ts';
import { openRedisState } from '../../src/processes/redis/redis-state.ts';
import type { Manifest } from '../cluster/setup/cluster.ts';
import { connectTo } from '../redis/setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../redis/setup/servers.ts';
import { MINIMAL, render } from './helm.ts';

// As an option this value would end redis-server.
const PASSWORD = '--port-of-the-password-in-base64url_00000000';

interface Pod {
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly env?: readonly { readonly name: string; readonly valueFrom: { readonly secretKeyRef: object } }[];
    readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  }[];
  readonly volumes: readonly { readonly name: string; readonly secret: object }[];
}

describeRedis('redis.dev of the chart', () => {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-redis-dev-'));
  let objects: readonly Manifest[];
  let settings: Settings;
  let server: RedisServer;

  beforeAll(async () => {
    objects = await render(MINIMAL);
    const config = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'grantry');
    settings = readSettings({ environment: config?.data as Record<string, string> });
    const [container] = podOf('grantry-redis').containers;
    const flags = (container?.args ?? []).map((word) => word.replace('$(REDISCLI_AUTH)', PASSWORD));
    expect(flags.slice(0, 2)).toEqual(['--dir', '/data']);
    server = await startRedis({ flags: flags.slice(2), client: { password: PASSWORD } });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true });
  });

  function podOf(name: string): Pod {
    const found = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name);
    if (found === undefined) throw new Error(`no Deployment ${name}`);
    return (found.spec as { template: { spec: Pod } }).template.spec;
  }

  it('refuses a client without the password, and one with another', async () => {
    for (const [credentials, refusal] of [
      [{}, 'NOAUTH'],
      [{ password: 'another' }, 'WRONGPASS'],
    ] as const) {
      const refused = await connectTo(server, { credentials: () => credentials }, 400).catch((error: Error) => error);
      expect(String((refused as Error).cause)).toContain(refusal);
    }
  });

  it('serves a token server that reads the password from its file', async () => {
    const passwordFile = join(folder, 'password');
    writeFileSync(passwordFile, PASSWORD);
    const { redis } = readSettings({ environment: { GRANTRY_REDIS_URL: server.url } });
    if (redis === undefined) throw new Error('no Redis is configured');
    const issuer = { explicit: settings.issuer, fallback: settings.issuer };
    const log = createLog('silent', process.stdout);
    const state = await openRedisState({ redis: { ...redis, passwordFile, strict: true }, issuer, log });
    expect(await state.stores.replays.claim('test', 'value', Date.now() + 60_000)).toBe('fresh');
    await state.close();
  });

  it('has the password of the Secret that the controller makes, in its pod and in those of the token servers', () => {
    const { name, key } = REDIS_SECRET;
    expect(podOf('grantry-redis').containers[0]?.env).toEqual([
      { name: 'REDISCLI_AUTH', valueFrom: { secretKeyRef: { name, key } } },
    ]);
    const { containers, volumes } = podOf('grantry-server');
    expect(volumes).toEqual([{ name: 'redis', secret: { secretName: name, items: [{ key, path: key }] } }]);
    expect(settings.redis?.passwordFile).toBe(`${containers[0]?.volumeMounts?.[0]?.mountPath}/${key}`);
    expect(settings.generateRedisPassword).toBe(true);
  });
});
