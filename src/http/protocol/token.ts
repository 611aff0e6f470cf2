// POST /token (RFC 6749 §3.2) over HTTP. The phases of a token request are in `oauth/endpoints/token-endpoint.ts`.

import type { TokenResult } from '../../oauth/endpoints/token-endpoint.ts';
import type { Audit } from '../../oauth/ports/audit.ts';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { type ClientEndpoint, type ClientExchangeOptions, exchangeWithClient } from './client-exchange.ts';

export interface TokenOptions extends ClientExchangeOptions {
  readonly token: ClientEndpoint<TokenResult>;
  readonly audit: Audit;
}

/** The token endpoint over HTTP. */
export function tokenEndpoint(options: TokenOptions): Endpoint {
  return {
    route: 'token',
    path: '/token',
    answers: 'json',
    cors: 'registered',
    head: false,
    handlers: { POST: (exchange) => token(options, exchange) },
  };
}

async function token(options: TokenOptions, exchange: Exchange): Promise<void> {
  try {
    const { response, grantType, dpopNonce, areGroupsOmitted } = await exchangeWithClient(
      options.token,
      exchange,
      options,
    );
    Object.assign(exchange.log, { grantType, scope: response.scope, outcome: 'issued' });
    if (areGroupsOmitted) options.metrics.groupsOmitted.inc();
    if (dpopNonce !== undefined) exchange.reply.header('dpop-nonce', dpopNonce);
    exchange.reply.type('application/json; charset=utf-8').send(JSON.stringify(response));
  } catch (error) {
    if (error instanceof OAuthError) {
      const { clientId, reason } = error;
      options.audit.record({ type: 'token.refused', clientId, reason, address: exchange.address });
    }
    throw error;
  }
}
