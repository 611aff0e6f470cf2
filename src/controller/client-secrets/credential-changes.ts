// What is stored of a client's credentials, changed: secrets that end, secrets that follow, and their numbers. Every change
// has a higher revision. When there is one, client-rotation.ts says. Pure.

import { type AcceptedVerifier, VERIFIERS_MAX } from '../../admission/client-secrets/client-verifier.ts';
import { secretVerifier } from '../../oauth/registry/client-secret.ts';
import type { RotationRequests } from '../reconciling/rotation-requests.ts';
import type { CredentialState } from './credential-state.ts';

/** When what is not replaced at once ends. */
export interface Grace {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly gracePeriodSeconds: number;
}

/** Other verifiers are stored, and what was asked for is seen to. */
export function changed(
  state: CredentialState,
  verifiers: readonly AcceptedVerifier[],
  { rotateAt, rotateNow }: RotationRequests,
): CredentialState {
  const handled = { rotateAt: rotateAt ?? state.handled.rotateAt, rotateNow: rotateNow ?? state.handled.rotateNow };
  return { ...state, revision: state.revision + 1, verifiers, handled };
}

/** Without what has ended; the same state when that is nothing. */
export function withoutExpired(state: CredentialState, now: number): CredentialState {
  const verifiers = state.verifiers.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now);
  return verifiers.length === state.verifiers.length ? state : { ...state, revision: state.revision + 1, verifiers };
}

/** All end with the grace at the latest; without those that have ended then already. */
export function expiring(verifiers: readonly AcceptedVerifier[], grace: Grace): readonly AcceptedVerifier[] {
  return ended(verifiers, grace).filter(({ expiresAt }) => expiresAt > grace.now);
}

function ended(verifiers: readonly AcceptedVerifier[], { now, gracePeriodSeconds }: Grace) {
  const end = now + gracePeriodSeconds * 1000;
  return verifiers.map((accepted) => ({ ...accepted, expiresAt: Math.min(accepted.expiresAt ?? end, end) }));
}

/** A secret and those before it, as many as count, however often its owner asks for a new one. */
export function kept(
  newest: AcceptedVerifier | undefined,
  older: readonly AcceptedVerifier[],
): readonly AcceptedVerifier[] {
  return [...(newest === undefined ? [] : [newest]), ...older].slice(0, VERIFIERS_MAX);
}

/**
 * What is stored of a client whose Secret somebody else replaced: every secret it had ends with the grace. They stay
 * stored, so that their numbers are not given out again.
 * @returns undefined when that is what is stored
 */
export function endingCredentials(stored: CredentialState, grace: Grace): CredentialState | undefined {
  if (stored.verifiers.every(({ expiresAt }) => expiresAt !== undefined)) return undefined;
  return { ...stored, revision: stored.revision + 1, verifiers: ended(stored.verifiers, grace) };
}

/**
 * The verifier of a secret that follows, with the next number.
 * @param known all there were, also those that ended by now: no two have the same number
 */
export function following(uid: string, secret: string, known: readonly AcceptedVerifier[]): AcceptedVerifier {
  const revision = Math.max(0, ...known.map((verifier) => verifier.revision)) + 1;
  return { verifier: secretVerifier(uid, secret), revision };
}

/** Which of them a secret has; undefined: none. */
export function indexOfSecret(uid: string, secret: string, verifiers: readonly AcceptedVerifier[]): number | undefined {
  const wanted = Buffer.from(secretVerifier(uid, secret));
  const index = verifiers.findIndex(({ verifier }) => wanted.equals(verifier));
  return index === -1 ? undefined : index;
}
