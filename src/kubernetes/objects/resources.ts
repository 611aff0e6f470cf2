// The kinds that grantry reads and writes in a cluster, the fields of an object, and its path on the API server.

/** A kind as the API server names it. */
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
export const PROTECTED_RESOURCES: Resource = { ...GRANTRY, plural: 'protectedresources', kind: 'ProtectedResource' };
export const CLIENT_POLICIES: Resource = { ...GRANTRY, plural: 'clientpolicies', kind: 'ClientPolicy' };
export const SIGNING_KEYS: Resource = { ...GRANTRY, plural: 'signingkeys', kind: 'SigningKey' };
export const IDENTITY_PROVIDERS: Resource = { ...GRANTRY, plural: 'identityproviders', kind: 'IdentityProvider' };
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

/** An object as the API server holds it. One of a metadata-only list or watch has only these three fields. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** `v1`, `grantry.dev/v1alpha1`: the value of `apiVersion`. */
export function apiVersionOf({ group, version }: Resource): string {
  return group === '' ? version : `${group}/${version}`;
}

/** `secrets`, `oauthclients.grantry.dev`: how kubectl and RBAC name a kind. */
export function resourceName({ group, plural }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** The path of a collection, or of the object `name`. Without namespace: cluster-scoped, or all namespaces. */
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
  // `join` makes one flat string; a template would keep both parts in memory.
  return namespace === undefined ? name : [namespace, name].join('/');
}

/** The namespace and the name in a key of {@link objectKey}. */
export function splitKey(key: string): readonly [namespace: string, name: string] {
  const end = key.indexOf('/');
  return [key.slice(0, end), key.slice(end + 1)];
}

/** The object with its `apiVersion` and `kind`: items of most lists lack both, metadata-only objects have others. */
export function typed(resource: Resource, object: KubernetesObject): KubernetesObject {
  const apiVersion = apiVersionOf(resource);
  if (object.kind === resource.kind && object.apiVersion === apiVersion) return object;
  return { ...object, apiVersion, kind: resource.kind };
}
