// From `kubectl apply` to the first token on every one of three replicas, over a real API server: the apply is a server-side
// apply of an OAuthClient. In one row the verifier of a secret is written right after it; in the other `grantry controller`
// makes the secret, as in an install. `node bench/apply-to-token.ts [clients]`; needs the programs that the tests on an API
// server need.

import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServer } from '../test/cluster/api-server.ts';
import { Cluster } from '../test/cluster/cluster.ts';
import { startController } from '../test/cluster/controllers.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../test/cluster/token-servers.ts';

const CLIENTS = Number(process.argv[2] ?? 200);
const REPLICAS = 3;
/** The built-in policy lets a namespace have no more. */
const PER_NAMESPACE = 200;
const POLL_MILLISECONDS = 2;

async function firstToken(server: TokenServerProcess, client: AClient): Promise<number> {
  while ((await server.token(client)).status !== 200) await sleep(POLL_MILLISECONDS);
  return performance.now();
}

/** Milliseconds until each client had its token everywhere, in ascending order. */
async function measure(
  servers: readonly TokenServerProcess[],
  make: (namespace: string, name: string) => Promise<AClient>,
): Promise<readonly number[]> {
  const milliseconds: number[] = [];
  let namespace = '';
  for (let index = 0; index < CLIENTS; index++) {
    if (index % PER_NAMESPACE === 0) namespace = await cluster.namespace();
    const begin = performance.now();
    const client = await make(namespace, `app-${index}`);
    const served = await Promise.all(servers.map((server) => firstToken(server, client)));
    milliseconds.push(Math.max(...served) - begin);
  }
  return milliseconds.sort((a, b) => a - b);
}

function print(row: string, milliseconds: readonly number[]): void {
  const at = (share: number) => milliseconds[Math.min(CLIENTS - 1, Math.floor(share * CLIENTS))]?.toFixed(0);
  process.stdout.write(`${row.padEnd(28)} p50 ${at(0.5)} ms, p99 ${at(0.99)} ms (floor 1000 ms, goal 250 ms)\n`);
}

async function withoutController(): Promise<void> {
  const install = await TokenServers.install(cluster);
  const servers = await install.startReady(REPLICAS);
  print('the verifier written at once', await measure(servers, (namespace, name) => install.client(namespace, name)));
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
  print('a secret by the controller', await measure(servers, make));
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
