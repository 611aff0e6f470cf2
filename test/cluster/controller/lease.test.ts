// The election on a real API server, with real processes that freeze, are killed and end in order.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { LEASES, resourcePath } from '../../../src/kubernetes/objects/resources.ts';
import { until } from '../../until.ts';
import { STARTS, TAKES_OVER } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

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

const started: Candidate[] = [];
afterEach(() => {
  for (const { process } of started.splice(0)) process.kill('SIGKILL');
});

describe('an election between processes', () => {
  const cluster = sharedCluster();

  async function election() {
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
      started.push(made);
      return made;
    };
    const lease = async () =>
      (await cluster.call('GET', resourcePath(LEASES, { namespace, name: 'election' }))).body.spec;
    return { candidate, lease };
  }

  it('changes hands when the leader freezes, which then writes nothing more', { timeout: 120_000 }, async () => {
    const { candidate, lease } = await election();
    const one = candidate('one');
    await until('one leads', () => one.said('write').length > 0, STARTS);
    const other = candidate('other');
    await until('other looks on', async () => (await lease()).holderIdentity === 'one');
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

  it('changes hands at once when the leader ends in order', { timeout: 60_000 }, async () => {
    const { candidate, lease } = await election();
    const one = candidate('one');
    await until('one leads', () => one.said('started').length > 0, STARTS);
    const other = candidate('other');
    await one.end('SIGTERM');
    expect(one.said('stopped').length).toBe(1);
    await until('other leads', () => other.said('started').length > 0, 14_000);
    expect(await lease()).toMatchObject({ holderIdentity: 'other', leaseTransitions: 1 });
  });
});
