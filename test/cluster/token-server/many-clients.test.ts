// Ten thousand clients in a real API server, each with a secret of its own: every token server lists them all and gives tokens
// to each, follows the change of one, and serves one more at once.

import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../../src/admission/client-secrets/client-verifier.ts';
import { PART_LABEL } from '../../../src/admission/references/secret-parts.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { Cluster } from '../setup/cluster.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const CLIENTS = 10_000;
/** As many as the built-in policy lets a namespace have. */
const IN_A_NAMESPACE = 200;
/** So many of all are asked for tokens, one of each so many neighbours. */
const ASKED = 200;
const SEED = 20_261_123;
/** Requests to a token server under way at once. */
const AT_ONCE = 10;

describe('ten thousand clients', () => {
  // Its own: every other suite would list and follow them too.
  let server: ApiServer;
  let cluster: Cluster;
  let install: TokenServers;
  let replicas: readonly TokenServerProcess[];
  let namespaces: readonly string[];
  let clients: readonly AClient[];

  beforeAll(async () => {
    server = await ApiServer.start(sharedCluster().address.assets);
    cluster = new Cluster(server.address);
    await cluster.applyCrds();
    install = await TokenServers.install(cluster);
    namespaces = await Promise.all(Array.from({ length: CLIENTS / IN_A_NAMESPACE }, () => cluster.namespace()));
    clients = Array.from({ length: CLIENTS }, (_, index) => {
      const [namespace, name] = [namespaces[index % namespaces.length] ?? '', `app-${index}`];
      return { clientId: `${namespace}.${name}`, uid: randomUUID(), secret: `the secret of ${name}`, namespace, name };
    });
    const creationTimestamp = `${new Date().toISOString().slice(0, 19)}Z`;
    // One by one, the API server would take minutes to check them.
    await server.store(
      'grantry.dev/oauthclients',
      clients.map(({ namespace, name, uid }) => {
        const { metadata, ...manifest } = install.manifest(namespace, name);
        return { ...manifest, metadata: { ...metadata, namespace, uid, creationTimestamp, generation: 1 } };
      }),
    );
    await server.store(
      'secrets',
      clients.map(({ uid, secret }) => ({
        apiVersion: 'v1',
        kind: 'Secret',
        type: VERIFIER_SECRET_TYPE,
        metadata: {
          name: verifierSecretName(uid),
          namespace: install.namespace,
          uid: randomUUID(),
          creationTimestamp,
          labels: { [PART_LABEL]: 'verifier' },
        },
        data: verifierSecretData({
          revision: 1,
          verifiers: [{ verifier: secretVerifier(uid, secret), revision: 1 }],
        }),
      })),
    );
    replicas = await Promise.all([install.start(), install.start()]);
    for (const replica of replicas) await replica.ready(120_000);
  }, 240_000);

  afterAll(async () => {
    await install?.stop();
    await server?.stop();
  });

  it('are all listed, and get tokens from every server, each for its own secret alone', async () => {
    for (const replica of replicas) expect(await replica.metric('grantry_registry_clients')).toBe(CLIENTS);
    const neighbours = CLIENTS / ASKED;
    const picks = fc.sample(fc.noBias(fc.nat(neighbours - 1)), { numRuns: ASKED, seed: SEED });
    const asked = picks.map((pick, index) => clientAt(index * neighbours + pick));
    for (const replica of replicas) {
      const waiting = asked.values();
      const ask = async () => {
        for (const client of waiting) {
          const { status, body } = await replica.token(client);
          expect([client.name, status]).toEqual([client.name, 200]);
          const { client_id, scope } = decodeJwt(body.access_token ?? '');
          expect([client_id, scope]).toEqual([client.clientId, `${client.namespace}/read`]);
          const { secret } = clientAt((clients.indexOf(client) + 1) % CLIENTS);
          expect([client.name, (await replica.token({ ...client, secret })).status]).toEqual([client.name, 401]);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, ask));
    }
  }, 120_000);

  it('are followed: a change of one, one more, and one too many', async () => {
    const [changed] = fc.sample(fc.noBias(fc.nat(CLIENTS - 1)), { numRuns: 1, seed: SEED }).map(clientAt);
    if (changed === undefined) throw new Error('no client was picked');
    const scopes = [`${changed.namespace}/changed`];
    const path = await cluster.pathOf(install.manifest(changed.namespace, changed.name));
    await cluster.call('PATCH', path, { body: { spec: { scopes, defaultScopes: scopes } } });
    const late = await install.client(await cluster.namespace(), 'late');
    await cluster.apply(install.manifest(namespaces[0] ?? '', 'one-too-many'));
    for (const replica of replicas) {
      await until('the change is served', async () => {
        const { status, body } = await replica.token(changed);
        expect(status).toBe(200);
        return decodeJwt(body.access_token ?? '').scope === scopes[0];
      });
      await until('one more is served', async () => (await replica.token(late)).status === 200);
      await until('it is refused for being one too many', async () => {
        const text = await (await fetch(`${replica.admin}/metrics`)).text();
        return /^grantry_registry_clients\{state="refused"\} 1$/m.test(text);
      });
      expect(await replica.metric('grantry_registry_clients')).toBe(CLIENTS + 1);
    }
  }, 120_000);

  function clientAt(index: number): AClient {
    const client = clients[index];
    if (client === undefined) throw new Error(`there is no client ${index}`);
    return client;
  }
});
