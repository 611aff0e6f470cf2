// Tokens of ServiceAccounts as the API server issues them (TokenRequest), presented to a token server of its cluster.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { FaultProxy } from '../setup/fault-proxy.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const cluster = sharedCluster();

let install: TokenServers;
let server: TokenServerProcess;
let namespace: string;

beforeAll(async () => {
  install = await TokenServers.install(cluster);
  [server] = (await install.startReady(1)) as [TokenServerProcess];
  namespace = await cluster.namespace();
  await install.accountClient(namespace, 'reports');
});
afterAll(() => install?.stop());

/** A token of an account, which is created where it is missing. */
function tokenOf(name: string, audiences: readonly string[] = [ISSUER], inNamespace = namespace): Promise<string> {
  return cluster.token({ namespace: inNamespace, name }, { audiences });
}

function statusOf(assertion: string, at = server): Promise<number> {
  return at.accountStatus(`${namespace}.reports`, assertion);
}

function served(assertion: string, at = server): Promise<void> {
  return until('the account is served', async () => (await statusOf(assertion, at)) === 200);
}

it('of a registered account → a token, by a replica that has only the rights of the chart', async () => {
  await served(await tokenOf('reports'));
  expect((await server.readiness()).text).toContain('cluster issuer: ok');
});

it('for another audience, two audiences, another account, another namespace → 401', async () => {
  await served(await tokenOf('reports'));
  const elsewhere = await cluster.namespace();
  const tokens = [
    await tokenOf('reports', ['https://other.example']),
    await tokenOf('reports', [ISSUER, 'https://other.example']),
    await tokenOf('stranger'),
    await tokenOf('reports', [ISSUER], elsewhere),
  ];
  expect(await Promise.all(tokens.map((token) => statusOf(token)))).toEqual([401, 401, 401, 401]);
});

it('of an account that was deleted and created again → 401 for the old and the new one, until the new uid is stored', async () => {
  const old = await tokenOf('reports');
  await served(old);
  await cluster.call('DELETE', `/api/v1/namespaces/${namespace}/serviceaccounts/reports`);
  const token = await tokenOf('reports');
  expect(await statusOf(token)).toBe(401);
  await install.accountClient(namespace, 'reports');
  await served(token);
  expect(await statusOf(old)).toBe(401);
});

it('while the API server is unavailable → served by the keys that the replica has read', async () => {
  const proxy = await FaultProxy.start(cluster.address);
  try {
    const beside = await install.start({ url: proxy.url });
    await beside.ready();
    const token = await tokenOf('reports');
    await served(token, beside);
    proxy.refuse();
    proxy.cut();
    expect(await statusOf(token, beside)).toBe(200);
  } finally {
    await proxy.stop();
  }
});
