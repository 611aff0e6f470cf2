// Decides whether a person must be asked for consent (RFC 6749 §4.1, RFC 9700 §2.1, RFC 8252 §8.6).
// The consent store keeps what was given; `http/pages` renders the page.

import { isPublic } from '../client-auth/index.ts';
import type { AuthorizationSnapshot, Consent } from '../ports/login-stores.ts';
import type { Client } from '../registry/client.ts';
import { isLocalhostName, isLoopbackOrPrivateUse } from '../values/redirect-uri.ts';
import type { ClientAccess } from './client-access.ts';

/** A request, with its client and the access of that by the same registry. */
export interface ValidatedRequest {
  readonly client: Client;
  readonly request: AuthorizationSnapshot;
  readonly access: Pick<ClientAccess, 'scopesAt'>;
}

/** Whether the consent page is shown, and for what. */
export interface ConsentNeed {
  readonly ask: boolean;
  /** The requested access that was not given before; may be empty although `ask` is true. */
  readonly newAccess: Consent;
}

/**
 * What a request asks a person for: at each of its audiences the part of its scope that the client may have there. A scope that
 * only another resource has is not asked for at this one, and an audience without any is not in the answer.
 */
export function requestedAccess({
  request: { scope, audiences },
  access,
}: Pick<ValidatedRequest, 'request' | 'access'>): Consent {
  return withoutEmpty(
    audiences.map((audience) => {
      const allowed = new Set(access.scopesAt(audience));
      return [audience, scope.filter((token) => allowed.has(token))];
    }),
  );
}

function withoutEmpty(scopes: readonly (readonly [audience: string, scope: readonly string[]])[]): Consent {
  return new Map(scopes.filter(([, scope]) => scope.length > 0));
}

/**
 * Whether to ask, and for what. At an address that any app on the machine could listen to the person is asked
 * every time, also with consent `Skip`: nothing assures that it is the same app (RFC 8252 §8.6), and the secret of an
 * installed app is no secret. A confidential client at a name of localhost is a developer's web app: its consent applies.
 * With `prompt=consent` the client itself asks for the question (OpenID Connect Core §3.1.2.1).
 * @param given what this person let this client do before; undefined when nothing
 */
export function consentNeeded(validated: ValidatedRequest, given: Consent | undefined): ConsentNeed {
  const { client, request } = validated;
  const { redirectUri, openid } = request;
  const unassured = isLoopbackOrPrivateUse(redirectUri) && (isPublic(client) || !isLocalhostName(redirectUri));
  const demanded = openid?.prompt.includes('consent') ?? false;
  return { ask: demanded || unassured || !isCovered(validated, given), newAccess: newAccess(validated, given) };
}

/** Whether earlier consent, or consent `Skip`, covers the whole request: what it asks for at each of its audiences. */
export function isCovered(validated: ValidatedRequest, given: Consent | undefined): boolean {
  return validated.client.consent === 'Skip' || newAccess(validated, given).size === 0;
}

function newAccess(validated: ValidatedRequest, given: Consent | undefined): Consent {
  return withoutEmpty(
    [...requestedAccess(validated)].map(([audience, scope]) => {
      const before = new Set(given?.get(audience));
      return [audience, scope.filter((token) => !before.has(token))];
    }),
  );
}
