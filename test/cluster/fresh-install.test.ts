// A fresh install as processes: with nothing but the CRDs and the rights of its ServiceAccounts it comes to a token by
// itself, and a key that is revoked is gone from every replica at once.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../redis/servers.ts';
import { until } from '../until.ts';
import { type ControllerProcess, startController } from './controllers.ts';
import { sharedCluster } from './shared-cluster.ts';
import { type TokenServerProcess, TokenServers } from './token-servers.ts';

describeRedis('a fresh install', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let servers: readonly TokenServerProcess[];
  let controller: ControllerProcess | undefined;

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    servers = await Promise.all([install.start(), install.start()]);
  });
  afterAll(async () => {
    await controller?.process.end();
    await install?.stop();
  });

  const path = () => `/apis/grantry.dev/v1alpha1/namespaces/${install.namespace}/signingkeys/default`;
  const status = async () => (await cluster.call('GET', path())).body.status ?? {};
  const keyIds = async ({ url }: TokenServerProcess): Promise<readonly string[]> => {
    const response = await fetch(`${url}/.well-known/jwks.json`);
    return ((await response.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
  };

  it('waits for its controller, which makes the key and the pepper', async () => {
    for (const server of servers) await server.saysUnready(/^pepper: waiting/m);
    controller = await startController(install, { replicas: servers });
    for (const server of servers) await server.ready();
    const { activeKeyId } = await status();
    for (const server of servers) expect(await keyIds(server)).toEqual([activeKeyId]);
  }, 120_000);

  it('has a revoked key replaced in every replica', async () => {
    const { activeKeyId } = await status();
    await cluster.call('PATCH', path(), { body: { spec: { revokedKeyIds: [activeKeyId] } } });
    await until('another key signs', async () => ![undefined, activeKeyId].includes((await status()).activeKeyId));
    const next = (await status()).activeKeyId;
    for (const server of servers) {
      await until('it has the next key alone', async () => String(await keyIds(server)) === next);
      expect((await server.readiness()).status).toBe(200);
    }
  });

  it('publishes a key before it signs', async () => {
    const { activeKeyId } = await status();
    await cluster.call('PATCH', path(), {
      body: { metadata: { annotations: { 'grantry.dev/rotate-requested-at': 'now' } } },
    });
    for (const server of servers) await until('both are published', async () => (await keyIds(server)).length === 2);
    expect((await status()).activeKeyId).toBe(activeKeyId);
  });
});
