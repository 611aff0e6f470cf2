// An install of grantry in a test's cluster: its release namespace, and its two ServiceAccounts with the rights that
// charts/grantry/rbac/ gives them. Several installs share an API server, so each has a class of its own.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { until } from '../../until.ts';
import type { Cluster, Manifest } from './cluster.ts';

const RBAC = join(import.meta.dirname, '../../../charts/grantry/rbac');
/** Where the files install to. */
const WRITTEN_FOR = 'grantry-system';
const ROLES = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole' } as const;

export interface Installation {
  /** The release namespace. */
  readonly namespace: string;
  /** `spec.className` of what it serves, unless its suite runs with another. */
  readonly className: string;
  readonly serverToken: string;
  readonly controllerToken: string;
}

/** A user who works in a namespace of their own. */
export interface Tenant {
  readonly namespace: string;
  readonly token: string;
}

/** Makes a release namespace with the ServiceAccounts and rights of a fresh install. */
export async function install(cluster: Cluster): Promise<Installation> {
  const namespace = await cluster.namespace();
  await cluster.apply(
    ...['server.yaml', 'controller.yaml', 'tenants.yaml'].flatMap((file) => manifests(file, namespace)),
  );
  const serverToken = await cluster.token({ namespace, name: 'grantry-server' });
  const controllerToken = await cluster.token({ namespace, name: 'grantry-controller' });
  const everywhere = '/apis/grantry.dev/v1alpha1/oauthclients';
  const paths = [everywhere, `/api/v1/namespaces/${namespace}/secrets`];
  for (const token of [serverToken, controllerToken]) for (const path of paths) await isPermitted(cluster, token, path);
  return { namespace, className: namespace, serverToken, controllerToken };
}

/** Waits until a user may list what is there: the authorizer learns of bindings by a watch of its own. */
async function isPermitted(cluster: Cluster, token: string, path: string): Promise<void> {
  const isRefused = async () => (await cluster.call('GET', `${path}?limit=1`, { token })).status === 403;
  await until(`${path} may be listed`, async () => !(await isRefused()));
}

/**
 * Narrows an install's rights to namespaces: what it may do in the namespaces of others, it may only in these. The processes
 * have to be given the same `GRANTRY_WATCH_NAMESPACES`.
 */
export async function narrow(
  cluster: Cluster,
  { namespace: release }: Installation,
  namespaces: readonly string[],
): Promise<void> {
  for (const account of ['grantry-server', 'grantry-controller']) {
    const name = clusterName(release, `${account}-tenants`);
    const metadata = { name };
    const path = await cluster.pathOf({ apiVersion: `${ROLES.apiGroup}/v1`, kind: 'ClusterRoleBinding', metadata });
    await cluster.call('DELETE', path);
    const subject = { kind: 'ServiceAccount', namespace: release, name: account };
    await cluster.apply(...namespaces.map((namespace) => roleBinding(namespace, name, subject)));
  }
}

/**
 * A namespace with a user who has the role admin in it. Built-in roles get their parts from a controller that does not
 * run here, so the parts are bound instead.
 */
export async function createTenant(cluster: Cluster, { namespace: release }: Installation): Promise<Tenant> {
  const namespace = await cluster.namespace();
  const token = await cluster.token({ namespace, name: 'tenant' });
  const parts = ['view', 'edit'].map((role) => clusterName(release, `grantry-oauthclients-${role}`));
  for (const role of ['view', 'edit', 'admin']) parts.push(`system:aggregate-to-${role}`);
  await cluster.apply(
    ...parts.map((name) => roleBinding(namespace, name, { kind: 'ServiceAccount', namespace, name: 'tenant' })),
  );
  const clients = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`;
  for (const path of [clients, `/api/v1/namespaces/${namespace}/secrets`]) await isPermitted(cluster, token, path);
  return { namespace, token };
}

/** What gives a subject the rights of a ClusterRole in one namespace. */
function roleBinding(namespace: string, role: string, subject: object): Manifest {
  return {
    apiVersion: `${ROLES.apiGroup}/v1`,
    kind: 'RoleBinding',
    metadata: { namespace, name: role },
    roleRef: { ...ROLES, name: role },
    subjects: [subject],
  };
}

/** A file of charts/grantry/rbac/ for an install in `namespace`, as the chart would render it. */
function manifests(file: string, namespace: string): readonly Manifest[] {
  const documents = parseAllDocuments(readFileSync(join(RBAC, file), 'utf8'));
  return documents.map((document) => {
    const manifest = document.toJS() as Manifest & { roleRef?: { kind: string; name: string }; subjects?: object[] };
    const { metadata, roleRef, subjects } = manifest;
    const isNamespaced = metadata.namespace !== undefined;
    if (isNamespaced && metadata.namespace !== WRITTEN_FOR) throw new Error(`${file}: namespace ${metadata.namespace}`);
    return {
      ...manifest,
      metadata: isNamespaced
        ? { ...metadata, namespace }
        : { ...metadata, name: clusterName(namespace, metadata.name) },
      ...(roleRef?.kind === 'ClusterRole' && { roleRef: { ...roleRef, name: clusterName(namespace, roleRef.name) } }),
      ...(subjects && { subjects: subjects.map((subject) => ({ ...subject, namespace })) }),
    };
  });
}

/** The name of something cluster-scoped that belongs to one install. */
function clusterName(namespace: string, name: string): string {
  return `${namespace}-${name}`;
}
