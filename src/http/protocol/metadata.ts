// The metadata of the authorization server (RFC 8414, OpenID Connect Discovery) over HTTP, at each of its paths.
// `oauth/endpoints/metadata.ts` makes the document and the paths.

import type { KeyRing } from '../../oauth/registry/keys.ts';
import type { RegistryRef } from '../../oauth/registry/registry.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { PUBLIC_CACHE } from '../server/security-headers.ts';

export interface MetadataEndpointOptions {
  readonly registry: RegistryRef;
  /** Makes the document; called once for each key ring. */
  readonly documentFor: (keys: KeyRing) => object;
  /** Absolute, not below the issuer's path. */
  readonly paths: readonly string[];
}

/** One endpoint for each of `paths`. */
export function metadataEndpoints({ registry, documentFor, paths }: MetadataEndpointOptions): readonly Endpoint[] {
  let made: { readonly keys: KeyRing; readonly body: string } | undefined;
  const body = () => {
    const { keys } = registry.current;
    if (made?.keys !== keys) made = { keys, body: JSON.stringify(documentFor(keys)) };
    return made.body;
  };
  return paths.map((path) => ({
    route: 'metadata',
    path,
    answers: 'json',
    cors: 'any',
    head: true,
    handlers: {
      GET: async ({ reply }) => {
        reply.header('cache-control', PUBLIC_CACHE).type('application/json; charset=utf-8').send(body());
      },
    },
  }));
}
