// 10 000 clients in one cluster: a token server lists and serves every one, and a change of one among them as soon as ever.
// On an API server of its own, for the servers of all other suites would list them too.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERIFIER_SECRET_TYPE, verifierSecretData, verifierSecretName } from '../../src/admission/client-verifier.ts';
import { PART_LABEL } from '../../src/admission/secret-parts.ts';
import { OAUTH_CLIENTS, resourcePath, SECRETS } from '../../src/kubernetes/resources.ts';
import { secretVerifier } from '../../src/oauth/client-secret.ts';
import { until } from '../until.ts';
import { ApiServer } from './api-server.ts';
import { Cluster } from './cluster.ts';
import { sharedCluster } from './shared-cluster.ts';
import { type AClient, type TokenServerProcess, TokenServers } from './token-servers.ts';

const NAMESPACES = 50;
/** As many as a namespace may have by default. */
const CLIENTS_EACH = 200;
const AT_ONCE = 16;
const MINUTES = 60_000;

describe('10 000 clients', () => {
  let apiServer: ApiServer;
  let cluster: Cluster;
  let install: TokenServers;
  let server: TokenServerProcess;
  let clients: readonly AClient[];

  beforeAll(async () => {
    apiServer = await ApiServer.start(sharedCluster().address.assets);
    cluster = new Cluster(apiServer.address);
    await cluster.applyCrds();
    install = await TokenServers.install(cluster);
    const namespaces = await Promise.all(Array.from({ length: NAMESPACES }, () => cluster.namespace()));
    clients = await inParallel(
      namespaces.flatMap((namespace) =>
        Array.from({ length: CLIENTS_EACH }, (_, index) => [namespace, `client-${index}`]),
      ),
      ([namespace = '', name = '']) => create(namespace, name),
    );
    server = await install.start();
    await server.ready(3 * MINUTES);
  }, 15 * MINUTES);
  afterAll(async () => {
    await install?.stop();
    await apiServer?.stop();
  });

  /** A client and what its secret is verified by, each in one request. */
  async function create(namespace: string, name: string): Promise<AClient> {
    const manifest = install.manifest(namespace, name);
    const made = await cluster.call('POST', resourcePath(OAUTH_CLIENTS, { namespace }), { body: manifest });
    const { uid } = made.body.metadata;
    const secret = randomBytes(32).toString('base64url');
    const body = {
      ...{ apiVersion: 'v1', kind: 'Secret', type: VERIFIER_SECRET_TYPE },
      metadata: { name: verifierSecretName(uid), labels: { [PART_LABEL]: 'verifier' } },
      data: verifierSecretData({ revision: 1, verifiers: [{ verifier: secretVerifier(uid, secret), revision: 1 }] }),
    };
    const written = await cluster.call('POST', resourcePath(SECRETS, { namespace: install.namespace }), { body });
    expect([made.status, written.status]).toEqual([201, 201]);
    return { clientId: `${namespace}.${name}`, uid, secret, namespace, name };
  }

  const suspend = (client: AClient, suspended: boolean) =>
    cluster.apply(install.manifest(client.namespace, client.name, { suspended }));

  it('are all listed and admitted', async () => {
    const text = await (await fetch(`${server.admin}/metrics`)).text();
    expect(text).toContain(`grantry_registry_clients{state="admitted"} ${NAMESPACES * CLIENTS_EACH}\n`);
  });

  it('are served, whichever asks', async () => {
    const some = clients.filter((_, index) => index % 37 === 0);
    const statuses = await inParallel(some, async (client) => (await server.token(client)).status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const [first, last] = [clients[0], clients.at(-1)] as [AClient, AClient];
    expect((await server.token({ ...first, secret: last.secret })).status).toBe(401);
  });

  it('are followed: one that changes, one that is new, one that goes', async () => {
    const [changed, gone] = [clients[5000], clients[7000]] as [AClient, AClient];
    const statusIs = (client: AClient, status: number) =>
      until(`${client.clientId} gets ${status}`, async () => (await server.token(client)).status === status);
    await suspend(changed, true);
    await statusIs(changed, 401);
    await suspend(changed, false);
    await statusIs(changed, 200);
    await cluster.call('DELETE', resourcePath(OAUTH_CLIENTS, gone));
    await statusIs(gone, 401);
    await statusIs(await create(gone.namespace, 'new'), 200);
    expect((await server.token(clients[1] as AClient)).status).toBe(200);
  });

  it('are all served again by a server that starts anew while others change', { timeout: 5 * MINUTES }, async () => {
    const next = await install.start();
    const moved = clients.filter((_, index) => index % 500 === 1);
    await inParallel(moved, (client) => suspend(client, true));
    await next.ready(3 * MINUTES);
    for (const client of moved) {
      await until('it is refused', async () => (await next.token(client)).status === 401);
    }
    expect((await next.token(clients[2] as AClient)).status).toBe(200);
  });
});

/** In the order of what is given, a few at a time. */
async function inParallel<Given, Made>(given: readonly Given[], make: (each: Given) => Promise<Made>): Promise<Made[]> {
  const made: Made[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < given.length; index = next++) made[index] = await make(given[index] as Given);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return made;
}
