// What must still hold for a grant whenever it is used, beside its own state: its client's and its person's kill switches.

import { OAuthError } from '../ports/error.ts';
import type { StoredGrant } from '../ports/grant-store.ts';
import type { ResourceOwners, Stores } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';

export interface KillSwitches {
  readonly stores: Pick<Stores, 'watermarks'>;
  readonly owners: ResourceOwners;
}

/**
 * Why a grant is dead although its record lives: `grant_before_watermark` (global, client, user or withdrawn consent),
 * `subject_inactive`; undefined when it is alive (security rows T4, RF11).
 */
export async function revocationReason(
  client: Client,
  grant: Pick<StoredGrant, 'subject' | 'createdAt'>,
  { stores, owners }: KillSwitches,
): Promise<string | undefined> {
  const [watermark, active] = await Promise.all([
    stores.watermarks.read(client.uid, grant.subject),
    owners.isActive(grant.subject),
  ]);
  if (grant.createdAt <= Math.max(watermark, client.revokeTokensBefore)) return 'grant_before_watermark';
  return active ? undefined : 'subject_inactive';
}

/** The half of {@link revocationReason} that no store can judge. @throws OAuthError invalid_grant, unless the person is active */
export async function requireActive(subject: string, { owners }: Pick<KillSwitches, 'owners'>): Promise<void> {
  if (!(await owners.isActive(subject))) throw invalidGrant('subject_inactive');
}

/** The one wire answer to every code or refresh token that is not good (RFC 6749 §5.2). */
export function invalidGrant(reason: string): OAuthError {
  return new OAuthError('invalid_grant', 'The grant is invalid, expired or revoked.', { reason });
}
