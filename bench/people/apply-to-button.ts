// From `kubectl apply` of an IdentityProvider and its Secret to its button on the login page of every one of three replicas, and
// from the deletion until the last one is gone, over a real API server: `node bench/people/apply-to-button.ts [TIMES]`. Its type is
// GitHub, which a server reaches without a call. Needs the programs that the tests on an API server need.

import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServer } from '../../test/cluster/setup/api-server.ts';
import { Cluster, type Manifest } from '../../test/cluster/setup/cluster.ts';
import { type TokenServerProcess, TokenServers } from '../../test/cluster/setup/token-servers.ts';
import { CODE_CHALLENGE, REDIRECT_URI } from '../load/load-client.ts';
import { quantile } from '../statistics.ts';

const TIMES = Number(process.argv[2] ?? 100);
const REPLICAS = 3;
const POLL_MILLISECONDS = 2;
const FLOOR_MILLISECONDS = 1000;

const apiServer = await ApiServer.start();
const cluster = new Cluster(apiServer.address);
await cluster.applyCrds();
const install = await TokenServers.install(cluster);
const servers = await install.startReady(REPLICAS);
const namespace = await cluster.namespace();
const { clientId } = await install.client(namespace, 'web', {
  grantTypes: ['authorization_code'],
  redirectUris: [REDIRECT_URI],
});
const query = new URLSearchParams({
  response_type: 'code',
  client_id: clientId,
  redirect_uri: REDIRECT_URI,
  code_challenge: CODE_CHALLENGE,
  code_challenge_method: 'S256',
});

// With fewer than two others there is no page: the browser goes straight to the only one.
for (const name of ['first', 'second']) await cluster.apply(...provider(name));
await Promise.all(servers.map((server) => shows(server, 'second', true)));
const appeared: number[] = [];
const disappeared: number[] = [];
for (let time = 0; time < TIMES; time += 1) {
  const name = `provider-${time}`;
  appeared.push(await timeOf(name, true, () => cluster.apply(...provider(name))));
  disappeared.push(await timeOf(name, false, () => cluster.call('DELETE', pathOf(name))));
}
print('apply to button', appeared);
print('deletion until it is gone', disappeared);
await install.stop();
await apiServer.stop();
process.exit(0);

/** A Secret, and the provider that it is for. */
function provider(name: string): readonly Manifest[] {
  const metadata = { name, namespace: install.namespace };
  const spec = {
    type: 'GitHub',
    clientSecretRef: { name },
    gitHub: { host: `${name}.example.com`, organizations: ['corp'] },
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'grantry.dev/identity-provider',
      metadata,
      stringData: { 'client-id': 'grantry', 'client-secret': 'of-the-provider' },
    },
    { apiVersion: 'grantry.dev/v1alpha1', kind: 'IdentityProvider', metadata, spec },
  ];
}

function pathOf(name: string): string {
  return `/apis/grantry.dev/v1alpha1/namespaces/${install.namespace}/identityproviders/${name}`;
}

/** Milliseconds of the work and until each replica shows the button then, or none does. */
async function timeOf(name: string, isThere: boolean, work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  await Promise.all(servers.map((server) => shows(server, name, isThere)));
  return performance.now() - begin;
}

async function shows({ url }: TokenServerProcess, name: string, isThere: boolean): Promise<void> {
  for (;;) {
    const page = await (await fetch(`${url}/authorize?${query}`, { redirect: 'manual' })).text();
    // An error page has no button at all.
    const [isLoginPage, isShown] = ['first', name].map((each) => page.includes(`/login/upstream/${each}"`));
    if (isLoginPage && isShown === isThere) return;
    await sleep(POLL_MILLISECONDS);
  }
}

function print(row: string, milliseconds: readonly number[]): void {
  const [p50, p99] = [0.5, 0.99].map((share) => quantile(milliseconds, share).toFixed(0));
  process.stdout.write(`${row.padEnd(28)} p50 ${p50} ms, p99 ${p99} ms (floor ${FLOOR_MILLISECONDS} ms)\n`);
}
