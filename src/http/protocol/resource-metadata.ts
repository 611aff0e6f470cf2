// GET /resources/<namespace>/<name>: the metadata of a ProtectedResource of the current registry (RFC 9728 §3).
// `oauth/endpoints/resource-metadata.ts` makes the document.

import { protectedResourceMetadata, resourceMetadataUrl } from '../../oauth/endpoints/resource-metadata.ts';
import type { RegistryRef } from '../../oauth/registry/registry.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { TransportError } from '../server/errors.ts';
import { PUBLIC_CACHE } from '../server/security-headers.ts';

/** 404 for an unknown resource as for one without a document. */
export function resourceMetadataEndpoint({
  issuer,
  registry,
}: {
  readonly issuer: string;
  readonly registry: RegistryRef;
}): Endpoint {
  return {
    route: 'resource-metadata',
    path: '/resources/:namespace/:name',
    answers: 'json',
    cors: 'any',
    head: true,
    handlers: {
      GET: async ({ request, reply }) => {
        const { namespace, name } = request.params as { readonly namespace: string; readonly name: string };
        const resource = registry.current.resources.find(namespace, name);
        if (resource === undefined || resourceMetadataUrl(issuer, resource) === undefined) {
          throw new TransportError('not_found');
        }
        reply
          .header('cache-control', PUBLIC_CACHE)
          .type('application/json; charset=utf-8')
          .send(JSON.stringify(protectedResourceMetadata(issuer, resource)));
      },
    },
  };
}
