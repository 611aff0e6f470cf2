// A controller that may read everything and lacks one right to write: it says which, on `/readyz` and in its log, once, stays
// ready for all the rest, and says no more of it when it has done what it could not.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { endProcesses } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { ASKS_AGAIN, STARTS } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const GRANTRY = '/apis/grantry.dev/v1alpha1';
const cluster = sharedCluster();
let clients: ClientInstall;
let team: string;
let release: string;
let controller: ControllerProcess;

beforeAll(async () => {
  clients = await ClientInstall.make(cluster);
  team = await cluster.namespace();
  release = clients.installation.namespace;
  controller = await startController(clients);
  await controller.ready();
  for (const name of ['steady', 'renamed', 'drifts']) await clients.apply(team, name);
  for (const name of ['steady', 'renamed', 'drifts']) await clients.whenReady(team, name);
  await cluster.apply(policy({}));
  await until('the pepper is there', async () => (await statusOf(secretPath('grantry-pepper'))) === 200);
  await until('the ring is Ready', async () => (await cluster.call('GET', ringPath())).body.status?.activeKeyId);
}, STARTS + ASKS_AGAIN);
afterAll(endProcesses);

const policy = (labels: Record<string, string>) => ({
  apiVersion: 'grantry.dev/v1alpha1',
  kind: 'ClientPolicy',
  metadata: { name: `${release}-policy` },
  spec: { className: release, namespaceSelector: { matchLabels: { none: release, ...labels } } },
});
const ringPath = () => `${GRANTRY}/namespaces/${release}/signingkeys/default`;
const secretPath = (name: string) => `/api/v1/namespaces/${release}/secrets/${name}`;
const statusOf = async (path: string) => (await cluster.call('GET', path)).status;
/** Without a grace: the former Secret is removed at once. */
const rename = (secretName: string) =>
  clients.apply(team, 'renamed', { auth: { clientSecret: { secretName, rotation: { gracePeriod: '0s' } } } });
const drift = () =>
  clients.patch(`/api/v1/namespaces/${team}/secrets/drifts-oauth`, {
    metadata: { labels: { 'grantry.dev/client': 'drifts', 'app.kubernetes.io/managed-by': null } },
    stringData: { 'client-id': `wrong ${Math.random()}` },
  });
const displayName = () => clients.apply(team, 'steady', { displayName: `At ${Math.random()}` });
const applyPolicy = () => cluster.apply(policy({ at: `a${String(Math.random()).slice(2, 10)}` }));
const deleteRing = () => cluster.call('DELETE', ringPath());
const ringSpec = () =>
  clients.patch(ringPath(), { spec: { rotation: { retain: `${50 + Math.round(Math.random() * 1e5)}h` } } });

/** The roles of the controller: of all of the cluster, of the namespaces of clients, of its own. */
const ROLES = {
  cluster: () => `/apis/rbac.authorization.k8s.io/v1/clusterroles/${release}-grantry-controller`,
  tenants: () => `/apis/rbac.authorization.k8s.io/v1/clusterroles/${release}-grantry-controller-tenants`,
  own: () => `/apis/rbac.authorization.k8s.io/v1/namespaces/${release}/roles/grantry-controller`,
} as const;

async function mayNow(verb: string, resource: string, namespace: string): Promise<boolean> {
  const [name = '', subresource] = resource.split('/');
  const [plural, ...group] = name.split('.');
  const { body } = await cluster.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    token: clients.installation.controllerToken,
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb, group: group.join('.'), resource: plural, subresource, namespace } },
    },
  });
  return body.status.allowed;
}

async function readiness(): Promise<string> {
  const response = await fetch(`${controller.admin}/readyz`);
  return `${response.status} ${await response.text()}`;
}

interface Row {
  readonly verb: string;
  /** As kubectl names it, with its subresource. */
  readonly resource: string;
  readonly where: () => string | undefined;
  readonly roles: readonly (keyof typeof ROLES)[];
  readonly provoke: () => Promise<unknown>;
  /**
   * Has it tried again, where nothing does so within a minute: a refused Event is never sent again, and what is
   * said of it goes after ten (test/controller/leadership/rbac-denials.test.ts).
   */
  readonly again?: () => Promise<unknown>;
}

const inTeam = () => team;
const inRelease = () => release;
it.each<Row>([
  {
    verb: 'patch',
    resource: 'oauthclients.grantry.dev/status',
    where: inTeam,
    roles: ['tenants'],
    provoke: displayName,
  },
  {
    verb: 'patch',
    resource: 'clientpolicies.grantry.dev/status',
    where: () => undefined,
    roles: ['cluster'],
    provoke: applyPolicy,
  },
  { verb: 'patch', resource: 'signingkeys.grantry.dev/status', where: inRelease, roles: ['own'], provoke: ringSpec },
  { verb: 'create', resource: 'signingkeys.grantry.dev', where: inRelease, roles: ['own'], provoke: deleteRing },
  {
    verb: 'create',
    resource: 'secrets',
    where: inTeam,
    roles: ['tenants'],
    provoke: () => clients.apply(team, 'later'),
    again: () => clients.poke(team, 'later'),
  },
  {
    verb: 'patch',
    resource: 'secrets',
    where: inTeam,
    roles: ['tenants'],
    provoke: drift,
    again: () => clients.poke(team, 'drifts'),
  },
  {
    verb: 'delete',
    resource: 'secrets',
    where: inTeam,
    roles: ['tenants'],
    provoke: () => rename('named-anew'),
    again: () => clients.poke(team, 'renamed'),
  },
  {
    verb: 'create',
    resource: 'secrets',
    where: inRelease,
    roles: ['tenants', 'own'],
    provoke: () => cluster.call('DELETE', secretPath('grantry-webhook')),
  },
  {
    verb: 'patch',
    resource: 'events.events.k8s.io',
    where: inTeam,
    roles: ['tenants'],
    provoke: () => clients.apply(team, 'told'),
    again: () => clients.apply(team, 'told-anew'),
  },
])(
  'who may not $verb $resource says so',
  async ({ verb, resource, where, roles, provoke, again }) => {
    const place = where();
    const [name = ''] = resource.split('/');
    const before = new Map<string, readonly Rule[]>();
    for (const role of roles.map((each) => ROLES[each]())) {
      const rules = (await cluster.call('GET', role)).body.rules as readonly Rule[];
      before.set(role, rules);
      const wanted = resource.replace(/\.[^/]*/, '');
      const without = (rule: Rule) =>
        rule.resources.includes(wanted) ? { ...rule, verbs: rule.verbs.filter((each) => each !== verb) } : rule;
      await clients.patch(role, { rules: rules.map(without).filter(({ verbs }) => verbs.length > 0) });
    }
    await until('it is taken', async () => !(await mayNow(verb, resource, place ?? '')));

    await provoke();
    const account = `system:serviceaccount:${release}:grantry-controller`;
    const call = `${verb} ${name}${place === undefined ? '' : ` in namespace ${place}`} as ${account}: 403 Forbidden`;
    const line = async () => /^rights: .*$/m.exec(await readiness())?.[0] ?? '';
    await until('it is said', async () => (await line()).includes(call));
    expect(await line()).toContain(
      `cannot ${verb} resource \\"${resource.replace(/\.[^/]*/, '')}\\"`.replaceAll('\\', ''),
    );
    expect(await readiness()).toMatch(/^200 /);
    const warnings = () =>
      controller.process.output.split('\n').filter((each) => each.includes('"level":"warn"') && each.includes(call));
    await until('it is logged', () => warnings().length > 0);

    for (const [role, rules] of before) await clients.patch(role, { rules });
    await until('it is granted again', () => mayNow(verb, resource, place ?? ''));
    await again?.();
    await until('nothing is missing', async () => (await line()) === 'rights: ok', ASKS_AGAIN);
    expect(warnings()).toHaveLength(1);
  },
  120_000,
);

it('a Secret that a quota forbids is no missing right', async () => {
  const full = await cluster.namespace();
  await cluster.apply({
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { namespace: full, name: 'no-secrets' },
    spec: { hard: { 'count/secrets': '0' } },
  });
  // No controller counts here: the test writes the status.
  const status = { hard: { 'count/secrets': '0' }, used: { 'count/secrets': '0' } };
  await clients.patch(`/api/v1/namespaces/${full}/resourcequotas/no-secrets/status`, { status });
  const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tried' } };
  const tried = async () =>
    (await cluster.call('POST', `/api/v1/namespaces/${full}/secrets?dryRun=All`, { body })).status;
  await until('the quota counts', async () => (await tried()) === 403);
  await clients.apply(full, 'refused');
  await clients.whenCondition(full, 'refused', 'CredentialsReady', 'SecretWriteForbidden');
  expect(await readiness()).toContain('\nrights: ok\n');
});
