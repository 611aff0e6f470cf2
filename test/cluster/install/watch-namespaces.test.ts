// An install that watches only some namespaces, and has no rights in any other.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { narrow } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

describeRedis('an install for some namespaces', () => {
  const cluster = sharedCluster();
  let servers: TokenServers;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
  let watched: string;
  let other: string;

  beforeAll(async () => {
    servers = await TokenServers.install(cluster, { complete: false });
    [watched, other] = [await cluster.namespace(), await cluster.namespace()];
    await narrow(cluster, servers.installation, [watched]);
    const environment = { GRANTRY_WATCH_NAMESPACES: watched };
    server = await servers.start({ environment });
    controller = await startController(servers, { replicas: [server], environment });
    await Promise.all([controller.ready(), server.ready()]);
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await servers?.stop();
  });

  it('may read Secrets and clients in these, and nowhere else', async () => {
    const statuses = async (token: string, path: (namespace: string) => string) =>
      await Promise.all(
        [watched, other].map(async (name) => (await cluster.call('GET', path(name), { token })).status),
      );
    const { controllerToken, serverToken } = servers.installation;
    expect(await statuses(controllerToken, (name) => `/api/v1/namespaces/${name}/secrets`)).toEqual([200, 403]);
    const clients = (name: string) => `/apis/grantry.dev/v1alpha1/namespaces/${name}/oauthclients`;
    expect(await statuses(controllerToken, clients)).toEqual([200, 403]);
    expect(await statuses(serverToken, clients)).toEqual([200, 403]);
  });

  it('serves the clients of these, and leaves those of others alone', async () => {
    const scopes = { scopes: [`${watched}/read`], defaultScopes: [`${watched}/read`] };
    const [unseen] = await cluster.apply(servers.manifest(other, 'unseen'));
    const [seen] = await cluster.apply(servers.manifest(watched, 'seen', scopes));
    if (seen === undefined || unseen === undefined) throw new Error('nothing was applied');
    const path = await cluster.pathOf(seen);
    await until('it is Ready', async () => {
      const conditions: { type: string; status: string }[] = (await cluster.call('GET', path)).body.status.conditions;
      return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    });
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${watched}/secrets/seen-oauth`);
    const secret = Buffer.from(body.data['client-secret'], 'base64').toString();
    const client = {
      clientId: `${watched}.seen`,
      uid: String(seen.metadata.uid),
      secret,
      namespace: watched,
      name: 'seen',
    };
    expect((await server.token(client)).status).toBe(200);
    const untouched = await cluster.call('GET', await cluster.pathOf(unseen));
    expect(untouched.body.metadata.resourceVersion).toBe(unseen.metadata.resourceVersion);
  });
});
