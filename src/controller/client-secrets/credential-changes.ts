// Changes of a client's stored credentials: expiring verifiers, new verifiers and their revisions. Every change
// increments the revision of the state. client-rotation.ts decides when a change is due. Pure.

import { type AcceptedVerifier, VERIFIERS_MAX } from '../../admission/client-secrets/client-verifier.ts';
import type { OAuthClientManifest } from '../../admission/kinds/oauth-client.ts';
import { secretVerifier } from '../../oauth/registry/client-secret.ts';
import type { RotationRequests } from '../reconciling/rotation-requests.ts';
import type { CredentialState } from './credential-state.ts';

/** How long a replaced secret is still accepted. */
export interface Grace {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly gracePeriodSeconds: number;
}

const GRACE_SECONDS = 86_400;

/** How long a replaced secret of a client is still accepted, in seconds. */
export function gracePeriodOf({ spec }: OAuthClientManifest): number {
  return spec.auth.clientSecret?.rotation.gracePeriod ?? GRACE_SECONDS;
}

/** The state with other verifiers, no rotation pending, and the rotation requests marked as handled. */
export function withVerifiers(
  state: CredentialState,
  verifiers: readonly AcceptedVerifier[],
  { rotateAt, rotateNow }: RotationRequests,
): CredentialState {
  const handled = { rotateAt: rotateAt ?? state.handled.rotateAt, rotateNow: rotateNow ?? state.handled.rotateNow };
  return { ...state, revision: state.revision + 1, verifiers, handled, begunAt: undefined };
}

/** The state without expired verifiers; the same object when none has expired. */
export function withoutExpired(state: CredentialState, now: number): CredentialState {
  const verifiers = state.verifiers.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now);
  return verifiers.length === state.verifiers.length ? state : { ...state, revision: state.revision + 1, verifiers };
}

/** The verifiers, each of them expiring with the grace at the latest; without those that have expired already. */
export function expiring(verifiers: readonly AcceptedVerifier[], grace: Grace): readonly AcceptedVerifier[] {
  return withExpiry(verifiers, grace).filter(({ expiresAt }) => expiresAt > grace.now);
}

function withExpiry(verifiers: readonly AcceptedVerifier[], { now, gracePeriodSeconds }: Grace) {
  const end = now + gracePeriodSeconds * 1000;
  return verifiers.map((accepted) => ({ ...accepted, expiresAt: Math.min(accepted.expiresAt ?? end, end) }));
}

/** The newest verifier and those before it, limited to `VERIFIERS_MAX` however often the owner requests a rotation. */
export function newestVerifiers(
  newest: AcceptedVerifier | undefined,
  older: readonly AcceptedVerifier[],
): readonly AcceptedVerifier[] {
  return [...(newest === undefined ? [] : [newest]), ...older].slice(0, VERIFIERS_MAX);
}

/**
 * The state of a client whose Secret was replaced by a Secret that is not the client's: every verifier expires with the
 * grace. Expired verifiers stay stored, so that their revisions are not reused.
 * @returns undefined when the stored verifiers all expire already
 */
export function endingCredentials(stored: CredentialState, grace: Grace): CredentialState | undefined {
  if (stored.verifiers.every(({ expiresAt }) => expiresAt !== undefined)) return undefined;
  const verifiers = withExpiry(stored.verifiers, grace);
  return { ...stored, revision: stored.revision + 1, verifiers, begunAt: undefined };
}

/** The state of a client whose secrets end at once while none can be written. Expired verifiers stay stored, as above. */
export function cutCredentials(
  stored: CredentialState,
  { now, requests }: { readonly now: number; readonly requests: RotationRequests },
): CredentialState {
  return withVerifiers(stored, withExpiry(stored.verifiers, { now, gracePeriodSeconds: 0 }), requests);
}

/**
 * The verifier of the next secret, with the next revision.
 * @param known all verifiers so far, including expired ones: no two have the same revision
 */
export function nextVerifier(uid: string, secret: string, known: readonly AcceptedVerifier[]): AcceptedVerifier {
  const revision = Math.max(0, ...known.map((verifier) => verifier.revision)) + 1;
  return { verifier: secretVerifier(uid, secret), revision };
}

/** The index of the verifier that matches a secret; undefined: none does. */
export function indexOfSecret(uid: string, secret: string, verifiers: readonly AcceptedVerifier[]): number | undefined {
  const wanted = Buffer.from(secretVerifier(uid, secret));
  const index = verifiers.findIndex(({ verifier }) => wanted.equals(verifier));
  return index === -1 ? undefined : index;
}
