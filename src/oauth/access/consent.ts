// Whether a person must be asked before a client gets what it wants (RFC 6749 §4.1, RFC 9700 §2.1, RFC 8252 §8.6).
// What was given is kept by the consent store; the page is drawn in `http/`.

import { isPublic } from '../client-auth/index.ts';
import type { AuthorizationSnapshot, Consent } from '../ports/login-stores.ts';
import type { Client } from '../registry/client.ts';
import { isLoopbackOrPrivateUse } from '../values/redirect-uri.ts';

/** What the consent page is for. */
export interface ConsentNeed {
  readonly ask: boolean;
  /** The asked scope that was not given before at every one of the asked audiences; may be empty although the person is asked. */
  readonly newScope: readonly string[];
}

/**
 * Whether to ask, and for what. A public client at an address that any app on the machine could listen to is asked for
 * every time, also with consent `Skip`: nothing assures that it is the same app (RFC 8252 §8.6).
 * @param given what this person let this client do before; undefined when nothing
 */
export function consentNeeded(client: Client, request: AuthorizationSnapshot, given: Consent | undefined): ConsentNeed {
  const unassured = isPublic(client) && isLoopbackOrPrivateUse(request.redirectUri);
  return { ask: unassured || !isCovered(client, request, given), newScope: newScope(request, given) };
}

/** Whether what was given, or the client's standing, covers the whole request: its scope at each of its audiences. */
export function isCovered(client: Client, request: AuthorizationSnapshot, given: Consent | undefined): boolean {
  return client.consent === 'Skip' || newScope(request, given).length === 0;
}

function newScope({ scope, audiences }: AuthorizationSnapshot, given: Consent | undefined): readonly string[] {
  return scope.filter((token) => !audiences.every((audience) => given?.get(audience)?.includes(token)));
}
