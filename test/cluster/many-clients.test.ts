// Ten thousand clients in a real API server: a token server lists and serves them all, and one more at once.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../until.ts';
import { ApiServer } from './api-server.ts';
import { Cluster } from './cluster.ts';
import { sharedCluster } from './shared-cluster.ts';
import { TokenServers } from './token-servers.ts';

const CLIENTS = 10_000;

describe('ten thousand clients', () => {
  // Its own: every other suite would list and follow them too.
  let server: ApiServer;
  let cluster: Cluster;
  let install: TokenServers;
  let namespaces: readonly string[];

  beforeAll(async () => {
    server = await ApiServer.start(sharedCluster().address.assets);
    cluster = new Cluster(server.address);
    await cluster.applyCrds();
    install = await TokenServers.install(cluster);
    // As many in each as the built-in policy lets it have.
    namespaces = await Promise.all(Array.from({ length: CLIENTS / 200 }, () => cluster.namespace()));
    const metadata = { generation: 1, creationTimestamp: `${new Date().toISOString().slice(0, 19)}Z` };
    // No secret: a public client is served as it is.
    const spec = {
      ...{ className: install.installation.className, auth: { method: 'none' } },
      ...{ grantTypes: ['authorization_code'], redirectUris: ['https://app.example/cb'], scopes: ['openid'] },
    };
    const clients = Array.from({ length: CLIENTS }, (_, index) => ({
      ...{ apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', spec },
      metadata: {
        ...{ ...metadata, name: `app-${index}`, uid: randomUUID() },
        namespace: namespaces[index % namespaces.length] ?? '',
      },
    }));
    // One by one, the API server would take most of a minute to check them.
    await server.store('grantry.dev/oauthclients', clients);
  }, 120_000);

  afterAll(async () => {
    await install?.stop();
    await server?.stop();
  });

  it('are listed and served, and one more within the time of a change', async () => {
    const replica = await install.start();
    await replica.ready(120_000);
    expect(await replica.metric('grantry_registry_clients')).toBe(CLIENTS);
    const tenant = await cluster.namespace();
    const client = await install.client(tenant, 'late');
    await until('it is served', async () => (await replica.token(client)).status === 200);
    await cluster.apply(install.manifest(namespaces[0] ?? '', 'one-too-many'));
    await until('it is refused for being one too many', async () => {
      const text = await (await fetch(`${replica.admin}/metrics`)).text();
      return /^grantry_registry_clients\{state="refused"\} 1$/m.test(text);
    });
  }, 180_000);
});
