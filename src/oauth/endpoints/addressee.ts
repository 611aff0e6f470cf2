// The addressee of the answer to an authorization request: a registered client at one of its redirect URIs, or a page where
// either is not certain (RFC 6749 §4.1.2.1).

import { redirectUriDetail, unknownClientDetail } from '../ports/error-detail.ts';
import type { Client } from '../registry/client.ts';
import type { Registry } from '../registry/registry.ts';
import type { Parameters } from '../values/parameters.ts';
import { matchRedirectUri } from '../values/redirect-uri.ts';

/** There is no client or address to answer to: an HTML page with status 400, never a redirect (RFC 6749 §4.1.2.1). */
export interface RefusedAuthorization {
  readonly kind: 'refused';
  readonly reason: string;
  /** The registered or refused client, where it is known; for logs only. */
  readonly clientId: string | undefined;
  /** See {@link OAuthErrorDetails.detail}. */
  readonly detail?: string | undefined;
}

/** The verified addressee of each answer. */
export type FoundAddressee = { readonly kind: 'found'; readonly client: Client; readonly redirectUri: string };

/** Finds the client and its address. No redirect happens until both are verified (RFC 9700 §4.11.2). */
export function findAddressee(parameters: Parameters, registry: Registry): FoundAddressee | RefusedAuthorization {
  const doubled = parameters.firstDuplicate(['client_id', 'redirect_uri']);
  if (doubled !== undefined) return refused(`${doubled}_duplicate`, undefined);
  const clientId = parameters.get('client_id');
  if (clientId === undefined) return refused('client_id_missing', undefined);
  const client = registry.find(clientId);
  if (client === undefined) {
    const condition = registry.refused.reasonOf(clientId);
    if (condition === undefined) return refused('client_unknown', undefined, unknownClientDetail(clientId));
    return refused('client_refused', clientId, condition);
  }
  const redirectUri = parameters.get('redirect_uri');
  if (redirectUri === undefined) return refused('redirect_uri_missing', clientId);
  if (!matchRedirectUri(redirectUri, client.redirectUris)) {
    return refused('redirect_uri_mismatch', clientId, redirectUriDetail(redirectUri));
  }
  return { kind: 'found', client, redirectUri };
}

/** The refusal without a redirect. @param clientId where it is known */
export function refused(reason: string, clientId: string | undefined, detail?: string): RefusedAuthorization {
  return { kind: 'refused', reason, clientId, detail };
}
