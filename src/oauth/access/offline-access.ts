// The scope `offline_access` (OpenID Connect Core §11): a client may ask for it beside `openid` although it cannot have
// it. Libraries add it to each request, so it is left out where others are refused.

import type { Client } from '../registry/client.ts';
import type { ClientAccess } from './client-access.ts';
import { formatScope, parseScope, resolveScope } from './scope.ts';

/** The client and its access by the same registry. */
export interface ScopeHolder {
  readonly client: Pick<Client, 'grantTypes'>;
  readonly access: ClientAccess;
}

/** As {@link resolveScope}, without an `offline_access` that the client cannot have. @throws as it */
export function resolveAuthorizedScope(
  requested: string | undefined,
  audiences: readonly string[],
  holder: ScopeHolder,
): readonly string[] {
  const parsed = requested === undefined ? undefined : parseScope(requested);
  const asked = parsed === undefined ? requested : formatScope(withoutVainOfflineAccess(parsed, holder));
  return withoutVainOfflineAccess(resolveScope(asked, audiences, holder.access), holder);
}

/** The scope, without `offline_access` beside `openid` where the client may not have it or gets no refresh token. */
export function withoutVainOfflineAccess(scope: readonly string[], { client, access }: ScopeHolder): readonly string[] {
  if (!scope.includes('openid') || !scope.includes('offline_access')) return scope;
  const canHave = access.scopes.includes('offline_access') && client.grantTypes.includes('refresh_token');
  return canHave ? scope : scope.filter((token) => token !== 'offline_access');
}
