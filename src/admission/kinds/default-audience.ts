// The audience of a client whose manifest names no audience and no resource: of its own namespace, so that no
// other tenant's API accepts its tokens. The baseline permits it to the APIs of that namespace (client-policy.ts).

import type { OAuthClientSpec } from './oauth-client.ts';

/** The audiences that the manifest of a client in a namespace gives; empty only where it refers to resources. */
export function audiencesIn(
  namespace: string,
  { audiences, resources }: Pick<OAuthClientSpec, 'audiences' | 'resources'>,
): readonly string[] {
  const needsDefault = audiences.length === 0 && resources.length === 0;
  return needsDefault ? [`urn:grantry:ns:${namespace}:default`] : audiences;
}
