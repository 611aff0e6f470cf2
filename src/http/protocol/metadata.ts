// The authorization server metadata (RFC 8414) over HTTP, at each of its paths. `oauth/endpoints/metadata.ts` makes the
// document and the paths.

import type { Endpoint } from '../server/endpoint.ts';
import { PUBLIC_CACHE } from '../server/security-headers.ts';

/** One endpoint for each of `paths`; these are absolute, not below the issuer's path. */
export function metadataEndpoints({
  document,
  paths,
}: {
  readonly document: object;
  readonly paths: readonly string[];
}): readonly Endpoint[] {
  const body = JSON.stringify(document);
  return paths.map((path) => ({
    route: 'metadata',
    path,
    answers: 'json',
    cors: 'any',
    head: true,
    handlers: {
      GET: async ({ reply }) => {
        reply.header('cache-control', PUBLIC_CACHE).type('application/json; charset=utf-8').send(body);
      },
    },
  }));
}
