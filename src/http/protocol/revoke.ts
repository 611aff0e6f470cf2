// POST /revoke (RFC 7009) over HTTP. `oauth/endpoints/revocation.ts` revokes the token.

import type { Authenticated } from '../../oauth/client-auth/client-authentication.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { type ClientEndpoint, type ClientExchangeOptions, exchangeWithClient } from './client-exchange.ts';

/** The revocation endpoint over HTTP. */
export function revokeEndpoint(
  options: ClientExchangeOptions & { readonly revocation: ClientEndpoint<Authenticated> },
): Endpoint {
  return {
    route: 'revoke',
    path: '/revoke',
    answers: 'json',
    cors: 'registered',
    head: false,
    handlers: {
      POST: async (exchange) => {
        await exchangeWithClient(options.revocation, exchange, options);
        exchange.log.outcome = 'revoked';
        // Empty but typed: some client libraries fail on an answer without a media type.
        exchange.reply.type('application/json; charset=utf-8').send('');
      },
    },
  };
}
