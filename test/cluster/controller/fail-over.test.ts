// Fail-over between controllers on a real API server: the leader is killed, freezes, gets no answer, or ends in order. Each
// test waits for a lease of 15 s to expire, so they run concurrently. The election on timers that a test moves is in
// test/controller/leadership/.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { LEASES, resourcePath } from '../../../src/kubernetes/objects/resources.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { type ControllerProcess, leaderOf, leads, startWith } from '../setup/controllers.ts';
import { FaultProxy } from '../setup/fault-proxy.ts';
import { STARTS, TAKES_OVER } from '../setup/limits.ts';
import { SecretHistory } from '../setup/secret-history.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();
/** As many clients as the leader is in the middle of. */
const CLIENTS = 50;
const ROTATE = 'grantry.dev/rotate-requested-at';
/** Of the Secret with a client's verifiers. */
const ROTATED_AT = 'grantry.dev/rotated-at';
const DAY = 24 * 3_600_000;

type Ending = Pick<TestContext, 'onTestFinished'>;

interface Listed {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** A controller behind a proxy of its own. */
interface Behind {
  readonly controller: ControllerProcess;
  readonly proxy: FaultProxy;
}

/** Takes the leader away; the function that it answers ends that, once the other leads. */
type Disturbance = (leader: Behind) => () => void;

const DISTURBANCES: readonly (readonly [string, Disturbance])[] = [
  [
    'is killed',
    ({ controller }) => {
      controller.process.signal('SIGKILL');
      return () => {};
    },
  ],
  [
    'is frozen until the other leads',
    ({ controller }) => {
      controller.process.signal('SIGSTOP');
      return () => controller.process.signal('SIGCONT');
    },
  ],
  [
    'gets no answer until the other leads',
    ({ proxy }) => {
      proxy.stall();
      return () => proxy.clear();
    },
  ],
];

describe.concurrent('two controllers', { timeout: 180_000 }, () => {
  async function startBehindProxy(install: ClientInstall, context: Ending): Promise<Behind> {
    const proxy = await FaultProxy.start(cluster.address);
    context.onTestFinished(() => proxy.stop());
    return { proxy, controller: await startWith(context, install, { url: proxy.url }) };
  }

  /** The clients of a namespace that are Ready. */
  async function readyIn(namespace: string): Promise<readonly Listed['metadata'][]> {
    const path = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`;
    const items: readonly Listed[] = (await cluster.call('GET', path)).body.items;
    const isReady = ({ status }: Listed) =>
      status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true;
    return items.filter(isReady).map(({ metadata }) => metadata);
  }

  it.for(DISTURBANCES)(
    'have one leader, and when it %s the other finishes its work, misses no rotation and does none of it twice',
    async ([, disturb], context) => {
      const install = await ClientInstall.make(cluster);
      const team = await cluster.namespace();
      const both = await Promise.all([startBehindProxy(install, context), startBehindProxy(install, context)]);
      const controllers = both.map(({ controller }) => controller);
      await Promise.all(controllers.map((each) => each.ready()));
      const leader = await leaderOf(controllers);
      expect(await Promise.all(controllers.map(leads))).toContain(false);
      const history = await SecretHistory.follow(cluster, install.installation, context);
      const daily = { auth: { clientSecret: { rotation: { interval: '24h' } } } };
      await Promise.all([install.apply(team, 'asked'), install.apply(team, 'daily', daily)]);
      const rotating = await Promise.all(
        ['asked', 'daily'].map(async (name) => {
          const { metadata, status } = await install.whenReady(team, name);
          return { name, uid: metadata.uid as string, revision: status.secret.revision as number };
        }),
      );
      const names = Array.from({ length: CLIENTS }, (_each, index) => `app-${index}`);
      const applied = Promise.all(names.map((name) => install.apply(team, name)));
      // In the middle of it.
      const path = `/api/v1/namespaces/${team}/secrets`;
      await until('the first is there', async () => (await cluster.call('GET', path)).body.items.length > 2);
      const clear = disturb(both.find(({ controller }) => controller === leader) as Behind);

      // A rotation is requested, another falls due, and a client is created while no controller leads.
      const of = (name: string) => rotating.find((each) => each.name === name)?.uid;
      const verifier = `/api/v1/namespaces/${install.installation.namespace}/secrets/grantry-client-${of('daily')}`;
      const yesterday = new Date(Date.now() - DAY - 3_600_000).toISOString();
      await install.patch(verifier, { metadata: { annotations: { [ROTATED_AT]: yesterday } } });
      await install.apply(team, 'asked', {}, { annotations: { [ROTATE]: 'once' } });
      await install.apply(team, 'late');
      await leaderOf(controllers.filter((each) => each !== leader));
      clear();
      await applied;

      const all = [...names, ...rotating.map(({ name }) => name), 'late'];
      await until('all are ready', async () => (await readyIn(team)).length === all.length, TAKES_OVER, 500);
      const revisionOf = async (name: string) => (await install.client(team, name)).status.secret.revision as number;
      for (const { name, revision } of rotating) {
        await until(`${name} is rotated`, async () => (await revisionOf(name)) > revision, TAKES_OVER);
      }
      const histories = await history.upToNow();
      const uids = (await readyIn(team)).map(({ uid }) => uid);
      expect([...histories.keys()].sort()).toEqual(uids.toSorted());
      const terms = controllers.flatMap(({ process }) => process.output.match(/"msg":"leading"/g) ?? []).length;
      for (const [uid, each] of histories) {
        const rotated = rotating.find((one) => one.uid === uid);
        expect(each.refused).toEqual([]);
        expect([uid, each.values.length]).toEqual([uid, rotated === undefined ? 1 : 2]);
        if (rotated === undefined) expect(each.madeAfterwards).toBe(0);
        expect(each.made).toBeLessThanOrEqual(terms);
      }
      for (const { name, uid, revision } of rotating) {
        // Once for each leader but the first: a machine that stands still may cost a leader its lease in between.
        expect([name, (await revisionOf(name)) - revision < terms]).toEqual([name, true]);
        // The secret before is accepted during its grace.
        const { values = [] } = histories.get(uid) ?? {};
        const accepted = await Promise.all(values.map((value) => install.accepts(uid, value)));
        expect([name, ...accepted]).toEqual([name, true, true]);
      }
      const secrets: readonly Listed[] = (await cluster.call('GET', path)).body.items;
      expect(secrets.map(({ metadata }) => metadata.name).sort()).toEqual(all.map((name) => `${name}-oauth`).sort());
    },
  );

  it('hand over at once when the leader gets SIGTERM', async (context) => {
    const install = await ClientInstall.make(cluster);
    const both = await Promise.all([startWith(context, install), startWith(context, install)]);
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

  it('of two classes in one namespace have one leader: keys and pepper have no class', async (context) => {
    const install = await ClientInstall.make(cluster);
    const other = { GRANTRY_CLASS: `${install.installation.className}-2` };
    const leader = await startWith(context, install);
    await leaderOf([leader]);
    const waiting = await startWith(context, install, { environment: other });
    await waiting.ready();
    await leader.process.end('SIGTERM');
    await leaderOf([waiting]);
    const path = `/apis/coordination.k8s.io/v1/namespaces/${install.installation.namespace}/leases`;
    const { body } = await cluster.call('GET', path);
    expect(body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual([
      'grantry-controller',
    ]);
  });
});

/** A process of lease-candidate.ts, and what it said. */
class Candidate {
  readonly identity: string;
  readonly process: ChildProcess;
  #output = '';

  constructor(kubeconfig: string, namespace: string, identity: string) {
    this.identity = identity;
    const script = join(import.meta.dirname, 'lease-candidate.ts');
    this.process = spawn(process.execPath, [script, kubeconfig, namespace, identity], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.process.stdout?.on('data', (chunk) => {
      this.#output += chunk;
    });
  }

  /** When it said a word, in epoch milliseconds. */
  said(word: string): readonly number[] {
    return [...this.#output.matchAll(/^(\d+) (\w+)$/gm)].flatMap(([, at, said]) => (said === word ? Number(at) : []));
  }

  end(signal: NodeJS.Signals): Promise<void> {
    return new Promise((resolve) => {
      // All that it said is there only then.
      this.process.once('close', () => resolve());
      this.process.kill(signal);
    });
  }
}

describe.concurrent('an election between processes', { timeout: 120_000 }, () => {
  async function election({ onTestFinished }: Ending) {
    const namespace = await cluster.namespace();
    const token = await cluster.token({ namespace, name: 'candidate' });
    const metadata = { namespace, name: 'candidate' };
    await cluster.apply(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata,
        rules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] }],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'candidate' },
        subjects: [{ kind: 'ServiceAccount', namespace, name: 'candidate' }],
      },
    );
    const kubeconfig = cluster.kubeconfig({ token });
    const candidate = (identity: string) => {
      const made = new Candidate(kubeconfig, namespace, identity);
      onTestFinished(() => void made.process.kill('SIGKILL'));
      return made;
    };
    const lease = async () =>
      (await cluster.call('GET', resourcePath(LEASES, { namespace, name: 'election' }))).body.spec;
    return { candidate, lease };
  }

  it('changes hands when the leader freezes, which then writes nothing more', async (context) => {
    const { candidate, lease } = await election(context);
    const one = candidate('one');
    await until('one leads', () => one.said('write').length > 0, STARTS);
    const other = candidate('other');
    await until('other has read it', async () => (await lease()).holderIdentity === 'one');
    one.process.kill('SIGSTOP');
    await until('other leads', () => other.said('write').length > 0, TAKES_OVER);
    expect(await lease()).toMatchObject({ holderIdentity: 'other', leaseTransitions: 1, leaseDurationSeconds: 15 });
    one.process.kill('SIGCONT');
    await until('one knows', () => one.said('stopped').length > 0);
    await new Promise((resolve) => setTimeout(resolve, 500));
    // What was said before the freeze is older, and nothing was said after it.
    const [taken = 0] = other.said('started');
    expect(one.said('write').filter((at) => at >= taken)).toEqual([]);
  });

  it('changes hands at once when the leader ends in order', async (context) => {
    const { candidate, lease } = await election(context);
    const one = candidate('one');
    await until('one leads', () => one.said('started').length > 0, STARTS);
    const other = candidate('other');
    await one.end('SIGTERM');
    expect(one.said('stopped').length).toBe(1);
    await until('other leads', () => other.said('started').length > 0, 14_000);
    expect(await lease()).toMatchObject({ holderIdentity: 'other', leaseTransitions: 1 });
  });
});
