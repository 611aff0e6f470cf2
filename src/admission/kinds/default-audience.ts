// The audience of a client whose manifest names none: of its own namespace, so that its tokens are good at no other
// tenant's API. The baseline permits it to the APIs of that namespace (client-policy.ts).

import type { OAuthClientSpec } from './oauth-client.ts';

/** The audiences of a client in a namespace; never empty. */
export function audiencesIn(namespace: string, { audiences }: Pick<OAuthClientSpec, 'audiences'>): readonly string[] {
  return audiences.length > 0 ? audiences : [`urn:grantry:ns:${namespace}:default`];
}
