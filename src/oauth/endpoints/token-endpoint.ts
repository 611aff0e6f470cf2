// The token endpoint (RFC 6749 §3.2): the phases every grant type shares, in order. The rules of each are in `grants/`.

import { clientAccess } from '../access/client-access.ts';
import { accessForGrants } from '../access/openid-access.ts';
import { formatScope } from '../access/scope.ts';
import {
  type Authenticated,
  authenticate,
  type ClientEndpointOptions,
  type ClientRequest,
  knownParameters,
} from '../client-auth/client-authentication.ts';
import type { GrantContext } from '../grants/grant.ts';
import { GRANT_TYPES } from '../grants/index.ts';
import { OAuthError } from '../ports/error.ts';
import type { Clock } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { Registry } from '../registry/registry.ts';
import type { IdTokens, IssuedIdToken, PreparedIdToken } from '../tokens/id-tokens.ts';
import { invalidGrant, requireNotRevokedUntil } from '../tokens/revocation-checks.ts';
import type { AccessTokens, Authorization } from '../tokens/tokens.ts';
import { tokenTypeOf } from '../values/confirmation.ts';
import { type EndpointProofs, type ProvenHolding, provenHolding } from './sender-constraint.ts';

/** The successful answer (RFC 6749 §5.1); `scope` is always present. */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: 'Bearer' | 'DPoP';
  /** Seconds. */
  readonly expires_in: number;
  readonly scope: string;
  readonly refresh_token?: string;
  /** OpenID Connect Core §3.1.3.3. */
  readonly id_token?: string;
}

/** The answer, and its fields for the request log. */
export interface TokenResult extends Authenticated {
  readonly response: TokenResponse;
  readonly grantType: string;
  /** How many groups of the person the ID token is without, because they are too many for it; else 0. */
  readonly omittedGroups: number;
  /** The nonce for the client's next DPoP proof, where it needs another one (RFC 9449 §8.2). */
  readonly dpopNonce: string | undefined;
}

export interface TokenEndpointOptions extends GrantContext, ClientEndpointOptions {
  readonly issuer: string;
  readonly clock: Clock;
  readonly tokens: AccessTokens;
  readonly idTokens: IdTokens;
  readonly proofs: EndpointProofs;
}

/** Every form parameter the endpoint knows. */
export const TOKEN_PARAMETERS = knownParameters([
  'grant_type',
  ...[...GRANT_TYPES.values()].flatMap((grant) => grant.parameters),
]);

/** Exchanges grants for tokens. */
export class TokenEndpoint {
  readonly #options: TokenEndpointOptions;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
  }

  /**
   * @throws OAuthError with the codes of RFC 6749 §5.2 and RFC 8707 §2; each grant type defines what a refused request
   *   consumes
   * @throws StoreUnavailableError when state cannot be read or written
   */
  async handle(request: ClientRequest): Promise<TokenResult> {
    // 1. and 2. One registry snapshot for the whole request; the authenticated client.
    const authenticated = await authenticate(request, TOKEN_PARAMETERS, this.#options);
    const { client, registry } = authenticated;
    const { clientId, authMethod } = client;
    try {
      const holding = provenHolding(client, request, this.#options);
      await authenticated.claim(holding.marks);
      return { ...(await this.#answer(request, client, registry, holding)), clientId, authMethod };
    } catch (error) {
      throw authenticated.attribute(error);
    }
  }

  async #answer(
    { parameters, address }: ClientRequest,
    client: Client,
    registry: Registry,
    { confirmation, dpopNonce }: ProvenHolding,
  ): Promise<Omit<TokenResult, keyof Authenticated>> {
    // 3. The grant type.
    const grantType = parameters.require('grant_type');
    const grant = GRANT_TYPES.get(grantType);
    if (grant === undefined) throw refuse('unsupported_grant_type', 'grant_type_unknown');
    // 4. Whether this client may use it, and may get anything now: no code and no refresh token is used up for that.
    if (!client.grantTypes.includes(grantType)) throw refuse('unauthorized_client', 'grant_type_not_allowed');
    requireNotRevokedUntil(client, this.#options.clock.now());
    // 5. and 6. The grant type reads its own parameters and verifies the credential.
    const { issuer } = this.#options;
    const access = grant.isOfPerson
      ? accessForGrants(client, { registry, issuer })
      : clientAccess(client, registry, issuer);
    const preparedIdToken =
      grant.isOfPerson && access.issuer !== undefined
        ? this.#options.idTokens.prepare(client, registry.keys)
        : undefined;
    const maxLifetimeAt = (audience: string) => access.ownerOf(audience)?.maxLifetimeSeconds;
    const accessToken = this.#options.tokens.prepare(client, registry.keys, { confirmation, maxLifetimeAt });
    const authorization = await grant.exchange({ client, access, parameters, address, accessToken }, this.#options);
    // 7. Mint and answer.
    const { refreshToken } = authorization;
    const scope = formatScope(authorization.scope);
    const access_token = await accessToken.issue(authorization);
    const idToken = preparedIdToken && (await this.#idToken(preparedIdToken, authorization, access_token));
    const response: TokenResponse = {
      access_token,
      token_type: tokenTypeOf(confirmation),
      expires_in: accessToken.expiresAt(authorization.audience) - accessToken.issuedAtSeconds,
      scope,
      ...(refreshToken !== undefined && { refresh_token: refreshToken }),
      ...(idToken !== undefined && { id_token: idToken.idToken }),
    };
    this.#record({ client, grantType, authorization, scope, address });
    return { response, grantType, dpopNonce, omittedGroups: idToken?.omittedGroups ?? 0 };
  }

  async #idToken(
    prepared: PreparedIdToken,
    { openid, authTime, person }: Authorization,
    accessToken: string,
  ): Promise<IssuedIdToken | undefined> {
    if (openid === undefined || authTime === undefined || person === undefined) return undefined;
    // The person may be disabled since the exchange. No store is read: what was presented is consumed by now.
    if (this.#options.owners.revokedBefore(person) === Number.POSITIVE_INFINITY) throw invalidGrant('subject_inactive');
    const { scope, ...login } = openid;
    return await prepared.issue({ person, scope, login: { ...login, authTime }, accessToken });
  }

  #record({ client, grantType, authorization, scope, address }: Issued): void {
    const { subject, grantId, audience } = authorization;
    this.#options.audit.record({
      type: grantType === 'refresh_token' ? 'token.refreshed' : 'token.issued',
      clientId: client.clientId,
      tokenFormat: client.tokens.accessTokenFormat,
      subject,
      grantId,
      grantType,
      scope,
      audience,
      address,
    });
  }
}

interface Issued {
  readonly client: Client;
  readonly grantType: string;
  readonly authorization: Authorization;
  readonly scope: string;
  readonly address: string;
}

function refuse(code: 'unsupported_grant_type' | 'unauthorized_client', reason: string): OAuthError {
  return new OAuthError(code, 'grant_type is not supported for this client.', { reason });
}
