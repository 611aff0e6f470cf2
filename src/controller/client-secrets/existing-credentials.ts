// The stored state of a client whose owner provides the Secret: it follows that Secret, which the controller never
// changes. Pure.

import type { AcceptedVerifier } from '../../admission/client-secrets/client-verifier.ts';
import type { RotationRequests } from '../reconciling/rotation-requests.ts';
import type { CredentialState } from './credential-state.ts';

/**
 * The state for the verifiers of the secrets that the Secret holds.
 * @param verifiers newest first
 * @param at.now epoch milliseconds
 * @returns undefined when the stored state has these verifiers already
 */
export function existingCredentials(
  stored: CredentialState | undefined,
  verifiers: readonly Uint8Array[],
  { now, requests }: { readonly now: number; readonly requests: RotationRequests },
): CredentialState | undefined {
  const known = stored?.verifiers ?? [];
  const isKnown = (accepted: AcceptedVerifier | undefined, verifier: Uint8Array) =>
    accepted !== undefined && Buffer.from(verifier).equals(accepted.verifier);
  const isSame = known.length === verifiers.length && verifiers.every((each, index) => isKnown(known[index], each));
  if (isSame && known.every(({ expiresAt }) => expiresAt === undefined)) return undefined;
  const next = Math.max(0, ...known.map(({ revision }) => revision)) + 1;
  const accepted = verifiers.map((verifier) => ({
    verifier,
    revision: known.find((each) => isKnown(each, verifier))?.revision ?? next,
  }));
  const isNewest = isKnown(known[0], verifiers[0] ?? new Uint8Array());
  return {
    revision: (stored?.revision ?? 0) + 1,
    verifiers: accepted,
    rotatedAt: isNewest && stored !== undefined ? stored.rotatedAt : now,
    publishedRevision: 0,
    // The controller does not rotate this Secret: every request counts as handled.
    handled: requests,
    writtenFields: undefined,
  };
}
