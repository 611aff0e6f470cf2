// POST /token (RFC 6749 §3.2) over HTTP. The phases of a token request are in `oauth/endpoints/token-endpoint.ts`.

import type { TokenResult } from '../../oauth/endpoints/token-endpoint.ts';
import type { Audit } from '../../oauth/ports/audit.ts';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { type ClientEndpoint, type ClientExchangeOptions, exchangeWithClient } from './client-exchange.ts';

export interface TokenOptions extends ClientExchangeOptions {
  readonly token: ClientEndpoint<TokenResult>;
  readonly audit: Audit;
  /** Called for each ID token that is without groups. @param count of the groups */
  readonly onGroupsOmitted: (clientId: string, count: number) => void;
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
    const { clientId, response, grantType, dpopNonce, omittedGroups } = await exchangeWithClient(
      options.token,
      exchange,
      options,
    );
    Object.assign(exchange.log, { grantType, scope: response.scope, outcome: 'issued' });
    if (omittedGroups > 0) options.onGroupsOmitted(clientId, omittedGroups);
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
