// What Argo CD and Flux make of statuses that a running controller wrote into a real API server: the table of the guide.

import { globSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { endProcesses } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import type { Manifest } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { argoHealth, hasLua } from './argo-health.ts';
import { kstatus } from './kstatus.ts';

const API_VERSION = 'grantry.dev/v1alpha1';
const EXAMPLE = join(import.meta.dirname, '../../../examples/gitops/argocd-cm.yaml');
const GUIDE = join(import.meta.dirname, '../../../docs/guides/gitops.md');

const CRDS = join(import.meta.dirname, '../../../crds');
/** Every kind there is. */
const KINDS = globSync('*.yaml', { cwd: CRDS }).map(
  (file) => parse(readFileSync(join(CRDS, file), 'utf8')).spec.names.kind as string,
);

const cluster = sharedCluster();
let install: ClientInstall;
let team: string;
let controller: ControllerProcess;
/** The scripts as they are in the cluster once the example was merged, by kind. */
let scripts: Readonly<Record<string, string>>;

beforeAll(async () => {
  install = await ClientInstall.make(cluster);
  team = await cluster.namespace();
  controller = await startController(install);
  await controller.ready();
  const argocd = await cluster.namespace();
  const metadata = { namespace: argocd, name: 'argocd-cm' };
  await cluster.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'timeout.reconciliation': '180s' } });
  const patch = readFileSync(EXAMPLE, 'utf8').replaceAll('namespace: argocd', `namespace: ${argocd}`);
  const file = join(mkdtempSync(join(tmpdir(), 'grantry-gitops-')), 'argocd-cm.yaml');
  writeFileSync(file, patch);
  const args = ['-n', argocd, 'patch', 'configmap', 'argocd-cm', '--type', 'merge', '--patch-file', file];
  const { code, errors } = await cluster.kubectl(args);
  expect([code, errors]).toEqual([0, '']);
  const { body } = await cluster.call('GET', `/api/v1/namespaces/${argocd}/configmaps/argocd-cm`);
  expect(body.data['timeout.reconciliation']).toBe('180s');
  scripts = Object.fromEntries(
    KINDS.map((kind) => [kind, body.data[`resource.customizations.health.grantry.dev_${kind}`]]),
  );
});
afterAll(endProcesses);

async function now(manifest: Manifest): Promise<Manifest> {
  return (await cluster.call('GET', await cluster.pathOf(manifest))).body;
}

function reasonOf(object: Manifest, type: string): string | undefined {
  const { conditions = [] } = (object.status ?? {}) as { conditions?: { type: string; reason: string }[] };
  return conditions.find((condition) => condition.type === type)?.reason;
}

/** Applies a manifest, and waits until the controller says this of `Ready`; the object then. */
async function whenReadyIs(reason: string, manifest: Manifest): Promise<Manifest> {
  await cluster.apply(manifest);
  let object = await now(manifest);
  const isSaid = async () => {
    object = await now(manifest);
    const { observedGeneration } = (object.status ?? {}) as { observedGeneration?: number };
    return observedGeneration === object.metadata.generation && reasonOf(object, 'Ready') === reason;
  };
  await until(`${manifest.metadata.name} is ${reason}`, isSaid, 30_000).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(object.status)}`);
  });
  return object;
}

interface Told {
  readonly argo: string | undefined;
  readonly kstatus: string;
}

/** What both say of it. Argo CD's word is undefined where no Lua is installed. */
function told(object: Manifest): Told {
  return { argo: hasLua ? health(object).status : undefined, kstatus: kstatus(object) };
}

function health(object: Manifest) {
  return argoHealth(scripts[object.kind] ?? '', object);
}

function both(argo: string, status: string): Told {
  return { argo: hasLua ? argo : undefined, kstatus: status };
}

const client = (name: string, spec: object = {}, metadata: object = {}) => install.manifest(team, name, spec, metadata);
const existing = (secretName: string) => ({ auth: { clientSecret: { source: 'Existing', secretName } } });
const secret = (name: string, value: string): Manifest => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: team, name },
  stringData: { 'client-secret': value },
});
const signingKey = (name: string, spec: object): Manifest => ({
  apiVersion: API_VERSION,
  kind: 'SigningKey',
  metadata: { namespace: install.installation.namespace, name },
  spec,
});
const policy = (name: string): Manifest => ({
  apiVersion: API_VERSION,
  kind: 'ClientPolicy',
  metadata: { name: `${name}-${team}` },
  spec: {
    className: install.installation.className,
    namespaceSelector: { matchLabels: { 'example.com/nobody': 'has-this' } },
    allow: { grantTypes: ['client_credentials'], scopes: ['**'] },
  },
});

const resource = (name: string, spec: object): Manifest => ({
  apiVersion: API_VERSION,
  kind: 'ProtectedResource',
  metadata: { namespace: team, name },
  spec: { className: install.installation.className, ...spec },
});
/** Each has people of its own. */
const provider = (name: string, { organizations = ['dev'], ...spec }: ProviderSettings): Manifest => ({
  apiVersion: API_VERSION,
  kind: 'IdentityProvider',
  metadata: { namespace: install.installation.namespace, name },
  spec: {
    type: 'GitHub',
    clientSecretRef: { name: 'of-elsewhere' },
    gitHub: { host: `${name}.github.example`, organizations },
    ...spec,
  },
});

interface ProviderSettings {
  readonly organizations?: readonly string[];
  readonly suspended?: boolean;
}

it('given a kind of crds/ → the script of the example is for it, the same as for the others', () => {
  expect(Object.keys(scripts).length).toBeGreaterThan(1);
  expect(new Set(Object.values(scripts))).toEqual(new Set([expect.stringContaining('Stalled')]));
});

describe('what Argo CD and Flux report', () => {
  it('of clients: ready, waiting, wrong and suspended ones', async () => {
    expect(told(await whenReadyIs('Ready', client('ready')))).toEqual(both('Healthy', 'Current'));
    const waiting = client('waiting', existing('comes-later'));
    expect(told(await whenReadyIs('SecretNotFound', waiting))).toEqual(both('Progressing', 'InProgress'));
    await cluster.apply(secret('comes-later', 'a-value-that-is-long-enough-to-be-no-guess'));
    expect(told(await whenReadyIs('Ready', waiting))).toEqual(both('Healthy', 'Current'));
    await cluster.apply(secret('too-short', 'short'));
    const weak = client('weak', existing('too-short'));
    expect(told(await whenReadyIs('WeakSecret', weak))).toEqual(both('Degraded', 'Failed'));
    const refused = client('refused', { grantTypes: ['implicit'] });
    expect(told(await whenReadyIs('UnsupportedGrantType', refused))).toEqual(both('Degraded', 'Failed'));
    const suspended = client('suspended', { suspended: true });
    expect(told(await whenReadyIs('Suspended', suspended))).toEqual(both('Suspended', 'Failed'));
  });

  it('of a client that not every replica serves: that it is enough to wait', async () => {
    const waiting = await ClientInstall.make(cluster);
    await waiting.start({ replicas: ['http://127.0.0.1:9'] });
    const object = await whenReadyIs('Pending', waiting.manifest(team, 'programmed-later'));
    expect(told(object)).toEqual(both('Progressing', 'InProgress'));
  });

  it('of policies: that they count; the API server takes no wrong one', async () => {
    expect(told(await whenReadyIs('Ready', policy('good')))).toEqual(both('Healthy', 'Current'));
  });

  it('of signing keys: ready, waiting, wrong and suspended ones', async () => {
    expect(told(await whenReadyIs('Ready', signingKey('default', {})))).toEqual(both('Healthy', 'Current'));
    const imported = { algorithm: 'ES256', importSecretRef: { name: 'of-elsewhere' } };
    const waiting = signingKey('waiting', imported);
    expect(told(await whenReadyIs('SecretNotFound', waiting))).toEqual(both('Progressing', 'InProgress'));
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: install.installation.namespace, name: 'no-key' },
      stringData: { 'private.pem': 'not a key' },
    });
    const wrong = signingKey('wrong', { algorithm: 'ES256', importSecretRef: { name: 'no-key', key: 'private.pem' } });
    expect(told(await whenReadyIs('InvalidKeyMaterial', wrong))).toEqual(both('Degraded', 'Failed'));
    const suspended = signingKey('suspended', { suspended: true });
    expect(told(await whenReadyIs('Suspended', suspended))).toEqual(both('Suspended', 'Failed'));
  });

  it('of resources: ready and wrong ones', async () => {
    expect(told(await whenReadyIs('Ready', resource('notes', {})))).toEqual(both('Healthy', 'Current'));
    const wrong = resource('wrong', { resource: 'https://Notes.example.com' });
    expect(told(await whenReadyIs('InvalidResource', wrong))).toEqual(both('Degraded', 'Failed'));
  });

  it('of identity providers: waiting, wrong and suspended ones', async () => {
    const waiting = provider('waiting', {});
    expect(told(await whenReadyIs('SecretNotFound', waiting))).toEqual(both('Progressing', 'InProgress'));
    const wrong = provider('wrong', { organizations: [] });
    expect(told(await whenReadyIs('OrganizationsMissing', wrong))).toEqual(both('Degraded', 'Failed'));
    const suspended = provider('suspended', { suspended: true });
    expect(told(await whenReadyIs('Suspended', suspended))).toEqual(both('Suspended', 'Failed'));
  });

  it('of a client that is being deleted: that it goes', async () => {
    const manifest = client('going', {}, { finalizers: ['example.com/hold'] });
    await whenReadyIs('Ready', manifest);
    const path = await cluster.pathOf(manifest);
    await cluster.call('DELETE', path);
    expect(told(await now(manifest))).toEqual(both('Progressing', 'Terminating'));
    await install.patch(path, { metadata: { finalizers: [] } });
    await until('it is gone', async () => (await cluster.call('GET', path)).status === 404);
  });

  it.skipIf(!hasLua)('in the words of the condition', async () => {
    const { status, message } = health(await whenReadyIs('SecretNotFound', client('says', existing('is-not-there'))));
    expect([status, message]).toEqual(['Progressing', expect.stringContaining('is-not-there')]);
  });

  it('of what no controller has reconciled yet, new or changed: nothing that was true of something else', async () => {
    const unseen = both('Progressing', 'InProgress');
    const changing = [client('changing'), client('mended', { grantTypes: ['implicit'] })] as const;
    await whenReadyIs('Ready', changing[0]);
    await whenReadyIs('UnsupportedGrantType', changing[1]);
    await controller.process.end('SIGTERM');
    for (const name of ['changing', 'mended']) {
      const manifest = client(name, { displayName: 'Another name' });
      await cluster.apply(manifest);
      expect(told(await now(manifest))).toEqual(unseen);
    }
    const unreconciled = [
      client('new'),
      signingKey('new', {}),
      policy('new'),
      resource('new', {}),
      provider('new', {}),
    ];
    expect(unreconciled.map(({ kind }) => kind).sort()).toEqual(KINDS.toSorted());
    for (const manifest of unreconciled) {
      await cluster.apply(manifest);
      expect(told(await now(manifest))).toEqual(unseen);
    }
  });
});

it('the guide has one row for each of these', () => {
  const rows = [...readFileSync(GUIDE, 'utf8').matchAll(/^\| [^|]* \| ([A-Z]\w+) \| ([A-Z]\w+) \|$/gm)];
  expect(rows.map(([, argo, status]) => `${argo} ${status}`)).toEqual([
    ...['Healthy Current', 'Progressing InProgress', 'Progressing InProgress'],
    ...['Degraded Failed', 'Suspended Failed', 'Progressing Terminating'],
  ]);
});
