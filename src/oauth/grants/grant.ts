// What a grant is. The table of those that exist is `index.ts`; the phases around them are `../endpoints/token-endpoint.ts`.

import type { Audit } from '../ports/audit.ts';
import type { Random, ResourceOwners, Stores } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { Handles } from '../tokens/handles.ts';
import type { Authorization, PreparedAccessToken } from '../tokens/tokens.ts';
import type { Parameters } from '../values/parameters.ts';

/** What grants are given at construction of the token endpoint. */
export interface GrantContext {
  readonly issuer: string;
  readonly random: Random;
  readonly stores: Stores;
  readonly handles: Handles;
  readonly owners: ResourceOwners;
  readonly audit: Audit;
}

/** One authenticated request that may use the grant. */
export interface GrantRequest {
  readonly client: Client;
  readonly parameters: Parameters;
  readonly address: string;
  /** The access token that will be issued; a grant only has it written by its own store action. */
  readonly accessToken: PreparedAccessToken;
}

/** A way to obtain a token (RFC 6749 §1.3). It never mints, so it cannot forge audience, expiry or scope of a token. */
export interface GrantType {
  /** Its own form parameters; each may come once, except `resource`. */
  readonly parameters: readonly string[];
  /**
   * Judges the request and uses up what it presents.
   * @throws OAuthError when it is refused. What it presented stays good then, but for what the grant itself says: a wrong
   *   verifier counts against its code, and a replay or reuse ends what was granted
   */
  exchange(request: GrantRequest, context: GrantContext): Promise<Authorization>;
}
