// What teams do with the Secrets that grantry writes for them: Jobs in two namespaces mount theirs and get tokens.

import { afterAll, expect, it } from 'vitest';
import { runTokenJob } from './setup/jobs.ts';
import { apply, createNamespace, deleteNamespaces, waitFor, waitReady } from './setup/kubectl.ts';
import { ISSUER, sharedInstall } from './setup/shared-install.ts';
import { createMachineClient, machineSpec, oauthClient } from './setup/tenants.ts';

const { tokenUrl } = sharedInstall;

afterAll(() => deleteNamespaces('e2e-shop', 'e2e-billing'));

it('a Job gets a token with the Secret of its client', async () => {
  const { namespace, name, secretName, clientId } = await createMachineClient('e2e-shop');
  const { status, claims } = await runTokenJob({ namespace, name, secretName, tokenUrl });
  expect([status, claims]).toEqual([
    200,
    expect.objectContaining({ iss: ISSUER, sub: clientId, client_id: clientId, scope: 'e2e-shop/read' }),
  ]);
});

it('a Job of another namespace gets one with a Secret whose keys have the names it expects', async () => {
  const namespace = await createNamespace('e2e-billing');
  const keys = { clientId: 'OAUTH_ID', clientSecret: 'OAUTH_SECRET', issuer: 'OAUTH_ISSUER' };
  const auth = { clientSecret: { secretName: 'invoices-oauth', keys } };
  await apply(oauthClient(namespace, 'invoices', { ...machineSpec(namespace), auth }));
  await waitReady(namespace, 'oauthclient/invoices');
  const { status, claims } = await runTokenJob({
    namespace,
    name: 'invoices',
    secretName: 'invoices-oauth',
    keys,
    tokenUrl,
  });
  expect([status, claims]).toEqual([200, expect.objectContaining({ sub: 'e2e-billing.invoices' })]);
});

it('a Job with the Secret of a client that is suspended gets none', async () => {
  await apply(oauthClient('e2e-shop', 'worker', { ...machineSpec('e2e-shop'), suspended: true }));
  await waitFor('e2e-shop', 'condition=Accepted=False', 'oauthclient/worker');
  const report = await runTokenJob({ namespace: 'e2e-shop', name: 'late', secretName: 'worker-oauth', tokenUrl });
  expect([report.status, report.claims.error]).toEqual([401, 'invalid_client']);
});
