// What a client is not granted of the ProtectedResources that its `spec.resources` refers to, and the condition about it.
// A reference that is not granted harms nothing else of the client.

import { type Grantor, grantedScopes } from '../../oauth/registry/resource.ts';
import type { Condition, Fault } from '../kinds/conditions.ts';
import { formatPath } from '../kinds/field-path.ts';
import type { OAuthClientSpec } from '../kinds/oauth-client.ts';
import type { AcceptedResource } from './admit-resource.ts';
import { allowedClientsOf, selectBy } from './registry-resource.ts';

/** A client as owners of resources see it. */
export interface ReferringClient {
  readonly namespace: string;
  readonly name: string;
  /** Undefined while its namespace is not observed: then no selector matches it. */
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined;
  readonly spec: Pick<OAuthClientSpec, 'resources' | 'scopes' | 'defaultScopes'>;
}

/** Missing and not allowed read the same: a tenant learns nothing of the resources of others. */
const NO_SUCH_GRANT =
  'No such resource is granted to this client: it is missing or not accepted, or its allowedClients leave this client out.';

export type UngrantedReference = Fault<'ResourceNotGranted'>;

/**
 * The references of a client, and the scopes that they list, which are not granted. Where all are, the default scopes that
 * come from nowhere.
 * @param accepted by `<namespace>/<name>`
 */
export function ungrantedReferences(
  client: ReferringClient,
  accepted: ReadonlyMap<string, AcceptedResource>,
): readonly UngrantedReference[] {
  const { resources, scopes: own, defaultScopes } = client.spec;
  const held = new Set(own);
  const ungranted = resources.flatMap(({ namespace = client.namespace, name, scopes }, index) => {
    const resource = accepted.get([namespace, name].join('/'));
    const granted = resource && grantedScopes(grantorOf(resource, client), client);
    if (granted === undefined) return [notGranted(['resources', index], NO_SUCH_GRANT)];
    for (const scope of granted) held.add(scope);
    return (scopes ?? []).flatMap((scope, at) =>
      granted.includes(scope)
        ? []
        : [notGranted(['resources', index, 'scopes', at], 'This scope is not granted there.')],
    );
  });
  if (ungranted.length > 0 || resources.length === 0) return ungranted;
  return defaultScopes.flatMap((scope, at) =>
    held.has(scope) ? [] : [notGranted(['defaultScopes', at], 'No resource of this client grants this scope.')],
  );
}

/** The resource as far as this client is concerned: its selectors match no other namespace than that of the client. */
function grantorOf({ namespace, spec }: AcceptedResource, client: ReferringClient): Grantor {
  const select = selectBy((asked) => (asked === client.namespace ? client.namespaceLabels : undefined));
  return { namespace, scopes: spec.scopes, allowedClients: allowedClientsOf(spec, select) };
}

function notGranted(path: readonly (string | number)[], message: string): UngrantedReference {
  return { path: ['spec', ...path], reason: 'ResourceNotGranted', message };
}

/** References that a condition names. */
const MOST_NAMED = 3;

/** The condition `ResourcesGranted`, which stands beside Ready; undefined for a client without references. */
export function grantsCondition(
  { spec }: ReferringClient,
  ungranted: readonly UngrantedReference[],
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
