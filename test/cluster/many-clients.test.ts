// Ten thousand clients in a real API server: a token server lists and serves them all, and one more at once.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../until.ts';
import { sharedCluster } from './shared-cluster.ts';
import { TokenServers } from './token-servers.ts';

const CLIENTS = 10_000;
const AT_ONCE = 64;

describe('ten thousand clients', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let namespaces: readonly string[];

  beforeAll(async () => {
    install = await TokenServers.install(cluster);
    // As many in each as the built-in policy lets it have.
    namespaces = await Promise.all(Array.from({ length: CLIENTS / 200 }, () => cluster.namespace()));
    // No secret: a public client is served as it is.
    const spec = {
      ...{ className: install.installation.className, auth: { method: 'none' } },
      ...{ grantTypes: ['authorization_code'], redirectUris: ['https://app.example/cb'], scopes: ['openid'] },
    };
    let next = 0;
    const work = async () => {
      for (let index = next++; index < CLIENTS; index = next++) {
        const namespace = namespaces[index % namespaces.length] ?? '';
        const { status } = await cluster.call(
          'POST',
          `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`,
          {
            body: {
              ...{ apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient' },
              ...{ metadata: { namespace, name: `app-${index}` }, spec },
            },
          },
        );
        if (status !== 201) throw new Error(`client ${index}: ${status}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }, 400_000);

  afterAll(async () => {
    await Promise.all(
      namespaces.map((namespace) =>
        cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`),
      ),
    );
    await install.stop();
  }, 120_000);

  it('are listed and served, and one more within the time of a change', async () => {
    const server = await install.start();
    await server.ready(120_000);
    expect(await server.metric('grantry_registry_clients')).toBe(CLIENTS);
    const tenant = await cluster.namespace();
    const client = await install.client(tenant, 'late');
    await until('it is served', async () => (await server.token(client)).status === 200);
    await cluster.apply(install.manifest(namespaces[0] ?? '', 'one-too-many'));
    await until('it is refused for being one too many', async () => {
      const text = await (await fetch(`${server.admin}/metrics`)).text();
      return /^grantry_registry_clients\{state="refused"\} 1$/m.test(text);
    });
  }, 180_000);
});
