// The warning about a client whose `revokeTokensBefore` is in the future: the field applies, and the client is issued no
// grant and no token until then (oauth/tokens/revocation-checks.ts).

import type { Condition, Fault } from '../kinds/conditions.ts';
import type { OAuthClientSpec } from '../kinds/oauth-client.ts';

/** The reason of the warning; those about a person and an identity provider have it, too. */
export const REVOKED_UNTIL = 'RevokeTokensBeforeInFuture';

/**
 * The warning, with its field; undefined without the field or once its time has come.
 * @param now epoch milliseconds
 * @param effect what holds until then
 */
export function revokedUntilWarning(
  { revokeTokensBefore }: { readonly revokeTokensBefore?: number | undefined },
  now: number,
  effect = 'the client gets no tokens',
): Fault<typeof REVOKED_UNTIL> | undefined {
  if (revokeTokensBefore === undefined || revokeTokensBefore < now) return undefined;
  const until = new Date(revokeTokensBefore).toISOString();
  return {
    path: ['spec', 'revokeTokensBefore'],
    reason: REVOKED_UNTIL,
    message: `This time is in the future: until ${until} ${effect}.`,
  };
}

/** The warning as a condition, which stands beside Ready: the client is served all the same. */
export function revokedUntilCondition(
  spec: Pick<OAuthClientSpec, 'revokeTokensBefore'>,
  now: number,
  observedGeneration: number,
): Condition | undefined {
  const warning = revokedUntilWarning(spec, now);
  if (warning === undefined) return undefined;
  const message = `spec.revokeTokensBefore: ${warning.message}`;
  return { type: 'RevokedUntil', status: 'True', reason: REVOKED_UNTIL, message, observedGeneration };
}
