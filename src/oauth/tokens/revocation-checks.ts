// The revocation checks on each use of a grant, besides its own record: watermarks, the client's `revokeTokensBefore`,
// and whether the person is still active.

import { maySignIn } from '../access/sign-in-limits.ts';
import { OAuthError } from '../ports/error.ts';
import type { StoredGrant } from '../ports/grant-store.ts';
import type { People, Person } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';

/** What ends a grant beside its record, as found before. */
export interface KillSwitches {
  /** The highest watermark of the client and the person. */
  readonly watermark: number;
  readonly person: Person | undefined;
  readonly owners: People;
}

/**
 * Whether a grant is active, unless its record is revoked: no watermark (global, client, user or withdrawn consent) and no
 * kill switch of client or person ends it (security rows T4, RF11).
 */
export function isActive(
  grant: Pick<StoredGrant, 'createdAt' | 'authTime'>,
  client: Client,
  { watermark, person, owners }: KillSwitches,
): boolean {
  if (grant.createdAt <= Math.max(watermark, client.revokeTokensBefore)) return false;
  return revocationByPerson(grant, person, owners) === undefined;
}

/**
 * The part of {@link isActive} that is about the person.
 * @param person as found before
 * @throws OAuthError invalid_grant, if the kill switch of the person revokes the grant
 */
export function requireActive(
  grant: Pick<StoredGrant, 'authTime'>,
  person: Person | undefined,
  { owners }: { readonly owners: People },
): void {
  const reason = revocationByPerson(grant, person, owners);
  if (reason !== undefined) throw invalidGrant(reason);
}

/**
 * A limit of the client applies to new tokens only: a grant that it stops is valid again when the limit or the person changes.
 * @param person as found before
 * @throws OAuthError invalid_grant, if the client is not for this person
 */
export function requirePermitted(client: Pick<Client, 'signIn'>, person: Person | undefined): void {
  if (person === undefined || !maySignIn(client, person)) throw invalidGrant('person_not_permitted');
}

/** By the time of the sign-in: a grant may be made after a revocation that the replica has not read yet. */
function revocationByPerson(
  { authTime }: Pick<StoredGrant, 'authTime'>,
  person: Person | undefined,
  owners: People,
): string | undefined {
  const revokedBefore = person === undefined ? Number.POSITIVE_INFINITY : owners.revokedBefore(person);
  if (authTime > revokedBefore) return undefined;
  return revokedBefore === Number.POSITIVE_INFINITY ? 'subject_inactive' : 'grant_before_watermark';
}

/** The longest `Retry-After` of {@link requireNotRevokedUntil}, in seconds: a manifest may be mended meanwhile. */
const LONGEST_WAIT_SECONDS = 300;

/**
 * Refuses a client whose `revokeTokensBefore` is ahead: what it got now would be revoked already.
 * @param issuedAt epoch milliseconds of what it would get
 * @throws OAuthError temporarily_unavailable
 */
export function requireNotRevokedUntil({ revokeTokensBefore }: Client, issuedAt: number): void {
  if (issuedAt > revokeTokensBefore) return;
  const seconds = Math.floor((revokeTokensBefore - issuedAt) / 1000) + 1;
  throw new OAuthError('temporarily_unavailable', 'The client cannot get tokens now.', {
    reason: 'revoked_until',
    retryAfterSeconds: Math.min(LONGEST_WAIT_SECONDS, seconds),
  });
}

/** The only wire answer to an invalid code or refresh token (RFC 6749 §5.2). */
export function invalidGrant(reason: string): OAuthError {
  return new OAuthError('invalid_grant', 'The grant is invalid, expired or revoked.', { reason });
}
