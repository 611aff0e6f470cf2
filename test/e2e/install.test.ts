// `helm install` as README prints it: what runs afterwards, and what is Ready.

import { expect, inject, it } from 'vitest';
import { figure } from './setup/diagnosis.ts';
import { apply, canI, createNamespace, get, kubectl, list } from './setup/kubectl.ts';
import { readmeCommands, runPrinted } from './setup/printed.ts';
import { sharedInstall } from './setup/shared-install.ts';

const { namespace } = sharedInstall;
/** The name that the chart gives the admin port. */
const ADMIN = 'admin';

/** Of a NetworkPolicy. */
interface Rule {
  readonly ports?: readonly { readonly port: string | number }[];
  readonly from?: readonly object[];
}

it('two token servers, two controllers and a Redis run where only restricted pods may', async () => {
  figure(`helm install until all was ready: ${inject('installSeconds').toFixed(1)} s`);
  expect(inject('notRestricted')).toBe('');
  const { metadata } = await get('namespace', namespace);
  expect(metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
  const parts = { server: 2, controller: 2, redis: 1 } as const;
  for (const part of ['server', 'controller', 'redis'] as const) {
    await sharedInstall.ready(part, parts[part]);
  }
});

it('helm test is green', async () => {
  const { code, output, errors } = await sharedInstall.test();
  expect([code, output, errors]).toEqual([0, expect.stringContaining('Succeeded'), '']);
});

it('every example is Ready', async () => {
  const clients = await list('oauthclients', 'default');
  expect(clients.map(({ metadata }) => metadata.name).sort()).toEqual([
    'native-app',
    'notes-api',
    'notes-cli',
    'notes-web',
    'report-job',
    'web-app',
  ]);
  for (const { metadata, status } of clients) {
    const ready = status.conditions.find(({ type }: { type: string }) => type === 'Ready');
    expect([metadata.name, ready.status, ready.reason]).toEqual([metadata.name, 'True', 'Ready']);
  }
});

it('the commands that README prints get a token', async () => {
  expect(await runPrinted(readmeCommands().token)).toMatch(/\{"access_token":"eyJ/);
});

it('the admin port is closed to all but named peers, by NetworkPolicies', async () => {
  figure('NetworkPolicies are installed; the network plugin of the one-node cluster does not enforce any');
  const policies = await list('networkpolicies', namespace);
  const selected = policies.map(({ spec }) => spec.podSelector.matchLabels['app.kubernetes.io/component']).sort();
  expect(selected).toEqual(['controller', 'redis', 'server']);
  for (const { spec } of policies) {
    expect(spec.policyTypes).toContain('Ingress');
    // What no rule names is closed.
    const rules: readonly Rule[] = spec.ingress ?? [];
    for (const { ports = [{ port: ADMIN }], from } of rules) {
      if (ports.some(({ port }) => port === ADMIN)) expect(from?.length).toBeGreaterThan(0);
    }
  }
});

it('an editor of a namespace may write clients there, and only the controller their status', async () => {
  const tenant = await createNamespace('e2e-rights');
  await kubectl('create', 'rolebinding', 'editor', '-n', tenant, '--clusterrole=edit', '--user=editor@example.com');
  expect(await canI('editor@example.com', 'create', 'oauthclients.grantry.dev', tenant)).toBe(true);
  expect(await canI('editor@example.com', 'patch', 'oauthclients.grantry.dev/status', tenant)).toBe(false);
  expect(await canI('editor@example.com', 'create', 'clientpolicies.grantry.dev')).toBe(false);
});

it('a token server may write nothing anywhere', async () => {
  const account = `system:serviceaccount:${namespace}:${sharedInstall.nameOf('server')}`;
  for (const verb of ['create', 'update', 'patch', 'delete']) {
    expect([verb, await canI(account, verb, 'secrets', namespace)]).toEqual([verb, false]);
    expect([verb, await canI(account, verb, 'oauthclients.grantry.dev')]).toEqual([verb, false]);
  }
  expect(await canI(account, 'list', 'secrets')).toBe(false);
  expect(await canI(account, 'list', 'secrets', namespace)).toBe(true);
});

it('a pod that the restricted standard forbids is refused in its namespace', async () => {
  const container = { name: 'intruder', image: 'busybox' };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name: 'intruder' },
    spec: { containers: [container] },
  };
  await expect(apply(pod)).rejects.toThrow(/violates PodSecurity/);
});
