// `grantry controller` as processes of their own: the leader, fail-over, and what is said when something is missing.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import { freePort } from '../../free-port.ts';
import { endProcesses } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { Cluster } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { FaultProxy, listOf, type Match } from '../setup/fault-proxy.ts';
import { ASKS_AGAIN, STARTS, TAKES_OVER } from '../setup/limits.ts';
import { SecretHistory } from '../setup/secret-history.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

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
    TAKES_OVER,
  );
  return leader as ControllerProcess;
}

interface Listed {
  readonly metadata: { readonly uid: string };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** A controller behind a proxy of its own. */
interface Behind {
  readonly controller: ControllerProcess;
  readonly proxy: FaultProxy;
}

describe('two controllers', () => {
  const proxies: FaultProxy[] = [];
  afterEach(async () => {
    await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
  });

  async function startBehindProxy(install: ClientInstall): Promise<Behind> {
    const proxy = await FaultProxy.start(cluster.address);
    proxies.push(proxy);
    return { proxy, controller: await startController(install, { url: proxy.url }) };
  }

  /** The uids of the clients of a namespace that are Ready. */
  async function readyIn(namespace: string): Promise<readonly string[]> {
    const path = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`;
    const items: readonly Listed[] = (await cluster.call('GET', path)).body.items;
    const isReady = ({ status }: Listed) =>
      status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true;
    return items.filter(isReady).map(({ metadata }) => metadata.uid);
  }

  it.each([
    [
      'is killed',
      async ({ controller }: Behind, otherLeads: () => Promise<unknown>) => {
        await controller.process.end('SIGKILL');
        await otherLeads();
      },
    ],
    [
      'stands still until the other leads',
      async ({ controller }: Behind, otherLeads: () => Promise<unknown>) => {
        controller.process.signal('SIGSTOP');
        await otherLeads();
        controller.process.signal('SIGCONT');
      },
    ],
    [
      'gets no answer until the other leads',
      async ({ proxy }: Behind, otherLeads: () => Promise<unknown>) => {
        proxy.stall();
        await otherLeads();
        proxy.clear();
      },
    ],
  ])(
    'have one leader, and when it %s the other finishes its work without doing any of it twice',
    async (_, disturb) => {
      const install = await ClientInstall.make(cluster);
      const team = await cluster.namespace();
      const both = [await startBehindProxy(install), await startBehindProxy(install)];
      const controllers = both.map(({ controller }) => controller);
      await Promise.all(controllers.map((each) => each.ready()));
      const leader = await leaderOf(controllers);
      expect(await Promise.all(controllers.map(leads))).toContain(false);
      const history = await SecretHistory.follow(cluster, install.installation);
      const names = Array.from({ length: 100 }, (_each, index) => `app-${index}`);
      const applied = Promise.all(names.map((name) => install.apply(team, name)));
      // In the middle of it.
      const path = `/api/v1/namespaces/${team}/secrets`;
      await until('the first is there', async () => (await cluster.call('GET', path)).body.items.length > 0);
      const others = controllers.filter((each) => each !== leader);
      await disturb(both.find(({ controller }) => controller === leader) as Behind, () => leaderOf(others));
      await applied;
      await until('all are ready', async () => (await readyIn(team)).length === names.length, TAKES_OVER, 500);
      const told = await history.upToNow();
      expect([...told.keys()].sort()).toEqual((await readyIn(team)).toSorted());
      const terms = controllers.flatMap(({ process }) => process.output.match(/"msg":"leading"/g) ?? []).length;
      for (const each of told.values()) {
        expect(each).toMatchObject({ values: [expect.any(String)], madeAfterwards: 0, refused: [] });
        expect(each.made).toBeLessThanOrEqual(terms);
      }
      const before = (await install.secret(team, 'app-0-oauth'))?.data['client-secret'];
      const annotations = { 'grantry.dev/rotate-requested-at': 'after the fail-over' };
      await install.apply(team, 'app-0', {}, { annotations });
      const isRotated = async () => (await install.secret(team, 'app-0-oauth'))?.data['client-secret'] !== before;
      await until('the rotation is not missed', isRotated, TAKES_OVER);
    },
    180_000,
  );

  it('hand over at once when the leader gets SIGTERM', async () => {
    const install = await ClientInstall.make(cluster);
    const both = [await startController(install), await startController(install)];
    const leader = await leaderOf(both);
    const others = both.filter((each) => each !== leader);
    // They would take it before the test has read the released lease.
    for (const { process } of others) process.signal('SIGSTOP');
    expect(await leader.process.end('SIGTERM')).toBe(0);
    const { namespace } = install.installation;
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const { body } = await cluster.call('GET', path);
    expect(body.items).toHaveLength(1);
    expect(body.items[0].spec.leaseDurationSeconds).toBe(1);
    for (const { process } of others) process.signal('SIGCONT');
    await leaderOf(others);
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
    const list = '/apis/grantry.dev/v1alpha1/oauthclients';
    const { controllerToken: token } = install.installation;
    await until('it is taken', async () => (await cluster.call('GET', list, { token })).status === 403);
    const controller = await startController(install);
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

  it('says that the CRDs are missing, and goes on by itself once they are there', async () => {
    const server = await ApiServer.start(cluster.address.assets);
    try {
      const own = new Cluster(server.address);
      const install = await ClientInstall.make(own);
      const controller = await startController(install);
      const saysSo = async () => /^503.*are its CRDs installed/s.test(await readiness(controller));
      await until('it says so', saysSo, STARTS);
      await controller.process.printed(/oauthclients\.grantry\.dev.*are its CRDs installed/);
      const impatient = await startController(install);
      await until('it answers', async () => (await readiness(impatient)).startsWith('503'));
      expect(await impatient.process.end('SIGTERM')).toBe(0);
      await own.applyCrds();
      await controller.ready(ASKS_AGAIN);
      expect(await controller.process.end('SIGTERM')).toBe(0);
    } finally {
      await endProcesses();
      await server.stop();
    }
  }, 120_000);

  it('says that its credentials are not believed, and lives on', async () => {
    const install = await ClientInstall.make(cluster);
    const environment = { KUBECONFIG: cluster.kubeconfig({ token: 'expired' }) };
    const controller = await startController(install, { environment });
    await until('it says so', async () => /^503.*401 Unauthorized/s.test(await readiness(controller)), STARTS);
    await controller.process.printed(/401 Unauthorized/);
    expect((await fetch(`${controller.admin}/livez`)).status).toBe(200);
    expect(await controller.process.end('SIGTERM')).toBe(0);
  });

  it('says that the API server does not answer, and lives on', async () => {
    const install = await ClientInstall.make(cluster);
    const url = `https://127.0.0.1:${await freePort()}`;
    const controller = await startController(install, { url });
    await until('it says so', async () => /^503.*ECONNREFUSED/s.test(await readiness(controller)), STARTS);
    expect((await fetch(`${controller.admin}/livez`)).status).toBe(200);
    expect(await controller.process.end('SIGTERM')).toBe(0);
  });

  it.each<[string, (release: string) => Match]>([
    ['namespaces', () => listOf('namespaces')],
    ['what is kept of clients', (release) => (seen) => listOf('secrets')(seen) && seen.path.includes(release)],
  ])(
    'that leads writes nothing, and removes nothing, before it has the list of %s',
    async (_, listHeld) => {
      const install = await ClientInstall.make(cluster);
      const team = await cluster.namespace();
      const { namespace } = install.installation;
      const before = await startController(install);
      await install.apply(team, 'kept');
      const { metadata } = await install.whenReady(team, 'kept');
      const verifier = `/api/v1/namespaces/${namespace}/secrets/${verifierSecretName(metadata.uid)}`;
      const kept = (await cluster.call('GET', verifier)).body.metadata;
      await before.process.end('SIGTERM');
      await install.apply(team, 'late');
      const proxy = await FaultProxy.start(cluster.address);
      try {
        const isHeld = listHeld(namespace);
        proxy.stall(isHeld);
        const controller = await startController(install, { url: proxy.url });
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
      } finally {
        await endProcesses();
        await proxy.stop();
      }
    },
    120_000,
  );

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

  it('writes nothing of what it had begun when another took its lease', async () => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const proxy = await FaultProxy.start(cluster.address);
    try {
      const controller = await startController(install, { url: proxy.url });
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
    } finally {
      await endProcesses();
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

  it('writes no secret and no verifier to its log', async () => {
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
