// `grantry controller` as processes of their own: who leads, who takes over, and what is said when something is missing.

import { afterEach, describe, expect, it } from 'vitest';
import { verifierSecretName } from '../../src/admission/client-verifier.ts';
import { freePort } from '../free-port.ts';
import { endProcesses } from '../processes/grantry-process.ts';
import { until } from '../until.ts';
import { ApiServer } from './api-server.ts';
import { ClientInstall } from './client-controllers.ts';
import { Cluster } from './cluster.ts';
import { type ControllerProcess, startController } from './controllers.ts';
import { FaultProxy, type Match } from './fault-proxy.ts';
import { sharedCluster } from './shared-cluster.ts';

const cluster = sharedCluster();
afterEach(endProcesses);

async function leads(controller: ControllerProcess): Promise<boolean> {
  return (await controller.metric('grantry_lease_held')) === 1;
}

async function readiness({ admin }: ControllerProcess): Promise<string> {
  const response = await fetch(`${admin}/readyz`).catch(() => undefined);
  return response === undefined ? '' : `${response.status} ${await response.text()}`;
}

async function leaderOf(controllers: readonly ControllerProcess[]): Promise<ControllerProcess> {
  let leader: ControllerProcess | undefined;
  await until(
    'one leads',
    async () => {
      for (const each of controllers) if (await leads(each)) leader = each;
      return leader !== undefined;
    },
    40_000,
  );
  return leader as ControllerProcess;
}

describe('two controllers', () => {
  it('have one leader, and when it is killed half-way the other finishes its work without doing any of it twice', async () => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const both = [await startController(install), await startController(install)];
    await Promise.all(both.map((each) => each.ready()));
    const leader = await leaderOf(both);
    expect(await Promise.all(both.map(leads))).toContain(false);
    const names = Array.from({ length: 30 }, (_, index) => `app-${index}`);
    await Promise.all(names.map((name) => install.apply(team, name)));
    await install.whenReady(team, 'app-0');
    await leader.process.end('SIGKILL');
    const other = both.find((each) => each !== leader) as ControllerProcess;
    await leaderOf([other]);
    const before = (await install.secret(team, 'app-0-oauth'))?.data;
    for (const name of names) {
      const { metadata } = await install.whenReady(team, name);
      const secret = (await install.secret(team, `${name}-oauth`))?.data['client-secret'];
      expect(await install.accepts(metadata.uid, secret)).toBe(true);
      expect((await install.verifiers(metadata.uid))?.verifiers[0]?.revision).toBeLessThanOrEqual(2);
    }
    expect((await install.secret(team, 'app-0-oauth'))?.data).toEqual(before);
    const annotations = { 'grantry.dev/rotate-requested-at': 'after the fail-over' };
    await install.apply(team, 'app-0', {}, { annotations });
    const isRotated = async () =>
      (await install.secret(team, 'app-0-oauth'))?.data['client-secret'] !== before?.['client-secret'];
    await until('the rotation is not missed', isRotated, 60_000);
  }, 180_000);

  it('hand over at once when the leader is told to end', async () => {
    const install = await ClientInstall.make(cluster);
    const both = [await startController(install), await startController(install)];
    const leader = await leaderOf(both);
    expect(await leader.process.end('SIGTERM')).toBe(0);
    const { namespace } = install.installation;
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const { body } = await cluster.call('GET', path);
    expect(body.items).toHaveLength(1);
    expect(body.items[0].spec.leaseDurationSeconds).toBe(1);
    await leaderOf(both.filter((each) => each !== leader));
  });
});

it('controllers of two classes in one namespace have one leader: keys and pepper have no class', async () => {
  const install = await ClientInstall.make(cluster);
  const other = { GRANTRY_CLASS: `${install.installation.className}-2` };
  const leader = await startController(install);
  await leaderOf([leader]);
  const waiting = await startController(install, { environment: other });
  await waiting.ready();
  await leader.process.end('SIGTERM');
  await leaderOf([waiting]);
  const path = `/apis/coordination.k8s.io/v1/namespaces/${install.installation.namespace}/leases`;
  const { body } = await cluster.call('GET', path);
  expect(body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual([
    'grantry-controller',
  ]);
});

describe('a controller', () => {
  it('says which right it lacks, and goes on by itself once it has it', async () => {
    const install = await ClientInstall.make(cluster);
    const { namespace } = install.installation;
    const path = `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${namespace}-grantry-controller-tenants`;
    const { body: binding } = await cluster.call('GET', path);
    await cluster.call('DELETE', path);
    const controller = await startController(install);
    const account = `system:serviceaccount:${namespace}:grantry-controller`;
    const parts = [/^503/, /list oauthclients\.grantry\.dev/, new RegExp(account), /403/];
    const saysSo = async () => {
      const said = await readiness(controller);
      return parts.every((part) => part.test(said));
    };
    await until('it says so', saysSo, 40_000);
    await until('the log says so', () => controller.process.output.includes('list oauthclients.grantry.dev'));
    const { resourceVersion: _, uid: __, creationTimestamp: ___, managedFields: ____, ...metadata } = binding.metadata;
    await cluster.apply({ ...binding, metadata });
    await controller.ready();
  });

  it('says that the CRDs are missing, and goes on by itself once they are there', async () => {
    const server = await ApiServer.start(cluster.address.assets);
    try {
      const own = new Cluster(server.address);
      const install = await ClientInstall.make(own);
      const controller = await startController(install);
      const saysSo = async () => /^503.*are its CRDs installed/s.test(await readiness(controller));
      await until('it says so', saysSo, 40_000);
      const impatient = await startController(install);
      await until('it answers', async () => (await readiness(impatient)).startsWith('503'));
      expect(await impatient.process.end('SIGTERM')).toBe(0);
      await own.applyCrds();
      await controller.ready();
      expect(await controller.process.end('SIGTERM')).toBe(0);
    } finally {
      await endProcesses();
      await server.stop();
    }
  }, 120_000);

  it('says that the API server does not answer, and lives on', async () => {
    const install = await ClientInstall.make(cluster);
    const url = `https://127.0.0.1:${await freePort()}`;
    const controller = await startController(install, { url });
    await until('it says so', async () => /^503.*ECONNREFUSED/s.test(await readiness(controller)), 40_000);
    expect((await fetch(`${controller.admin}/livez`)).status).toBe(200);
    expect(await controller.process.end('SIGTERM')).toBe(0);
  });

  it('gives a write up that could arrive when another leads', async () => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const proxy = await FaultProxy.start(cluster.address);
    try {
      const controller = await startController(install, { url: proxy.url });
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
    } finally {
      await endProcesses();
      proxy.clear();
      await proxy.stop();
    }
  });

  it.each(['GRANTRY_ISSUER', 'GRANTRY_NAMESPACE'])('does not start without %s', async (name) => {
    const install = await ClientInstall.make(cluster);
    const environment = { [name]: undefined as unknown as string };
    const controller = await startController(install, { environment });
    expect(await controller.process.ended()).toBe(2);
    expect(controller.process.errors).toContain(name);
  });

  it('names the Secret of nobody in its log', async () => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const environment = { GRANTRY_LOG_LEVEL: 'trace' };
    const controller = await startController(install, { environment });
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
