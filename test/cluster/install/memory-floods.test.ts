// A tenant that fills its own namespace with objects as large as the API server takes them. Server and controller run with
// a small heap, and one more of each starts in the middle of the flood: all of them live, and a neighbour notices nothing.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ApiServer, type StoredObject } from '../setup/api-server.ts';
import { Cluster } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { TAKES_OVER } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

/** In MiB. A process without a flood takes half of it, and each flood by itself takes more. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=64' };
/** Between token requests, in milliseconds. */
const PAUSE = 10;

type Fields = Readonly<Record<string, unknown>>;

interface Flood {
  readonly flood: string;
  readonly count: number;
  /** Where etcd has such objects, and the plural of their collection. */
  readonly kind: string;
  readonly collection: string;
  readonly object: (index: number, className: string) => Fields & { readonly metadata?: Fields };
}

const NOTE = { note: 'x'.repeat(250_000) };

/** Sixteen keys, each with a chain of certificates: a megabyte that the CustomResourceDefinition takes. */
function manyKeys(): readonly object[] {
  const certificate = 'A'.repeat(8000);
  return Array.from({ length: 16 }, (_, key) => ({
    kty: 'RSA',
    x5c: Array.from({ length: 8 }, (_, index) => `${key}${index}${certificate}`),
  }));
}

const floods: readonly Flood[] = [
  {
    flood: 'refused clients of a megabyte',
    count: 40,
    kind: 'grantry.dev/oauthclients',
    collection: 'oauthclients',
    object: (_, className) => ({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      spec: { className, auth: { method: 'private_key_jwt', privateKeyJwt: { jwks: { keys: manyKeys() } } } },
    }),
  },
  {
    flood: 'ordinary clients with large annotations',
    count: 300,
    kind: 'grantry.dev/oauthclients',
    collection: 'oauthclients',
    // Most are of another class: listed all the same, and the API server has little to do for their status.
    object: (index, className) => ({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: { annotations: NOTE },
      spec: { className: index % 10 === 0 ? className : 'other', grantTypes: ['client_credentials'] },
    }),
  },
  {
    flood: 'Secrets with large annotations',
    count: 400,
    kind: 'secrets',
    collection: 'secrets',
    object: () => ({ apiVersion: 'v1', kind: 'Secret', metadata: { annotations: NOTE }, type: 'Opaque' }),
  },
];

describeRedis('under a flood of large objects', () => {
  let apiServer: ApiServer;
  let cluster: Cluster;
  let servers: TokenServers;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
  const controllers: ControllerProcess[] = [];
  let team: string;
  let neighbour: AClient;

  beforeAll(async () => {
    // Its own: every other suite would list the flood, too.
    apiServer = await ApiServer.start(sharedCluster().address.assets);
    cluster = new Cluster(apiServer.address);
    await cluster.applyCrds();
    servers = await TokenServers.install(cluster, { complete: false });
    server = await servers.start({ environment: SMALL_HEAP });
    controller = await startAnother();
    await Promise.all([controller.ready(), server.ready()]);
    team = await cluster.namespace();
    neighbour = await readyClient('app');
  });

  afterAll(async () => {
    for (const each of controllers) await each.process.end('SIGKILL');
    await servers?.stop();
    await apiServer?.stop();
  });

  async function startAnother(): Promise<ControllerProcess> {
    const started = await startController(servers, { replicas: [server], environment: SMALL_HEAP });
    controllers.push(started);
    return started;
  }

  /** A client of the neighbour that the controller has given a secret and called Ready. */
  async function readyClient(name: string): Promise<AClient> {
    await cluster.apply(servers.manifest(team, name));
    const path = `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients/${name}`;
    let uid = '';
    await until(
      `${name} is Ready`,
      async () => {
        const { body } = await cluster.call('GET', path);
        uid = body.metadata.uid;
        const conditions: { type: string; status: string }[] = body.status?.conditions ?? [];
        return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
      },
      TAKES_OVER,
    );
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${team}/secrets/${name}-oauth`);
    const secret = Buffer.from(body.data['client-secret'], 'base64').toString();
    return { clientId: `${team}.${name}`, uid, secret, namespace: team, name };
  }

  async function store({ kind, object }: Flood, namespace: string, indices: readonly number[]): Promise<void> {
    const creationTimestamp = `${new Date().toISOString().slice(0, 19)}Z`;
    const identity = { namespace, creationTimestamp, generation: 1 };
    const objects = indices.map((index) => {
      const { metadata, ...fields } = object(index, servers.installation.className);
      return { ...fields, metadata: { ...identity, name: `flood-${index}`, uid: randomUUID(), ...metadata } };
    });
    await apiServer.store(kind, objects as unknown as readonly StoredObject[]);
  }

  /** The neighbour's token requests to each of these, one after another until the end. @returns the statuses there were */
  async function traffic(replicas: readonly TokenServerProcess[], end: AbortSignal): Promise<readonly number[]> {
    const statuses = new Set<number>();
    while (!end.aborted) {
      for (const replica of replicas) {
        const { status } = await replica.token(neighbour).catch(() => ({ status: 0 }));
        statuses.add(status);
      }
      await sleep(PAUSE);
    }
    return [...statuses];
  }

  it.each(floods)(
    '$flood → processes with a small heap live and start, a neighbour gets its tokens and clients',
    {
      timeout: 240_000,
    },
    async (flood) => {
      const namespace = await cluster.namespace();
      const asked = [server];
      const over = new AbortController();
      const statuses = traffic(asked, over.signal);
      const indices = Array.from({ length: flood.count }, (_, index) => index);
      const middle = flood.count / 2;
      await store(flood, namespace, indices.slice(0, middle));
      const successor = await servers.start({ environment: SMALL_HEAP });
      const heir = await startAnother();
      await store(flood, namespace, indices.slice(middle));
      await Promise.all([successor.ready(TAKES_OVER), heir.ready(TAKES_OVER)]);
      asked.push(successor);
      await readyClient(`${namespace}-before`);
      // Ended and not killed: a process that ran out of memory has another code.
      expect(await controller.process.end()).toBe(0);
      controller = heir;
      const late = await readyClient(`${namespace}-after`);
      for (const replica of asked) {
        await until('it serves the client', async () => (await replica.token(late)).status === 200);
      }
      over.abort();
      expect(await statuses).toEqual([200]);
      expect(await successor.process.end()).toBe(0);
      const root = flood.collection === 'secrets' ? '/api/v1' : '/apis/grantry.dev/v1alpha1';
      const { status } = await cluster.call('DELETE', `${root}/namespaces/${namespace}/${flood.collection}`);
      expect(status).toBe(200);
    },
  );
});
