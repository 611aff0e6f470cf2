// The chart on a real API server: it accepts every rendering, and Helm finds there what speaks against an install. No node
// and no controller manager run, so no pod ever starts; that is the business of test/e2e.

import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { DEFAULT_SIGNING_KEYS } from '../../src/admission/keys/default-signing-keys.ts';
import { ApiServer } from '../cluster/setup/api-server.ts';
import { type ApiAnswer, Cluster, type Manifest } from '../cluster/setup/cluster.ts';
import { until } from '../until.ts';
import {
  ASSETS,
  CHART,
  CI_VALUES,
  HELMS,
  type HelmName,
  type HelmResult,
  helm,
  MINIMAL,
  manifests,
  template,
} from './helm.ts';

const LONGEST_RELEASE = 'abcdefghij-abcdefghij-abcdefghij-abcdefghij-abcdefghi';

let server: ApiServer;
let cluster: Cluster;

beforeAll(async () => {
  server = await ApiServer.start();
  cluster = new Cluster(server.address);
  const files = globSync('crds/*.yaml', { cwd: ASSETS }).flatMap((file) => ['-f', join(ASSETS, file)]);
  await mustKubectl('apply', '--server-side', ...files);
  await mustKubectl('wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all');
});

afterAll(() => server?.stop());

async function mustKubectl(...args: readonly string[]): Promise<string> {
  const { code, output, errors } = await cluster.kubectl(args);
  if (code !== 0) throw new Error(errors);
  return output;
}

interface Place {
  readonly release: string;
  readonly namespace: string;
}

/** `helm` on the cluster. */
async function run(name: HelmName, command: string, { release, namespace }: Place, args: readonly string[] = []) {
  const chart = command === 'uninstall' ? [] : [CHART];
  return await helm(name, [command, release, ...chart, '--namespace', namespace, ...args], cluster.adminKubeconfig);
}

async function install(name: HelmName, place: Place, args: readonly string[] = []): Promise<HelmResult> {
  return await run(name, 'install', place, ['--create-namespace', ...MINIMAL, ...args]);
}

async function must(result: Promise<HelmResult>): Promise<void> {
  const { code, errors } = await result;
  if (code !== 0) throw new Error(errors);
}

/** A mistaken install says what to set. */
async function refusal(result: Promise<HelmResult>): Promise<string> {
  const { code, errors } = await result;
  expect([errors, code]).toEqual([errors, 1]);
  return errors;
}

async function markCrds(version: string): Promise<void> {
  await mustKubectl('annotate', '--overwrite', 'crd/oauthclients.grantry.dev', `grantry.dev/version=${version}`);
}

async function crdVersion(): Promise<unknown> {
  const { body } = await cluster.call(
    'GET',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/oauthclients.grantry.dev',
  );
  return (body.metadata.annotations as Readonly<Record<string, string>>)['grantry.dev/version'];
}

async function mayListSecrets(account: string, namespace: string): Promise<boolean> {
  const { output } = await cluster.kubectl(['auth', 'can-i', 'list', 'secrets', '--as', account, '-n', namespace]);
  return output.trim() === 'yes';
}

const KINDS = ['SigningKey', 'IdentityProvider'] as const;
const HOLD = 'example.com/hold';

interface Attempt {
  readonly kind: (typeof KINDS)[number];
  /** Undefined: one that the API server generates. */
  readonly name: string | undefined;
  readonly token?: string;
}

// In this order: an API server has one set of CRDs, and each of these stories begins with what the one before left.
describe('Helm on a cluster', () => {
  const first = { release: 'grantry', namespace: 'first' };
  const second = { release: 'grantry', namespace: 'second' };

  beforeAll(async () => {
    // What no API server makes by itself while nothing else of a cluster runs.
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } });
  });

  it('gets the instruction to install the CRDs where they are missing', async () => {
    expect(await refusal(install('helm-4.1', first, ['--set', 'crds.enabled=false']))).toContain('crds.enabled=true');
  });

  it('installs, and says what to do next', async () => {
    const { code, output, errors } = await install('helm-3.17', first);
    expect([code, errors]).toEqual([0, '']);
    const commands = output.match(/^ {2}(kubectl|helm) .*/gm) ?? [];
    expect(commands.map((line) => line.trim().split(' ').slice(0, 2).join(' '))).toEqual([
      'kubectl -n',
      'helm test',
      'kubectl -n',
    ]);
  });

  it('gets the instruction to give a second install a class and no CRDs', async () => {
    for (const name of HELMS) {
      expect(await refusal(install(name, second))).toMatch(/crds\.enabled=false.*className/);
      expect(await refusal(install(name, second, ['--set', 'crds.enabled=false']))).toMatch(/first.*className/);
    }
    expect(await refusal(install('helm-4.1', { release: 'other', namespace: 'first' }))).toContain('--namespace');
  });

  it('installs a second time, of another class', async () => {
    await must(install('helm-4.1', second, ['--set', 'crds.enabled=false,className=second']));
    await must(run('helm-3.17', 'upgrade', second, [...MINIMAL, '--set', 'crds.enabled=false,className=second']));
    await must(run('helm-4.1', 'upgrade', first, MINIMAL));
  });

  describe('a SigningKey or IdentityProvider', () => {
    const further = ['--set', 'crds.enabled=false,className=second'];
    const listed = ['--set', 'admissionPolicy.namespaces={second}'];

    /** An attempt to create one. */
    async function attempt(namespace: string, { kind, name, token }: Attempt): Promise<ApiAnswer> {
      const metadata = { namespace, ...(name === undefined ? { generateName: 'some-' } : { name }) };
      const spec = kind === 'SigningKey' ? {} : { type: 'GitHub', clientSecretRef: { name: 'github' } };
      const body = { apiVersion: 'grantry.dev/v1alpha1', kind, metadata: { ...metadata, finalizers: [HOLD] }, spec };
      const plural = `${kind.toLowerCase()}s`;
      const path = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/${plural}`;
      return await cluster.call('POST', path, token === undefined ? { body } : { body, token });
    }

    /** The token of a ServiceAccount of this namespace that may do everything. */
    async function administrator(namespace: string): Promise<string> {
      const token = await cluster.token({ namespace, name: 'administrator' });
      await cluster.apply({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: `administrator-of-${namespace}` },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ kind: 'ServiceAccount', name: 'administrator', namespace }],
      });
      const account = `system:serviceaccount:${namespace}:administrator`;
      await until(`${account} has its rights`, () => mayListSecrets(account, 'kube-system'));
      return token;
    }

    /** Until the API server holds the present policy: an attempt in this namespace that does not count. */
    async function inForce(namespace: string, isAccepted: boolean): Promise<void> {
      const kind = 'SigningKey';
      await until(`a SigningKey in ${namespace} is ${isAccepted ? 'accepted' : 'refused'}`, async () => {
        const path = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/signingkeys?dryRun=All`;
        const metadata = { generateName: 'probe-' };
        const body = { apiVersion: 'grantry.dev/v1alpha1', kind, metadata, spec: {} };
        return (await cluster.call('POST', path, { body })).status === (isAccepted ? 201 : 422);
      });
    }

    it('given one outside a release namespace → refused with the namespaces; one from before changes and goes', async () => {
      await must(run('helm-4.1', 'upgrade', first, [...MINIMAL, '--set', 'admissionPolicy.enabled=false']));
      await inForce('default', true);
      const before = await Promise.all(KINDS.map((kind) => attempt('default', { kind, name: 'misplaced' })));
      expect(before.map(({ status }) => status)).toEqual([201, 201]);
      await must(run('helm-3.17', 'upgrade', first, MINIMAL));
      await inForce('default', false);
      for (const kind of KINDS) {
        for (const name of ['default', undefined]) {
          const { status, body } = await attempt('default', { kind, name });
          expect([status, body.message]).toEqual([
            422,
            expect.stringMatching(/: first\. .*admissionPolicy\.namespaces/),
          ]);
        }
        expect((await attempt('first', { kind, name: 'placed' })).status).toBe(201);
        const path = `/apis/grantry.dev/v1alpha1/namespaces/default/${kind.toLowerCase()}s/misplaced`;
        const change = await cluster.call('PATCH', path, { body: { spec: { suspended: true } } });
        expect([change.status, change.body.spec.suspended]).toEqual([200, true]);
        await cluster.call('DELETE', path);
        expect((await cluster.call('GET', path)).body.metadata.deletionTimestamp).toBeDefined();
        expect((await cluster.call('PATCH', path, { body: { metadata: { finalizers: null } } })).status).toBe(200);
        expect((await cluster.call('GET', path)).status).toBe(404);
      }
    });

    it('given a further install that the policy does not name → only what its controller creates by itself', async () => {
      // Such accounts may create anything, as those of GitOps tools may.
      const inside = await administrator('second');
      const outside = await administrator('default');
      expect((await attempt('second', { kind: 'SigningKey', name: 'mine', token: inside })).status).toBe(422);
      expect((await attempt('second', { kind: 'IdentityProvider', name: 'default', token: inside })).status).toBe(422);
      expect((await attempt('second', { kind: 'SigningKey', name: 'default', token: outside })).status).toBe(422);
      const own = {
        kind: 'SigningKey',
        token: await cluster.token({ namespace: 'second', name: 'grantry-controller' }),
      } as const;
      for (const { name } of DEFAULT_SIGNING_KEYS) expect((await attempt('second', { ...own, name })).status).toBe(201);
    });

    it('given both installs → the notes of each say what to set in the first, and then both have theirs', async () => {
      const notes = await run('helm-4.1', 'upgrade', second, [...MINIMAL, ...further]);
      expect(notes.output).toMatch(
        /need second among admissionPolicy\.namespaces of the release grantry in namespace first/,
      );
      const ofFirst = await run('helm-4.1', 'upgrade', first, MINIMAL);
      expect(ofFirst.output).toMatch(/refused: add second to admissionPolicy\.namespaces/);
      expect((await run('helm-3.17', 'upgrade', first, [...MINIMAL, ...listed])).output).not.toMatch(/admissionPolicy/);
      await inForce('second', true);
      for (const kind of KINDS) {
        expect((await attempt('second', { kind, name: 'placed' })).status).toBe(201);
        expect((await attempt('first', { kind, name: 'again' })).status).toBe(201);
        const { body } = await attempt('default', { kind, name: 'misplaced' });
        expect(body.message).toContain(': first, second.');
      }
    });

    it('given an uninstall that keeps the CRDs → no policy stays, and an install elsewhere has its own', async () => {
      await must(run('helm-3.17', 'uninstall', first));
      await inForce('default', true);
      const elsewhere = { release: 'grantry', namespace: 'elsewhere' };
      await must(install('helm-4.1', elsewhere, ['--take-ownership']));
      await inForce('first', false);
      await inForce('elsewhere', true);
      await must(run('helm-4.1', 'uninstall', elsewhere));
      await must(install('helm-3.17', first, ['--take-ownership']));
    });
  });

  it('gets the instruction to give a third install a class of its own, though the CRDs came with another', async () => {
    const third = { release: 'third', namespace: 'third' };
    const args = ['--set', 'crds.enabled=false,className=second'];
    expect(await refusal(install('helm-3.17', third, args))).toMatch(/in namespace second.*className/);
  });

  it('refuses CRDs of another version, unless they are its own and older', async () => {
    for (const newer of ['99.0.0', '99.0.0-rc.1']) {
      await markCrds(newer);
      expect(await refusal(run('helm-3.17', 'upgrade', first, MINIMAL))).toContain('crds.enabled=false');
    }
    await markCrds('0.0.1');
    const args = [...MINIMAL, '--set', 'crds.enabled=false,className=second'];
    expect(await refusal(run('helm-4.1', 'upgrade', second, args))).toContain('crds/');
    await must(run('helm-4.1', 'upgrade', first, MINIMAL));
    await must(run('helm-4.1', 'upgrade', second, args));
  });

  it('goes back to an older chart and leaves newer CRDs, which a rollback does not', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'grantry-newer-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    cpSync(CHART, folder, { recursive: true });
    const description = readFileSync(join(CHART, 'Chart.yaml'), 'utf8');
    writeFileSync(join(folder, 'Chart.yaml'), description.replace(/^appVersion: .*$/m, 'appVersion: 99.0.0'));
    const kubeconfig = cluster.adminKubeconfig;
    const place = [first.release, '--namespace', first.namespace];
    const toNewer = () => must(helm('helm-4.1', ['upgrade', ...place, folder, ...MINIMAL], kubeconfig));
    const ours = await crdVersion();
    await toNewer();
    expect(await crdVersion()).toBe('99.0.0');
    await must(helm('helm-3.17', ['rollback', ...place], kubeconfig));
    expect(await crdVersion()).toBe(ours);
    await toNewer();
    await must(run('helm-3.17', 'upgrade', first, [...MINIMAL, '--set', 'crds.enabled=false']));
    expect(await crdVersion()).toBe('99.0.0');
    await markCrds('0.0.1');
    await must(run('helm-4.1', 'upgrade', first, MINIMAL));
    expect(await crdVersion()).toBe(ours);
  });

  it('keeps CRDs, clients and Secrets over crds.enabled=false, an uninstall and an install of the same name', async () => {
    const client = {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: { namespace: 'default', name: 'kept' },
      spec: { grantTypes: ['client_credentials'] },
    };
    const [{ metadata }] = (await cluster.apply(client)) as [Manifest];
    await must(run('helm-4.1', 'upgrade', first, [...MINIMAL, '--set', 'crds.enabled=false']));
    await must(run('helm-3.17', 'upgrade', first, MINIMAL));
    await must(run('helm-3.17', 'uninstall', first));
    await must(install('helm-4.1', first));
    const kept = await cluster.call('GET', '/apis/grantry.dev/v1alpha1/namespaces/default/oauthclients/kept');
    expect([kept.status, kept.body.metadata.uid]).toEqual([200, metadata.uid]);
  });

  it('takes them up under another name, of 53 characters, when the values say so', async () => {
    await must(run('helm-4.1', 'uninstall', first));
    const place = { release: LONGEST_RELEASE, namespace: 'first' };
    expect(await refusal(install('helm-4.1', place))).toMatch(/ownership/);
    await must(install('helm-3.17', place, ['--take-ownership']));
    await must(run('helm-3.17', 'uninstall', place));
  });

  it('gets the instruction to create a namespace that is to be watched', async () => {
    const args = ['--set', 'crds.enabled=false,className=some,watchNamespaces={nowhere}'];
    expect(await refusal(install('helm-3.17', { release: 'some', namespace: 'some' }, args))).toContain('nowhere');
  });

  it('gives no right on Secrets of other namespaces where watchNamespaces names some', async () => {
    await cluster.apply(
      ...['shop', 'bank'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    );
    const place = { release: 'some', namespace: 'some' };
    await must(install('helm-4.1', place, ['--set', 'crds.enabled=false,className=some,watchNamespaces={shop}']));
    for (const part of ['controller', 'server']) {
      const account = `system:serviceaccount:some:some-grantry-${part}`;
      // The authorizer learns of bindings by a watch of its own.
      await until(`${part} has its rights`, () => mayListSecrets(account, 'some'));
      if (part === 'controller') await until('the controller has those in shop', () => mayListSecrets(account, 'shop'));
      else expect(await mayListSecrets(account, 'shop')).toBe(false);
      expect(await mayListSecrets(account, 'bank')).toBe(false);
    }
  });

  it.each(Object.entries(CI_VALUES))('every object of ci/%s-values.yaml is valid', async (show, file) => {
    const rendered = await template(['--values', file], { namespace: `dry-run-${show}` });
    const objects = manifests(rendered);
    const named = objects.map(({ metadata }) => metadata.namespace).filter((name) => name !== undefined);
    const namespaces = [...new Set(named)].map((name) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    }));
    // A pod is valid only if its ServiceAccount is there.
    await cluster.apply(...namespaces, ...objects.filter(({ kind }) => kind === 'ServiceAccount'));
    const { code, output, errors } = await cluster.kubectl(
      ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '--validate=strict', '-f', '-'],
      { input: rendered },
    );
    expect([code, errors]).toEqual([0, '']);
    expect(output.trim().split('\n').length).toBe(objects.length);
  });
});
