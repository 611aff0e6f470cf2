// POST /introspect (RFC 7662) over HTTP. `oauth/endpoints/introspection.ts` decides which caller sees which token.

import type { IntrospectionResult } from '../../oauth/endpoints/introspection.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { type ClientEndpoint, type ClientExchangeOptions, exchangeWithClient } from './client-exchange.ts';

/** The introspection endpoint over HTTP. */
export function introspectEndpoint(
  options: ClientExchangeOptions & { readonly introspection: ClientEndpoint<IntrospectionResult> },
): Endpoint {
  return {
    route: 'introspect',
    path: '/introspect',
    answers: 'json',
    cors: 'registered',
    head: false,
    handlers: {
      POST: async (exchange) => {
        const { response } = await exchangeWithClient(options.introspection, exchange, options);
        exchange.log.outcome = response.active ? 'active' : 'inactive';
        exchange.reply.type('application/json; charset=utf-8').send(JSON.stringify(response));
      },
    },
  };
}
