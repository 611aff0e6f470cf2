// What a client is granted of the ProtectedResources that its `spec.resources` refers to: always in the namespace of the
// owner, elsewhere by an entry of `allowedClients`. A reference that is not granted harms nothing else of the client.

import type { Condition, Fault } from '../kinds/conditions.ts';
import { formatPath } from '../kinds/field-path.ts';
import type { OAuthClientSpec } from '../kinds/oauth-client.ts';
import { matchesSelector } from '../policies/label-selector.ts';
import type { AcceptedResource } from './admit-resource.ts';

/** A client as owners of resources see it. */
export interface ReferringClient {
  readonly namespace: string;
  readonly name: string;
  /** Undefined while its namespace is not observed: then no selector matches it. */
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined;
  readonly spec: Pick<OAuthClientSpec, 'resources'>;
}

/** One reference that is granted. */
export interface ResourceGrant {
  readonly resource: AcceptedResource;
  /** The scopes that the client may ask for there. */
  readonly scopes: readonly string[];
}

export type UngrantedReference = Fault<'ResourceNotGranted'>;

/** What all references of a client come to. */
export interface ResourceGrants {
  readonly grants: readonly ResourceGrant[];
  readonly ungranted: readonly UngrantedReference[];
}

/** @param accepted by `<namespace>/<name>` */
export function resourceGrants(
  client: ReferringClient,
  accepted: ReadonlyMap<string, AcceptedResource>,
): ResourceGrants {
  const grants: ResourceGrant[] = [];
  const ungranted: UngrantedReference[] = [];
  for (const [index, reference] of client.spec.resources.entries()) {
    const resource = accepted.get([reference.namespace ?? client.namespace, reference.name].join('/'));
    const granted = resource && grantedScopes(resource, client);
    if (resource === undefined || granted === undefined) {
      // Missing and not allowed read the same: a tenant learns nothing of the resources of others.
      ungranted.push(notGranted([index], 'No such resource is granted to this client.'));
      continue;
    }
    const { scopes = [...granted] } = reference;
    grants.push({ resource, scopes: scopes.filter((scope) => granted.has(scope)) });
    for (const [at, scope] of scopes.entries()) {
      if (!granted.has(scope)) ungranted.push(notGranted([index, 'scopes', at], 'This scope is not granted there.'));
    }
  }
  return { grants, ungranted };
}

function notGranted(path: readonly (string | number)[], message: string): UngrantedReference {
  return { path: ['spec', 'resources', ...path], reason: 'ResourceNotGranted', message };
}

/** The scopes that an owner grants to a client; undefined where the owner does not let it in. */
function grantedScopes(resource: AcceptedResource, client: ReferringClient): ReadonlySet<string> | undefined {
  const declared = resource.spec.scopes.map(({ name }) => name);
  if (resource.namespace === client.namespace) return new Set(declared);
  const entries = resource.spec.allowedClients.filter(
    (entry) => selects(entry, client) && (entry.clients?.includes(client.name) ?? true),
  );
  if (entries.length === 0) return undefined;
  return new Set(entries.flatMap(({ scopes = declared }) => scopes));
}

function selects(
  { namespaces, namespaceSelector }: AcceptedResource['spec']['allowedClients'][number],
  { namespace, namespaceLabels }: ReferringClient,
): boolean {
  if (namespaces !== undefined) return namespaces.includes('*') || namespaces.includes(namespace);
  if (namespaceSelector === undefined || namespaceLabels === undefined) return false;
  return matchesSelector(namespaceSelector, namespaceLabels);
}

/** References that a condition names. */
const MOST_NAMED = 3;

/** The condition `ResourcesGranted`, which stands beside Ready; undefined for a client without references. */
export function grantsCondition(
  { spec }: ReferringClient,
  { ungranted }: ResourceGrants,
  observedGeneration: number,
): Condition | undefined {
  if (spec.resources.length === 0) return undefined;
  const type = 'ResourcesGranted';
  if (ungranted.length === 0) {
    const message = 'Every resource this client refers to is granted to it.';
    return { type, status: 'True', reason: 'ResourcesGranted', message, observedGeneration };
  }
  const named = ungranted.slice(0, MOST_NAMED).map(({ path, message }) => `${formatPath(path)}: ${message}`);
  const more = ungranted.length > MOST_NAMED ? ` And ${ungranted.length - MOST_NAMED} more.` : '';
  return {
    type,
    status: 'False',
    reason: 'ResourceNotGranted',
    message: `${named.join(' ')}${more}`,
    observedGeneration,
  };
}
