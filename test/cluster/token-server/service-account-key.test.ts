// ServiceAccount tokens while the key that the API server signs them by is replaced: an API server of the suite's own is
// restarted with another key.

import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { Cluster } from '../setup/cluster.ts';
import { ASKS_AGAIN } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const NAME = 'reports';

let apiServer: ApiServer;
let cluster: Cluster;
let install: TokenServers;
let server: TokenServerProcess;
let namespace: string;

beforeAll(async () => {
  apiServer = await ApiServer.start(sharedCluster().address.assets);
  cluster = new Cluster(apiServer.address);
  await cluster.applyCrds();
  install = await TokenServers.install(cluster);
  namespace = await cluster.namespace();
  await install.accountClient(namespace, NAME);
  // By a token of its ServiceAccount it could not ask any more once the key is another: a kubelet renews that in time.
  server = await install.start({ token: apiServer.address.adminToken });
  await server.ready();
});
afterAll(async () => {
  await install?.stop();
  await apiServer?.stop();
});

function accountToken(): Promise<string> {
  return cluster.token({ namespace, name: NAME }, { audiences: [ISSUER] });
}

async function statusOf(assertion: string): Promise<number> {
  return await server.accountStatus(`${namespace}.${NAME}`, assertion);
}

it('when the API server is unavailable → served; signed by its next key → served; by the key before → 401', async () => {
  const old = await accountToken();
  await until('the account is served', async () => (await statusOf(old)) === 200);

  await apiServer.kill();
  expect(await statusOf(old)).toBe(200);

  apiServer.renewServiceAccountKey();
  await apiServer.start();
  const next = await accountToken();
  expect(decodeProtectedHeader(next).kid).not.toBe(decodeProtectedHeader(old).kid);
  // What was read before is used for minutes: only the unknown key has it read again.
  expect(await statusOf(old)).toBe(200);
  await until('the new key is read', async () => (await statusOf(next)) === 200, ASKS_AGAIN);
  expect(await statusOf(old)).toBe(401);
}, 120_000);
