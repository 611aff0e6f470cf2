// From `kubectl apply` to the first token on every one of three replicas, over a real API server: the apply is a server-side
// apply of an OAuthClient. In one row the verifier of a secret is written right after it; in another `grantry controller`
// makes the secret, as in an install. Between them the same for an apply that suspends the client, until all refuse it.
// `node bench/apply-to-token.ts [clients]`; needs the programs that the tests on an API server need.

import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServer } from '../test/cluster/setup/api-server.ts';
import { Cluster } from '../test/cluster/setup/cluster.ts';
import { startController } from '../test/cluster/setup/controllers.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../test/cluster/setup/token-servers.ts';

const CLIENTS = Number(process.argv[2] ?? 200);
const REPLICAS = 3;
/** The built-in policy lets a namespace have no more. */
const PER_NAMESPACE = 200;
const POLL_MILLISECONDS = 2;

/** Milliseconds of some work and until a client is answered `status` everywhere then. */
async function timeUntil(status: number, servers: readonly TokenServerProcess[], work: () => Promise<AClient>) {
  const begin = performance.now();
  const client = await work();
  const answered = servers.map(async (server) => {
    while ((await server.token(client)).status !== status) await sleep(POLL_MILLISECONDS);
    return performance.now();
  });
  return { client, milliseconds: Math.max(...(await Promise.all(answered))) - begin };
}

/** Makes clients one after the other, and says how long it took until each had its token everywhere. */
async function measure(
  row: string,
  servers: readonly TokenServerProcess[],
  make: (namespace: string, name: string) => Promise<AClient>,
): Promise<readonly AClient[]> {
  const made: { client: AClient; milliseconds: number }[] = [];
  let namespace = '';
  for (let index = 0; index < CLIENTS; index++) {
    if (index % PER_NAMESPACE === 0) namespace = await cluster.namespace();
    made.push(await timeUntil(200, servers, () => make(namespace, `app-${index}`)));
  }
  print(row, made);
  return made.map(({ client }) => client);
}

function print(row: string, measured: readonly { readonly milliseconds: number }[]): void {
  const ascending = measured.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
  const at = (share: number) => ascending[Math.min(CLIENTS - 1, Math.floor(share * CLIENTS))]?.toFixed(0);
  process.stdout.write(`${row.padEnd(28)} p50 ${at(0.5)} ms, p99 ${at(0.99)} ms (floor 1000 ms, goal 250 ms)\n`);
}

async function withoutController(): Promise<void> {
  const install = await TokenServers.install(cluster);
  const servers = await install.startReady(REPLICAS);
  const make = (namespace: string, name: string) => install.client(namespace, name);
  const clients = await measure('the verifier written at once', servers, make);
  const suspended = [];
  for (const client of clients) {
    const { namespace, name } = client;
    const suspend = async () => {
      await cluster.apply(install.manifest(namespace, name, { suspended: true }));
      return client;
    };
    suspended.push(await timeUntil(401, servers, suspend));
  }
  print('suspended, until refused', suspended);
  await install.stop();
}

async function withController(): Promise<void> {
  const install = await TokenServers.install(cluster, { complete: false });
  const servers = await Promise.all(Array.from({ length: REPLICAS }, () => install.start()));
  const controller = await startController(install, { replicas: servers });
  await Promise.all([controller, ...servers].map((each) => each.ready()));
  const make = async (namespace: string, name: string): Promise<AClient> => {
    const [applied] = await cluster.apply(install.manifest(namespace, name));
    const uid = String(applied?.metadata.uid);
    return { clientId: `${namespace}.${name}`, uid, namespace, name, secret: await secretOf(namespace, name) };
  };
  await measure('a secret by the controller', servers, make);
  await controller.process.end();
  await install.stop();
}

/** As an application finds it: once the Secret is there. */
async function secretOf(namespace: string, name: string): Promise<string> {
  for (;;) {
    const { status, body } = await cluster.call('GET', `/api/v1/namespaces/${namespace}/secrets/${name}-oauth`);
    if (status === 200) return Buffer.from(String(body.data['client-secret']), 'base64').toString();
    await sleep(POLL_MILLISECONDS);
  }
}

const apiServer = await ApiServer.start();
const cluster = new Cluster(apiServer.address);
await cluster.applyCrds();
process.stdout.write(`apply to first token on ${REPLICAS} replicas, ${CLIENTS} clients\n`);
await withoutController();
await withController();
await apiServer.stop();
process.exit(0);
