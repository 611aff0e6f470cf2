// Token introspection (RFC 7662). A caller sees a token only if it was issued to it, or if it is the API the token is for;
// to any other caller it is inactive. While the store is unavailable, no token is reported active.

import { formatScope } from '../access/scope.ts';
import {
  type Authenticated,
  authenticate,
  type ClientEndpointOptions,
  type ClientRequest,
  knownParameters,
} from '../client-auth/client-authentication.ts';
import { isPublic } from '../client-auth/index.ts';
import { OAuthError } from '../ports/error.ts';
import type { Client } from '../registry/client.ts';
import type { Registry } from '../registry/registry.ts';
import { isIssuedTo } from '../tokens/access-token-claims.ts';
import { reportedAuthTime } from '../tokens/auth-time.ts';
import { type PresentedToken, refreshExpiry, TokenStatus, type TokenStatusOptions } from '../tokens/token-status.ts';
import { confirmationClaim, tokenTypeOf, tokenTypeOfClaim } from '../values/confirmation.ts';

/** The answer (RFC 7662 §2.2): the claims of an active token, or `active: false` and nothing else. */
export type IntrospectionResponse = { readonly active: false } | ({ readonly active: true } & Record<string, unknown>);

/** The answer, and its fields for the request log. */
export interface IntrospectionResult extends Authenticated {
  readonly response: IntrospectionResponse;
}

export interface IntrospectionOptions extends TokenStatusOptions, ClientEndpointOptions {
  readonly issuer: string;
}

/** Every form parameter the endpoint knows. */
export const INTROSPECTION_PARAMETERS = knownParameters(['token', 'token_type_hint']);

/** Describes tokens to resource servers and clients. */
export class IntrospectionEndpoint {
  readonly #options: IntrospectionOptions;
  readonly #status: TokenStatus;

  constructor(options: IntrospectionOptions) {
    this.#options = options;
    this.#status = new TokenStatus(options);
  }

  /**
   * @throws OAuthError invalid_client also for a public client: RFC 7662 §2.1 demands an authorised caller
   * @throws StoreUnavailableError rather than guessing
   */
  async handle(request: ClientRequest): Promise<IntrospectionResult> {
    const authenticated = await authenticate(request, INTROSPECTION_PARAMETERS, this.#options);
    const { client: caller, registry } = authenticated;
    const { clientId, authMethod } = caller;
    try {
      rejectPublic(caller);
      await authenticated.claim();
      const presented = await this.#status.recognise(request.parameters.require('token'), registry);
      const visible = presented !== undefined && maySee(caller, presented, registry);
      const active = visible && (await this.#status.activeToken(presented, registry));
      const response = active ? this.#describe(presented, registry) : ({ active: false } as const);
      return { response, clientId, authMethod };
    } catch (error) {
      throw authenticated.attribute(error);
    }
  }

  #describe(presented: PresentedToken, registry: Registry): IntrospectionResponse {
    switch (presented.kind) {
      case 'jwt':
        return { active: true, token_type: tokenTypeOfClaim(presented.claims.cnf), ...presented.claims };
      case 'opaque': {
        const { token } = presented;
        return {
          active: true,
          token_type: tokenTypeOf(token.confirmation),
          iss: this.#options.issuer,
          sub: token.subject,
          aud: token.audience,
          client_id: token.clientId,
          iat: token.issuedAtSeconds,
          exp: token.expiresAtSeconds,
          jti: token.tokenId,
          scope: formatScope(token.scope),
          ...(token.authTime !== undefined && { auth_time: Math.floor(token.authTime / 1000) }),
          ...(token.grantId !== undefined && { grant_id: token.grantId }),
          ...(token.confirmation !== undefined && { cnf: confirmationClaim(token.confirmation) }),
        };
      }
      case 'refresh': {
        const { grant } = presented.state;
        const client = registry.findByUid(grant.clientUid);
        return {
          active: true,
          iss: this.#options.issuer,
          sub: grant.subject,
          aud: grant.audiences.length === 1 ? grant.audiences[0] : grant.audiences,
          client_id: grant.clientId,
          iat: Math.floor(presented.state.refreshedAt / 1000),
          ...(client && { exp: Math.floor(refreshExpiry(client, presented.state) / 1000) }),
          scope: formatScope(grant.scope),
          auth_time: Math.floor(reportedAuthTime(grant) / 1000),
          grant_id: grant.grantId,
        };
      }
    }
  }
}

function rejectPublic(caller: Client): void {
  if (isPublic(caller)) {
    throw new OAuthError('invalid_client', 'Client authentication failed.', { reason: 'public_client' });
  }
}

/** RFC 7662 §4: a token's state must not be disclosed to other parties. */
function maySee(caller: Client, presented: PresentedToken, registry: Registry): boolean {
  switch (presented.kind) {
    case 'jwt':
      return isIssuedTo(caller, presented.claims) || isFor(caller, presented.claims.aud, registry);
    case 'opaque':
      return presented.token.clientUid === caller.uid || isFor(caller, presented.token.audience, registry);
    case 'refresh':
      return presented.state.grant.clientUid === caller.uid;
  }
}

/** Whether a caller is the API of an audience: where that has an owner, only a client of the owner's namespace can be. */
function isFor(caller: Client, audience: string, { resources }: Registry): boolean {
  if (!caller.resourceServerAudiences.includes(audience)) return false;
  const owner = resources.ownerOf(audience);
  return owner === undefined || owner.namespace === caller.namespace;
}
