// Recognises a presented token of any kind and checks whether it is active, for introspection and revocation.
// A token is revoked by any of these: its own mark, its grant, its client, its person, a watermark (security row T4).

import type { GrantState, StoredGrant } from '../ports/grant-store.ts';
import type { Clock, People, Person, Stores } from '../ports/ports.ts';
import type { StoredAccessToken } from '../ports/token-stores.ts';
import type { Client } from '../registry/client.ts';
import type { Registry } from '../registry/registry.ts';
import { type AccessTokenClaims, isIssuedTo } from './access-token-claims.ts';
import { reportedAuthTime } from './auth-time.ts';
import type { Handles, RefreshHandle } from './handles.ts';
import { isActive } from './revocation-checks.ts';
import type { AccessTokens } from './tokens.ts';

/** A token this issuer made, by kind; it may be revoked. */
export type PresentedToken =
  | { readonly kind: 'jwt'; readonly claims: AccessTokenClaims }
  | { readonly kind: 'opaque'; readonly token: StoredAccessToken }
  | { readonly kind: 'refresh'; readonly handle: RefreshHandle; readonly state: GrantState };

/** An active token. */
export interface ActiveToken {
  /** As of now; undefined for the token of a client itself. */
  readonly person: Person | undefined;
}

export interface TokenStatusOptions {
  readonly clock: Clock;
  readonly stores: Stores;
  readonly handles: Handles;
  readonly tokens: AccessTokens;
  readonly owners: People;
}

/** Recognises tokens by their form, so a hint is never needed (RFC 7009 §2.1, RFC 7662 §2.1), and checks them. */
export class TokenStatus {
  readonly #options: TokenStatusOptions;

  constructor(options: TokenStatusOptions) {
    this.#options = options;
  }

  /** The token if this issuer made it and it is neither expired nor gone from the store; undefined otherwise. */
  async recognise(token: string, registry: Registry): Promise<PresentedToken | undefined> {
    const { handles, stores, tokens } = this.#options;
    const handle = handles.parseRefreshToken(token);
    if (handle !== undefined) {
      const state = await stores.grants.read(handle.grantId);
      return state && { kind: 'refresh', handle, state };
    }
    const tokenId = handles.accessTokenId(token);
    if (tokenId !== undefined) {
      const stored = await stores.accessTokens.read(tokenId);
      return stored && { kind: 'opaque', token: stored };
    }
    const claims = await tokens.verify(token, registry.keys);
    return claims && { kind: 'jwt', claims };
  }

  /** A recognised token as long as it is active; undefined otherwise. */
  async activeToken(presented: PresentedToken, registry: Registry): Promise<ActiveToken | undefined> {
    switch (presented.kind) {
      case 'refresh':
        return this.#activeRefreshToken(presented.handle, presented.state, registry);
      case 'opaque': {
        const { clientUid, ...token } = presented.token;
        const client = registry.findByUid(clientUid);
        return client && this.#activeAccessToken(client, token, (grant) => isOfGrant(presented.token, grant));
      }
      case 'jwt': {
        const { client_id, sub, iat, grant_id, jti } = presented.claims;
        const client = registry.find(client_id);
        if (client === undefined || !isIssuedTo(client, presented.claims)) return undefined;
        const [isRevoked, active] = await Promise.all([
          this.#options.stores.revokedTokens.has(jti),
          this.#activeAccessToken(client, { subject: sub, issuedAtSeconds: iat, grantId: grant_id }),
        ]);
        return isRevoked ? undefined : active;
      }
    }
  }

  async #activeAccessToken(
    client: Client,
    { subject, issuedAtSeconds, grantId }: Pick<StoredAccessToken, 'subject' | 'issuedAtSeconds' | 'grantId'>,
    isOfGrant: (grant: StoredGrant) => boolean = () => true,
  ): Promise<ActiveToken | undefined> {
    const { stores, owners } = this.#options;
    if (grantId === undefined) {
      const watermark = await stores.watermarks.read(client.uid, undefined);
      return issuedAtSeconds * 1000 > Math.max(watermark, client.revokeTokensBefore)
        ? { person: undefined }
        : undefined;
    }
    const [status, person] = await Promise.all([
      stores.grants.status(grantId, { clientUid: client.uid, subject }),
      owners.find(subject),
    ]);
    if (status === undefined || status.revoked) return undefined;
    // The watermark is that of the client and the person of the token.
    if (status.grant.clientUid !== client.uid || status.grant.subject !== subject) return undefined;
    if (!isOfGrant(status.grant)) return undefined;
    return isActive(status.grant, client, { watermark: status.watermark, person, owners }) ? { person } : undefined;
  }

  async #activeRefreshToken(
    handle: RefreshHandle,
    { grant, ...state }: GrantState,
    registry: Registry,
  ): Promise<ActiveToken | undefined> {
    const { clock, stores, owners } = this.#options;
    const client = registry.findByUid(grant.clientUid);
    if (client === undefined || state.revoked || state.generation !== handle.generation) return undefined;
    if (!client.grantTypes.includes('refresh_token')) return undefined;
    if (clock.now() >= refreshExpiry(client, { grant, ...state })) return undefined;
    const [watermark, person] = await Promise.all([
      stores.watermarks.read(client.uid, grant.subject),
      owners.find(grant.subject),
    ]);
    return isActive(grant, client, { watermark, person, owners }) ? { person } : undefined;
  }
}

/** Whether a token is what the grant allows. Only the record of the grant is under a MAC of all of this. */
function isOfGrant({ subject, clientId, authTime, scope, audience }: StoredAccessToken, grant: StoredGrant): boolean {
  if (subject !== grant.subject || clientId !== grant.clientId) return false;
  if (authTime !== reportedAuthTime(grant)) return false;
  return grant.audiences.includes(audience) && scope.every((each) => grant.scope.includes(each));
}

/** Epoch milliseconds at which the current refresh token of a grant expires if it is not used. */
export function refreshExpiry({ tokens }: Client, { grant, refreshedAt }: GrantState): number {
  return Math.min(
    refreshedAt + 1000 * tokens.refreshTokenIdleLifetimeSeconds,
    grant.createdAt + 1000 * tokens.refreshTokenLifetimeSeconds,
  );
}
