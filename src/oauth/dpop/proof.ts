// Verifies DPoP proofs by the checks of RFC 9449 §4.3, for the endpoints of the authorization server and for resource
// servers alike. Whether a proof was used before is not checked here: the result names the mark to claim.

import { hash, timingSafeEqual } from 'node:crypto';
import type { Confirmation } from '../ports/token-stores.ts';
import { keyConfirmation } from '../values/confirmation.ts';
import { readJwk, type VerificationKey } from '../values/jwk.ts';
import { type Jwt, parseJwt, verifyJws } from '../values/jws.ts';
import { RecentValues } from '../values/recent-values.ts';
import type { SigningAlgorithm } from '../values/signature.ts';
import type { PassingNonce, ProofNonces } from './nonces.ts';
import { isTargetUri } from './target-uri.ts';

/** What proofs may be signed with: `dpop_signing_alg_values_supported` (RFC 9449 §5.1). `Ed25519` is `EdDSA` by its full name. */
export const PROOF_ALGORITHM_NAMES: readonly string[] = ['ES256', 'PS256', 'EdDSA', 'Ed25519'];
const PROOF_ALGORITHMS: readonly SigningAlgorithm[] = ['ES256', 'PS256', 'EdDSA'];

const PROOF_BYTES_MAX = 4096;
const JTI_CHARACTERS_MAX = 256;
/** How far `iat` may be from the clock, in milliseconds. Of a proof with a nonce the nonce is the time (RFC 9449 §4.3 check 11). */
const TOLERANCE = 60_000;
/** A mark outlasts its proof by this: the clock of a store may be ahead of that of a replica. */
const CLOCK_DIFFERENCE = 5000;
/** The keys of so many recent proofs are kept. */
const KEPT_KEYS = 1000;

/** Why a proof is refused for its nonce, or the lack of one: a new nonce mends it (RFC 9449 §8). */
export type NonceFault = 'dpop_nonce_missing' | 'dpop_nonce_unknown' | 'dpop_clock_skewed';

/** Why a proof is refused: a slug for logs, metrics and tests. */
export type ProofFault =
  | NonceFault
  | 'dpop_proof_malformed'
  | 'dpop_proof_repeated'
  | 'dpop_proof_too_large'
  | 'dpop_type_wrong'
  | 'dpop_algorithm_not_allowed'
  | 'dpop_key_not_allowed'
  | 'dpop_signature_invalid'
  | 'dpop_method_mismatch'
  | 'dpop_target_mismatch'
  | 'dpop_id_malformed'
  | 'dpop_time_malformed'
  | 'dpop_token_mismatch'
  | 'dpop_key_mismatch';

/** What a proof has to be about. */
export interface ProofExpectations {
  /** Of the request. */
  readonly method: string;
  /** The addresses of what is requested, as configured; never from a header of the request. */
  readonly urls: readonly string[];
  /** Makes the paths of one meaning one, before addresses are compared. Default: they are compared letter by letter. */
  readonly spelled?: (path: string) => string;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly nonces: ProofNonces;
  /** The access token beside the proof, which it must be for (`ath`). */
  readonly accessToken?: string;
  /** The thumbprint of the key that the proof must be of. */
  readonly thumbprint?: string;
}

/** A proof that passed. */
export interface VerifiedProof {
  /** Of its key: RFC 7638, SHA-256, base64url. */
  readonly thumbprint: string;
  /** What a token for the holder of the key is bound to. */
  readonly confirmation: Confirmation;
  /** The record of its use, for a store of values that can be used once. */
  readonly mark: ProofMark;
  /** Its nonce; undefined where it has none. */
  readonly nonce: PassingNonce | undefined;
}

export interface ProofMark {
  /** Of this proof alone: the key, and the id that its holder gave it. */
  readonly value: string;
  /** Epoch milliseconds: its `iat`, or from when on its nonce passes where `iat` is another time. */
  readonly issuedAt: number;
  /** Epoch milliseconds: from then on the proof does not pass. */
  readonly expiresAt: number;
}

interface ProofKey {
  readonly key: VerificationKey;
  readonly thumbprint: string;
}

/** Whether a new nonce mends the fault (`use_dpop_nonce`). */
export function isNonceFault(fault: ProofFault): fault is NonceFault {
  return fault === 'dpop_nonce_missing' || fault === 'dpop_nonce_unknown' || fault === 'dpop_clock_skewed';
}

/** Verifies proofs; keeps the keys of recent ones, as a client signs many proofs with one key. */
export class ProofVerifier {
  /** By header: it holds nothing but type, algorithm and key, so that those of one key are the same. */
  readonly #keys = new RecentValues<ProofKey>(KEPT_KEYS);

  /** @param header the value of the DPoP header; of several, joined by commas */
  verify(header: string, expected: ProofExpectations): VerifiedProof | ProofFault {
    const proof = readProof(header);
    if (typeof proof === 'string') return proof;
    const holder = this.#keys.get(proof.encodedHeader) ?? holderOf(proof);
    if (typeof holder === 'string') return holder;
    const { jti, iat, htm, htu, ath, nonce } = proof.claims;
    // The checks that cost little come first; none of them reveals anything.
    if (htm !== expected.method) return 'dpop_method_mismatch';
    if (typeof htu !== 'string' || !isTargetUri(htu, expected.urls, expected.spelled)) return 'dpop_target_mismatch';
    if (typeof jti !== 'string' || jti === '' || jti.length > JTI_CHARACTERS_MAX) return 'dpop_id_malformed';
    if (typeof iat !== 'number' || !Number.isFinite(iat)) return 'dpop_time_malformed';
    if (!verifyJws(proof, holder.key, PROOF_ALGORITHMS)) return 'dpop_signature_invalid';
    this.#keys.set(proof.encodedHeader, holder);

    const time = verifyTime({ iat, nonce }, expected);
    if (typeof time === 'string') return time;
    const { thumbprint } = holder;
    if (expected.accessToken !== undefined && !isHashOf(ath, expected.accessToken)) return 'dpop_token_mismatch';
    if (expected.thumbprint !== undefined && expected.thumbprint !== thumbprint) return 'dpop_key_mismatch';
    return {
      thumbprint,
      confirmation: keyConfirmation(thumbprint),
      mark: {
        value: `${thumbprint}.${jti}`,
        issuedAt: time.issuedAt,
        expiresAt: time.expiresAt + CLOCK_DIFFERENCE,
      },
      nonce: time.nonce,
    };
  }
}

function readProof(header: string): Jwt | ProofFault {
  // A JWS has no comma, so this is never one proof (RFC 9449 §4.3 check 1).
  if (header.includes(',')) return 'dpop_proof_repeated';
  const proof = parseJwt(header, PROOF_BYTES_MAX);
  if (typeof proof === 'string') return proof === 'too_large' ? 'dpop_proof_too_large' : 'dpop_proof_malformed';
  if (proof.header.typ !== 'dpop+jwt') return 'dpop_type_wrong';
  const { algorithm } = proof;
  return algorithm !== undefined && PROOF_ALGORITHMS.includes(algorithm) ? proof : 'dpop_algorithm_not_allowed';
}

function holderOf({ header }: Jwt): ProofKey | ProofFault {
  const key = readJwk(header.jwk);
  return typeof key === 'string' ? 'dpop_key_not_allowed' : { key, thumbprint: key.thumbprint };
}

/** From when to when a proof passes, epoch milliseconds, and its nonce. */
interface PassingTime {
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly nonce: PassingNonce | undefined;
}

function verifyTime(
  { iat, nonce: sent }: { readonly iat: number; readonly nonce: unknown },
  { now, nonces }: ProofExpectations,
): PassingTime | ProofFault {
  const issuedAt = Math.floor(1000 * iat);
  const isClockRight = Math.abs(now - issuedAt) <= TOLERANCE;
  if (sent === undefined) {
    if (nonces.rule === 'required') return 'dpop_nonce_missing';
    // A clock that is wrong by more is no fault of the key: by a nonce the proof is valid all the same.
    return isClockRight ? { issuedAt, expiresAt: issuedAt + TOLERANCE + 1, nonce: undefined } : 'dpop_clock_skewed';
  }
  const nonce = typeof sent === 'string' ? nonces.read(sent, now) : undefined;
  if (nonce === undefined) return 'dpop_nonce_unknown';
  // Where a store lost its marks, the next proof of a right clock is valid at once, and another one with a later nonce.
  return { issuedAt: isClockRight ? issuedAt : nonce.passesFrom, expiresAt: nonce.expiresAt, nonce };
}

/** Compares as digests: the time does not reveal how much of a guess was right. */
function isHashOf(ath: unknown, accessToken: string): boolean {
  if (typeof ath !== 'string') return false;
  const expected = hash('sha256', accessToken, 'base64url');
  return timingSafeEqual(hash('sha256', ath, 'buffer'), hash('sha256', expected, 'buffer'));
}
