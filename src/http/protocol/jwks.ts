// GET /.well-known/jwks.json (RFC 7517 §5): the public keys of the current registry.

import type { RegistryRef } from '../../oauth/registry/registry.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { PUBLIC_CACHE } from '../server/security-headers.ts';

export function jwksEndpoint({ registry }: { readonly registry: RegistryRef }): Endpoint {
  return {
    route: 'jwks',
    path: '/.well-known/jwks.json',
    answers: 'json',
    cors: 'any',
    head: true,
    handlers: {
      GET: async ({ reply }) => {
        reply
          .header('cache-control', PUBLIC_CACHE)
          .type('application/json; charset=utf-8')
          .send(JSON.stringify(registry.current.keys.jwks));
      },
    },
  };
}
