// The stored state of a client whose owner provides the Secret (`source: Existing`). The state copies the verifiers of
// that Secret, which the controller never changes. Pure.

import type { AcceptedVerifier } from '../../admission/client-secrets/client-verifier.ts';
import type { RotationRequests } from '../reconciling/rotation-requests.ts';
import type { CredentialState } from './credential-state.ts';

/**
 * The state that accepts exactly the client secrets found in the owner's Secret.
 * @param verifiers of these client secrets, newest first
 * @param now epoch milliseconds
 * @param requests the rotation requests on the client
 * @returns undefined when the stored state has exactly these verifiers and none of them expires
 */
export function existingCredentials(
  stored: CredentialState | undefined,
  verifiers: readonly Uint8Array[],
  { now, requests }: { readonly now: number; readonly requests: RotationRequests },
): CredentialState | undefined {
  const known = stored?.verifiers ?? [];
  const isSameVerifier = (accepted: AcceptedVerifier | undefined, verifier: Uint8Array) =>
    accepted !== undefined && Buffer.from(verifier).equals(accepted.verifier);
  const isSame =
    known.length === verifiers.length && verifiers.every((each, index) => isSameVerifier(known[index], each));
  if (isSame && known.every(({ expiresAt }) => expiresAt === undefined)) return undefined;
  const next = Math.max(0, ...known.map(({ revision }) => revision)) + 1;
  // Two client secrets that are new together get the same revision; the newest is first in any case.
  const accepted = verifiers.map((verifier) => ({
    verifier,
    revision: known.find((each) => isSameVerifier(each, verifier))?.revision ?? next,
  }));
  const isCurrentUnchanged = isSameVerifier(known[0], verifiers[0] ?? new Uint8Array());
  return {
    revision: (stored?.revision ?? 0) + 1,
    verifiers: accepted,
    rotatedAt: isCurrentUnchanged && stored !== undefined ? stored.rotatedAt : now,
    begunAt: undefined,
    // The controller does not rotate this Secret, so the requests so far are treated as handled. A later request alone is not
    // stored.
    handled: requests,
  };
}
