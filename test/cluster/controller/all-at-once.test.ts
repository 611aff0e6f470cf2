// Hundreds of clients applied at once, as when a whole cluster is restored, as many in each namespace as its policy permits:
// each gets one secret, and a client that was served before is served on.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { Cluster } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { SecretHistory } from '../setup/secret-history.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const CLIENTS = 300;
/** As many as their policy lets a namespace have. */
const IN_A_NAMESPACE = 100;
/** Of the namespaces that it applies to. */
const LABELS = { 'example.com/restored': 'true' };
/** Requests to the API server under way at once: as many as a client of it keeps up. */
const AT_ONCE = 50;

const pathIn = (namespace: string) => `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`;

interface Listed {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  readonly data?: Readonly<Record<string, string>>;
}

describeRedis('hundreds of clients', () => {
  // Its own: every other suite would follow them too.
  let server: ApiServer;
  let cluster: Cluster;
  let install: TokenServers;
  let controller: ControllerProcess;
  let replica: TokenServerProcess;
  let clients: ClientInstall;

  beforeAll(async () => {
    server = await ApiServer.start(sharedCluster().address.assets);
    cluster = new Cluster(server.address);
    await cluster.applyCrds();
    install = await TokenServers.install(cluster, { complete: false });
    replica = await install.start();
    controller = await startController(install, { replicas: [replica] });
    await Promise.all([controller.ready(), replica.ready()]);
    clients = ClientInstall.of(cluster, install.installation);
  }, 120_000);
  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await install?.stop();
    await server?.stop();
  });

  async function list(path: string): Promise<readonly Listed[]> {
    return (await cluster.call('GET', path)).body.items;
  }

  /** Does something for each, so many at a time. */
  async function forEach<Item>(items: readonly Item[], act: (item: Item) => Promise<void>): Promise<void> {
    const waiting = [...items];
    const workers = Array.from({ length: AT_ONCE }, async () => {
      for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await act(item);
    });
    await Promise.all(workers);
  }

  async function clientOf({ namespace, name, uid }: Listed['metadata'], data: Listed['data']): Promise<AClient> {
    const secret = Buffer.from(data?.['client-secret'] ?? '', 'base64').toString();
    return { clientId: `${namespace}.${name}`, uid, secret, namespace, name };
  }

  it('applied at once are all served, each by one secret, while who is there already is served on', async () => {
    const before = await cluster.namespace();
    await clients.apply(before, 'before', { defaultScopes: [`${before}/read`] });
    const { metadata } = await clients.whenReady(before, 'before');
    const made = await cluster.call('GET', `/api/v1/namespaces/${before}/secrets/before-oauth`);
    const known = await clientOf(metadata, made.body.data);
    const statuses: number[] = [];
    let isOver = false;
    const asking = (async () => {
      while (!isOver) {
        const status = await replica.token(known).then(
          (answer) => answer.status,
          () => 0,
        );
        statuses.push(status);
        await sleep(20);
      }
    })();

    const history = await SecretHistory.follow(cluster, install.installation);
    const { className } = install.installation;
    const namespaceSelector = { matchLabels: LABELS };
    await cluster.apply({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name: className },
      spec: { className, namespaceSelector, limits: { maxClientsPerNamespace: IN_A_NAMESPACE } },
    });
    const names = Array.from({ length: CLIENTS / IN_A_NAMESPACE });
    const namespaces = await Promise.all(names.map(() => cluster.namespace(LABELS)));
    const manifests = Array.from({ length: CLIENTS }, (_, index) => {
      const namespace = namespaces[index % namespaces.length] ?? '';
      return clients.manifest(namespace, `app-${index}`, { defaultScopes: [`${namespace}/read`] });
    });
    await forEach(manifests, async (manifest) => {
      const { status } = await cluster.call('POST', pathIn(String(manifest.metadata.namespace)), { body: manifest });
      expect(status).toBe(201);
    });
    const isReady = ({ status }: Listed) =>
      status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true;
    const areReady = async () => {
      const listed = await Promise.all(namespaces.map((namespace) => list(pathIn(namespace))));
      return listed.flat().filter(isReady).length === CLIENTS;
    };
    await until('all are ready', areReady, 120_000, 500);

    const secrets = (
      await Promise.all(namespaces.map((namespace) => list(`/api/v1/namespaces/${namespace}/secrets`)))
    ).flat();
    expect(secrets.length).toBe(CLIENTS);
    await forEach(secrets, async ({ metadata: { namespace, name, uid }, data }) => {
      const client = await clientOf({ namespace, name: name.replace(/-oauth$/, ''), uid }, data);
      expect((await replica.token(client)).status).toBe(200);
    });
    const told = await history.upToNow();
    expect(told.size).toBe(CLIENTS);
    // A leader that loses the lease on a machine that stands still takes secrets along that are not published.
    const terms = (controller.process.output.match(/"msg":"leading"/g) ?? []).length;
    for (const each of told.values()) {
      expect(each).toMatchObject({ values: [expect.any(String)], madeAfterwards: 0, refused: [] });
      expect(each.made).toBeLessThanOrEqual(terms);
    }
    await until('nothing waits', async () => (await controller.metric('grantry_work_queue_depth')) === 0);

    isOver = true;
    await asking;
    expect(statuses.length).toBeGreaterThan(100);
    expect(new Set(statuses)).toEqual(new Set([200]));
  }, 180_000);
});
