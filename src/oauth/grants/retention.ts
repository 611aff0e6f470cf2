// How long the record of a grant is kept: as long as anything that was issued under it may be presented.

import type { Client } from '../registry/client.ts';

/** Milliseconds within which a code must be redeemed (security row K5). */
export const CODE_LIFETIME = 60_000;

/**
 * Milliseconds from the creation of a grant after which nothing issued under it is valid, with the present settings of
 * its client.
 */
export function retentionOf(client: Client): number {
  const { accessTokenLifetimeSeconds, refreshTokenLifetimeSeconds } = client.tokens;
  // The last access token may be made at the very end of the code's or of the refresh family's life.
  return CODE_LIFETIME + 1000 * (accessTokenLifetimeSeconds + (mayRefresh(client) ? refreshTokenLifetimeSeconds : 0));
}

export function mayRefresh(client: Client): boolean {
  return client.grantTypes.includes('refresh_token');
}
