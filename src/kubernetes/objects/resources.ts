// The kinds grantry touches in a cluster, what an object looks like, and where the API server keeps it.

/** A kind by the names the API server has for it. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
}

const GRANTRY = { group: 'grantry.dev', version: 'v1alpha1' } as const;
const CORE = { group: '', version: 'v1' } as const;

export const OAUTH_CLIENTS: Resource = { ...GRANTRY, plural: 'oauthclients', kind: 'OAuthClient' };
export const CLIENT_POLICIES: Resource = { ...GRANTRY, plural: 'clientpolicies', kind: 'ClientPolicy' };
export const SIGNING_KEYS: Resource = { ...GRANTRY, plural: 'signingkeys', kind: 'SigningKey' };
export const SECRETS: Resource = { ...CORE, plural: 'secrets', kind: 'Secret' };
export const CONFIG_MAPS: Resource = { ...CORE, plural: 'configmaps', kind: 'ConfigMap' };
export const NAMESPACES: Resource = { ...CORE, plural: 'namespaces', kind: 'Namespace' };
export const SERVICE_ACCOUNTS: Resource = { ...CORE, plural: 'serviceaccounts', kind: 'ServiceAccount' };
export const ENDPOINT_SLICES: Resource = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
};
export const LEASES: Resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease' };
export const EVENTS: Resource = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event' };

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Metadata of an object as the API server holds it; without managedFields. */
export interface ObjectMeta {
  readonly name: string;
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string;
  readonly uid: string;
  /** Opaque: compared for equality only. */
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
}

/** An object as the API server holds it. Of a metadata-only list or watch it has nothing but these three fields. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** `v1`, `grantry.dev/v1alpha1`: what stands in `apiVersion`. */
export function apiVersionOf({ group, version }: Resource): string {
  return group === '' ? version : `${group}/${version}`;
}

/** `secrets`, `oauthclients.grantry.dev`: how kubectl and RBAC name a kind. */
export function resourceName({ group, plural }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** The path of a collection, or of one object when `name` is given. Without namespace: cluster-scoped, or all of them. */
export function resourcePath(
  resource: Resource,
  { namespace, name }: { readonly namespace?: string | undefined; readonly name?: string } = {},
): string {
  const root = resource.group === '' ? '/api' : '/apis';
  const scope = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  const object = name === undefined ? '' : `/${encodeURIComponent(name)}`;
  return `${root}/${apiVersionOf(resource)}${scope}/${resource.plural}${object}`;
}

/** `<namespace>/<name>`, or `<name>` of a cluster-scoped object: how stores and queues name an object. */
export function objectKey({ namespace, name }: { readonly namespace?: string; readonly name: string }): string {
  // Joined it is one piece of text: a template would hold on to its parts.
  return namespace === undefined ? name : [namespace, name].join('/');
}

/** The namespace and the name of what {@link objectKey} made of both. */
export function splitKey(key: string): readonly [namespace: string, name: string] {
  const end = key.indexOf('/');
  return [key.slice(0, end), key.slice(end + 1)];
}

/** A `resourceVersion` to be kept: most are short numbers, which take no room of their own, unlike text. */
export function keptVersion(resourceVersion: string): string | number {
  return SHORT_NUMBER.test(resourceVersion) ? Number(resourceVersion) : resourceVersion;
}

const SHORT_NUMBER = /^[1-9][0-9]{0,8}$/;

/** The object with its kind: items of most lists name none, and metadata-only objects one that is not theirs. */
export function typed(resource: Resource, object: KubernetesObject): KubernetesObject {
  const apiVersion = apiVersionOf(resource);
  if (object.kind === resource.kind && object.apiVersion === apiVersion) return object;
  return { ...object, apiVersion, kind: resource.kind };
}
