// Tokens of ServiceAccounts as the API server issues them (TokenRequest), presented to a token server of its cluster.

import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../../src/admission/client-secrets/client-verifier.ts';
import { PART_LABEL } from '../../../src/admission/references/secret-parts.ts';
import { until } from '../../until.ts';
import { FaultProxy } from '../setup/fault-proxy.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const cluster = sharedCluster();

let install: TokenServers;
let server: TokenServerProcess;
let namespace: string;
let uid: string;

beforeAll(async () => {
  install = await TokenServers.install(cluster);
  [server] = (await install.startReady(1)) as [TokenServerProcess];
  namespace = await cluster.namespace();
  uid = await account(namespace, 'reports');
  await client(namespace, uid);
});
afterAll(() => install?.stop());

/** Creates a ServiceAccount. @returns its uid */
async function account(inNamespace: string, name: string): Promise<string> {
  const metadata = { namespace: inNamespace, name };
  const [made] = await cluster.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata });
  return String(made?.metadata.uid);
}

/** Applies a client of that account, and writes what the controller would. */
async function client(inNamespace: string, accountUid: string): Promise<void> {
  const auth = { method: 'kubernetes_service_account', serviceAccounts: [{ name: 'reports' }] };
  const [applied] = await cluster.apply(install.manifest(inNamespace, 'reports', { auth }));
  const serviceAccounts = [{ name: 'reports', uid: accountUid }];
  await cluster.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    type: VERIFIER_SECRET_TYPE,
    metadata: {
      namespace: install.namespace,
      name: verifierSecretName(String(applied?.metadata.uid)),
      labels: { [PART_LABEL]: 'verifier' },
    },
    data: verifierSecretData({ revision: 1, verifiers: [], serviceAccounts }),
  });
}

async function tokenOf(
  name: string,
  audiences: readonly string[] = [ISSUER],
  inNamespace = namespace,
): Promise<string> {
  const path = `/api/v1/namespaces/${inNamespace}/serviceaccounts/${name}/token`;
  const answer = await cluster.call('POST', path, {
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences, expirationSeconds: 3600 },
    },
  });
  const { status } = answer.body as { readonly status?: { readonly token?: string } };
  if (status?.token === undefined) throw new Error(`no token: ${answer.status}`);
  return status.token;
}

async function statusOf(assertion: string, at = server): Promise<number> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: `${namespace}.reports`,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  });
  return (await fetch(`${at.url}/token`, { method: 'POST', body })).status;
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
  await account(namespace, 'stranger');
  await account(elsewhere, 'reports');
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
  const next = await account(namespace, 'reports');
  const token = await tokenOf('reports');
  expect(await statusOf(token)).toBe(401);
  await client(namespace, next);
  await served(token);
  expect(await statusOf(old)).toBe(401);
  uid = next;
});

it('while the API server is away → served by the keys that the replica has read', async () => {
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
