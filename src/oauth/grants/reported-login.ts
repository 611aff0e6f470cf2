// What the ID token of an exchange reports: the sign-in behind the grant, and the scope whose claims the client may have.

import type { ClientAccess } from '../access/client-access.ts';
import type { StoredGrant } from '../ports/grant-store.ts';
import type { ReportedLogin } from '../tokens/tokens.ts';

/**
 * Undefined where no ID token is to be issued: for a grant without OpenID Connect, and where the request narrows the scope
 * to one without `openid` (Core §12.2).
 * @param asked the scope that the request asks for, which the grant covers; undefined for all of it
 */
export function reportedLogin(
  { openid, scope }: Pick<StoredGrant, 'openid' | 'scope'>,
  asked: readonly string[] | undefined,
  access: ClientAccess,
): ReportedLogin | undefined {
  const reported = (asked ?? scope).filter((token) => access.scopes.includes(token));
  if (openid === undefined || !reported.includes('openid')) return undefined;
  return { scope: reported, sid: openid.sid, nonce: openid.nonce };
}
