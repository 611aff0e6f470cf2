// `grantry controller` as a process of its own: what a leader writes, and what is said when something is missing. Fail-over is in
// fail-over.test.ts.

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import { freePort } from '../../free-port.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { Cluster } from '../setup/cluster.ts';
import { type ControllerProcess, leaderOf, leads, startWith } from '../setup/controllers.ts';
import { FaultProxy, listOf, type Match } from '../setup/fault-proxy.ts';
import { ASKS_AGAIN, STARTS } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();

async function readiness({ admin }: ControllerProcess): Promise<string> {
  const response = await fetch(`${admin}/readyz`).catch(() => undefined);
  return response === undefined ? '' : `${response.status} ${await response.text()}`;
}

describe.concurrent('a controller', { timeout: 120_000 }, () => {
  it('says which right it lacks, and goes on by itself once it has it', async (context) => {
    const install = await ClientInstall.make(cluster);
    const { namespace } = install.installation;
    const path = `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${namespace}-grantry-controller-tenants`;
    const { body: binding } = await cluster.call('GET', path);
    await cluster.call('DELETE', path);
    const list = '/apis/grantry.dev/v1alpha1/oauthclients';
    const { controllerToken: token } = install.installation;
    await until('it is taken', async () => (await cluster.call('GET', list, { token })).status === 403);
    const controller = await startWith(context, install);
    const account = `system:serviceaccount:${namespace}:grantry-controller`;
    const parts = [/^503/, /list oauthclients\.grantry\.dev/, new RegExp(account), /403/];
    const saysSo = async () => {
      const said = await readiness(controller);
      return parts.every((part) => part.test(said));
    };
    await until('it says so', saysSo, STARTS);
    await until('the log says so', () => controller.process.output.includes('list oauthclients.grantry.dev'));
    const { resourceVersion: _, uid: __, creationTimestamp: ___, managedFields: ____, ...metadata } = binding.metadata;
    await cluster.apply({ ...binding, metadata });
    await controller.ready(ASKS_AGAIN);
  });

  it('says that the CRDs are missing, and goes on by itself once they are there', async (context) => {
    const server = await ApiServer.start(cluster.address.assets);
    context.onTestFinished(() => server.stop());
    const own = new Cluster(server.address);
    const install = await ClientInstall.make(own);
    const controller = await startWith(context, install);
    const saysSo = async () => /^503.*are its CRDs installed/s.test(await readiness(controller));
    await until('it says so', saysSo, STARTS);
    await controller.process.printed(/oauthclients\.grantry\.dev.*are its CRDs installed/);
    const impatient = await startWith(context, install);
    await until('it answers', async () => (await readiness(impatient)).startsWith('503'));
    expect(await impatient.process.end('SIGTERM')).toBe(0);
    await own.applyCrds();
    await controller.ready(ASKS_AGAIN);
    expect(await controller.process.end('SIGTERM')).toBe(0);
  });

  it('says that its credentials are not believed, and lives on', async (context) => {
    const install = await ClientInstall.make(cluster);
    const environment = { KUBECONFIG: cluster.kubeconfig({ token: 'expired' }) };
    const controller = await startWith(context, install, { environment });
    await until('it says so', async () => /^503.*401 Unauthorized/s.test(await readiness(controller)), STARTS);
    await controller.process.printed(/401 Unauthorized/);
    expect((await fetch(`${controller.admin}/livez`)).status).toBe(200);
    expect(await controller.process.end('SIGTERM')).toBe(0);
  });

  it('says that the API server does not answer, and lives on', async (context) => {
    const install = await ClientInstall.make(cluster);
    const url = `https://127.0.0.1:${await freePort()}`;
    const controller = await startWith(context, install, { url });
    await until('it says so', async () => /^503.*ECONNREFUSED/s.test(await readiness(controller)), STARTS);
    expect((await fetch(`${controller.admin}/livez`)).status).toBe(200);
    expect(await controller.process.end('SIGTERM')).toBe(0);
  });

  it.for<[string, (release: string) => Match]>([
    ['namespaces', () => listOf('namespaces')],
    [
      'what is kept of clients',
      // The Secrets of identity providers are another list there, by their type.
      (release) => (seen) => listOf('secrets')(seen) && seen.path.includes(release) && !seen.query.has('fieldSelector'),
    ],
  ])('that leads writes nothing, and removes nothing, before it has the list of %s', async ([, listHeld], context) => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const { namespace } = install.installation;
    const before = await startWith(context, install);
    await install.apply(team, 'kept');
    const { metadata } = await install.whenReady(team, 'kept');
    const verifier = `/api/v1/namespaces/${namespace}/secrets/${verifierSecretName(metadata.uid)}`;
    const kept = (await cluster.call('GET', verifier)).body.metadata;
    await before.process.end('SIGTERM');
    await install.apply(team, 'late');
    const proxy = await FaultProxy.start(cluster.address);
    context.onTestFinished(() => proxy.stop());
    const isHeld = listHeld(namespace);
    proxy.stall(isHeld);
    const controller = await startWith(context, install, { url: proxy.url });
    await leaderOf([controller]);
    await until('the rest is listed', async () =>
      /^503[\s\S]*^watches: [a-z.]+: not listed yet$/m.test(await readiness(controller)),
    );
    await until('it is asked for', () => proxy.count(isHeld) > 0);
    await sleep(500);
    const writes = () => proxy.requests.filter(({ method, path }) => method !== 'GET' && !path.includes('/leases'));
    expect(writes()).toEqual([]);
    proxy.clear();
    await install.whenReady(team, 'late');
    expect((await cluster.call('GET', verifier)).body.metadata.uid).toBe(kept.uid);
  });

  it('gives a write up that could arrive when another leads', async (context) => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const proxy = await FaultProxy.start(cluster.address);
    context.onTestFinished(() => proxy.stop());
    const controller = await startWith(context, install, { url: proxy.url });
    await leaderOf([controller]);
    const isSecretMade: Match = ({ method, path }) => method === 'POST' && path.endsWith(`/${team}/secrets`);
    proxy.stall(isSecretMade);
    await install.apply(team, 'stalled');
    const tries = () => proxy.requests.filter(isSecretMade).length;
    await until('it is tried', () => tries() === 1);
    // A lease has 5 s left when its holder stops beginning anything.
    await until('it is given up and tried again', () => tries() > 1, 9000);
    const timedOut = /create secrets in namespace \S+ as \S+ Timeout/;
    await until('the log says so', () => timedOut.test(controller.process.output));
  });

  it('writes nothing of what it had begun when another took its lease', async (context) => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const proxy = await FaultProxy.start(cluster.address);
    context.onTestFinished(() => proxy.stop());
    const controller = await startWith(context, install, { url: proxy.url });
    await leaderOf([controller]);
    await install.apply(team, 'begun');
    await install.whenReady(team, 'begun');
    const path = `/api/v1/namespaces/${team}/secrets/begun-oauth`;
    const isRead: Match = (seen) => seen.method === 'GET' && seen.path === path;
    const isWrite: Match = (seen) => seen.method !== 'GET' && !seen.path.includes('/leases');
    const reads = proxy.count(isRead);
    proxy.stall(isRead);
    await install.patch(path, { stringData: { 'client-id': 'another writer' } });
    await until('it reads what another writer did', () => proxy.count(isRead) > reads);
    const lease = `/apis/coordination.k8s.io/v1/namespaces/${install.installation.namespace}/leases/grantry-controller`;
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    await install.patch(lease, { spec: { holderIdentity: 'another', renewTime } });
    await until('it does not lead', async () => !(await leads(controller)));
    const before = proxy.count(isWrite);
    proxy.clear();
    await sleep(500);
    expect(proxy.count(isWrite)).toBe(before);
    expect((await install.secret(team, 'begun-oauth'))?.data['client-id']).toBe('another writer');
  });

  it.for(['GRANTRY_ISSUER', 'GRANTRY_NAMESPACE'])('does not start without %s', async (name, context) => {
    const install = await ClientInstall.make(cluster);
    const environment = { [name]: undefined as unknown as string };
    const controller = await startWith(context, install, { environment });
    expect(await controller.process.ended()).toBe(2);
    expect(controller.process.errors).toContain(name);
  });

  it('writes no secret and no verifier to its log', async (context) => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const environment = { GRANTRY_LOG_LEVEL: 'trace' };
    const controller = await startWith(context, install, { environment });
    await install.apply(team, 'quiet');
    const { metadata } = await install.whenReady(team, 'quiet');
    const secret = (await install.secret(team, 'quiet-oauth'))?.data['client-secret'] ?? '';
    const path = `/api/v1/namespaces/${install.installation.namespace}/secrets/${verifierSecretName(metadata.uid)}`;
    const { body } = await cluster.call('GET', path);
    const verifiers = Buffer.from(body.data.verifiers, 'base64').toString();
    const [, verifier = ''] = /"verifier":"([^"]+)"/.exec(verifiers) ?? [];
    expect([secret.length, verifier.length]).toEqual([43, 43]);
    await controller.process.end('SIGTERM');
    const said = controller.process.output + controller.process.errors;
    for (const value of [secret, verifier]) expect(said).not.toContain(value);
  });
});
