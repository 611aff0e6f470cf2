// The interface of a grant type. The table of grant types is `index.ts`; the phases around them are in
// `../endpoints/token-endpoint.ts`.

import type { ClientAccess } from '../access/client-access.ts';
import type { StateLimits } from '../limits/state-limits.ts';
import type { Audit } from '../ports/audit.ts';
import type { People, Random, Stores } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { Handles } from '../tokens/handles.ts';
import type { Authorization, PreparedAccessToken } from '../tokens/tokens.ts';
import type { Parameters } from '../values/parameters.ts';

/** The dependencies of grant types, passed at construction of the token endpoint. */
export interface GrantContext {
  readonly random: Random;
  readonly stores: Stores;
  readonly handles: Handles;
  readonly owners: People;
  readonly audit: Audit;
  readonly limits: StateLimits;
}

/** One authenticated request that may use the grant. */
export interface GrantRequest {
  readonly client: Client;
  /** What the client may have now. */
  readonly access: ClientAccess;
  readonly parameters: Parameters;
  readonly address: string;
  /** The access token that will be issued; a grant type only passes it to its own store action. */
  readonly accessToken: PreparedAccessToken;
}

/**
 * A way to obtain a token (RFC 6749 §1.3). It never mints: issuer, client, expiry and id of a token are not its to set.
 */
export interface GrantType {
  /** Its own form parameters; each may come once, except `resource`. */
  readonly parameters: readonly string[];
  /** Whether the grant is that of a person, whose sign-in an ID token may report. */
  readonly isOfPerson: boolean;
  /**
   * Validates the request and consumes the credential it presents.
   * @throws OAuthError when it is refused. The credential stays valid then, except where the grant type defines
   *   otherwise: a wrong verifier is counted for its code, and a replay or reuse revokes the grant
   */
  exchange(request: GrantRequest, context: GrantContext): Promise<Authorization>;
}
