// Decides whether a person must be asked for consent (RFC 6749 §4.1, RFC 9700 §2.1, RFC 8252 §8.6).
// The consent store keeps what was given; `http/pages` renders the page.

import { isPublic } from '../client-auth/index.ts';
import type { AuthorizationSnapshot, Consent } from '../ports/login-stores.ts';
import type { Client } from '../registry/client.ts';
import { isHttpLocalhost, isLoopbackOrPrivateUse } from '../values/redirect-uri.ts';

/** Whether the consent page is shown, and for which scope. */
export interface ConsentNeed {
  readonly ask: boolean;
  /** The requested scope that was not given before at every requested audience; may be empty although `ask` is true. */
  readonly newScope: readonly string[];
}

/**
 * Whether to ask, and for which scope. At an address that any app on the machine could listen to the person is asked
 * every time, also with consent `Skip`: nothing assures that it is the same app (RFC 8252 §8.6), and the secret of an
 * installed app is no secret. A confidential client at `http://localhost` is a developer's web app: its consent counts.
 * @param given what this person let this client do before; undefined when nothing
 */
export function consentNeeded(client: Client, request: AuthorizationSnapshot, given: Consent | undefined): ConsentNeed {
  const { redirectUri } = request;
  const unassured = isLoopbackOrPrivateUse(redirectUri) && (isPublic(client) || !isHttpLocalhost(redirectUri));
  return { ask: unassured || !isCovered(client, request, given), newScope: newScope(request, given) };
}

/** Whether earlier consent, or consent `Skip`, covers the whole request: its scope at each of its audiences. */
export function isCovered(client: Client, request: AuthorizationSnapshot, given: Consent | undefined): boolean {
  return client.consent === 'Skip' || newScope(request, given).length === 0;
}

function newScope({ scope, audiences }: AuthorizationSnapshot, given: Consent | undefined): readonly string[] {
  return scope.filter((token) => !audiences.every((audience) => given?.get(audience)?.includes(token)));
}
