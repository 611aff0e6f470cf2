// Token revocation (RFC 7009). Revoking a refresh token revokes its whole family and every access token of it; revoking
// an access token revokes that token only. An unknown token is a success; a token of another client is refused and
// stays valid.

import {
  type Authenticated,
  authenticate,
  type ClientEndpointOptions,
  type ClientRequest,
  knownParameters,
} from '../client-auth/client-authentication.ts';
import { OAuthError } from '../ports/error.ts';
import type { Client } from '../registry/client.ts';
import { isIssuedTo } from '../tokens/access-token-claims.ts';
import { type PresentedToken, TokenStatus, type TokenStatusOptions } from '../tokens/token-status.ts';

export interface RevocationOptions extends TokenStatusOptions, ClientEndpointOptions {}

/** Every form parameter the endpoint knows. */
export const REVOCATION_PARAMETERS = knownParameters(['token', 'token_type_hint']);

/** Revokes tokens at the request of their client. */
export class RevocationEndpoint {
  readonly #options: RevocationOptions;
  readonly #status: TokenStatus;

  constructor(options: RevocationOptions) {
    this.#options = options;
    this.#status = new TokenStatus(options);
  }

  /**
   * Resolves when the token is revoked, or was not made by this issuer (RFC 7009 §2.2).
   * @throws OAuthError invalid_request for a token of another client
   * @throws StoreUnavailableError when the revocation could not be written: it must not be reported as done
   */
  async handle(request: ClientRequest): Promise<Authenticated> {
    const authenticated = await authenticate(request, REVOCATION_PARAMETERS, this.#options);
    const { client, registry } = authenticated;
    const { clientId, authMethod } = client;
    try {
      await authenticated.claim();
      const token = request.parameters.require('token');
      const presented = await this.#status.recognise(token, registry);
      if (presented !== undefined) await this.#revoke(presented, client, request.address);
      else await this.#revokeAgain(token);
      return { clientId, authMethod };
    } catch (error) {
      throw authenticated.attribute(error);
    }
  }

  /** An earlier attempt that could not report success may have removed an opaque token: it is revoked again. */
  async #revokeAgain(token: string): Promise<void> {
    const { handles, stores } = this.#options;
    const tokenId = handles.accessTokenId(token);
    if (tokenId !== undefined) await stores.accessTokens.revoke(tokenId);
  }

  async #revoke(presented: PresentedToken, client: Client, address: string): Promise<void> {
    const { stores, audit } = this.#options;
    const { clientId } = client;
    if (!isOwn(presented, client)) {
      throw new OAuthError('invalid_request', 'The token was not issued to this client.', {
        reason: 'token_of_another_client',
      });
    }
    switch (presented.kind) {
      case 'refresh': {
        const { subject, grantId } = presented.state.grant;
        await stores.grants.revoke(grantId);
        return audit.record({ type: 'token.revoked', reason: 'refresh_token', clientId, subject, grantId, address });
      }
      case 'opaque': {
        const { subject, grantId, tokenId } = presented.token;
        await stores.accessTokens.revoke(tokenId);
        return audit.record({ type: 'token.revoked', reason: 'access_token', clientId, subject, grantId, address });
      }
      case 'jwt': {
        const { sub: subject, grant_id: grantId, jti, exp } = presented.claims;
        await stores.revokedTokens.mark(jti, exp);
        return audit.record({ type: 'token.revoked', reason: 'access_token', clientId, subject, grantId, address });
      }
    }
  }
}

function isOwn(presented: PresentedToken, client: Client): boolean {
  switch (presented.kind) {
    case 'refresh':
      return presented.state.grant.clientUid === client.uid;
    case 'opaque':
      return presented.token.clientUid === client.uid;
    case 'jwt':
      return isIssuedTo(client, presented.claims);
  }
}
