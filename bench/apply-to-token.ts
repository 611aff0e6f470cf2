// From `kubectl apply` to the first token on every one of three replicas, over a real API server: the apply is a server-side
// apply of an OAuthClient, the verifier of its secret is written right after it, as the controller does once it has seen it.
// `node bench/apply-to-token.ts [clients]`; needs the programs that the tests on an API server need.

import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServer } from '../test/cluster/api-server.ts';
import { Cluster } from '../test/cluster/cluster.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../test/cluster/token-servers.ts';

const CLIENTS = Number(process.argv[2] ?? 200);
const REPLICAS = 3;
/** The built-in policy lets a namespace have no more. */
const PER_NAMESPACE = 200;

async function firstToken(server: TokenServerProcess, client: AClient): Promise<number> {
  while ((await server.token(client)).status !== 200) await sleep(2);
  return performance.now();
}

const apiServer = await ApiServer.start();
const cluster = new Cluster(apiServer.address);
await cluster.applyCrds();
const install = await TokenServers.install(cluster);
const servers = await install.startReady(REPLICAS);

const milliseconds: number[] = [];
let namespace = '';
for (let index = 0; index < CLIENTS; index++) {
  if (index % PER_NAMESPACE === 0) namespace = await cluster.namespace();
  const begin = performance.now();
  const client = await install.client(namespace, `app-${index}`);
  const served = await Promise.all(servers.map((server) => firstToken(server, client)));
  milliseconds.push(Math.max(...served) - begin);
}
milliseconds.sort((a, b) => a - b);
const at = (share: number) => milliseconds[Math.min(CLIENTS - 1, Math.floor(share * CLIENTS))]?.toFixed(0);
process.stdout.write(
  `apply to first token on ${REPLICAS} replicas, ${CLIENTS} clients: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms (floor 1000 ms, goal 250 ms)\n`,
);
await install.stop();
await apiServer.stop();
process.exit(0);
