// Authenticates the controller on the admin port of a replica: a MAC over the request, with a key that only a Secret of
// the release namespace holds. The proof is not a token: token verification does not use this key, and no token is
// accepted here. Caller: controller/replicas/replicas.ts; endpoints: http/admin/controller-endpoints.ts.

import { createHmac, timingSafeEqual } from 'node:crypto';

const SCHEME = 'Grantry-Controller';
const PROOF = /^Grantry-Controller ([1-9]\d{0,11})\.([A-Za-z0-9_-]{43})$/;
/** The longest difference between the time of a proof and the clock of the replica, in either direction. */
const LIFETIME_SECONDS = 30;
const MINIMUM_KEY_CHARACTERS = 32;

/** A request of the controller to a replica. */
export interface Question {
  /** The path of the endpoint. */
  readonly path: string;
  readonly body: Uint8Array | string;
}

/** Why a replica refuses a request as not the controller's; each is the `reason` of its log line. */
export type ProofFault =
  /** The header is missing or has another form, such as a bearer token. */
  | 'proof_missing'
  /** This replica does not have the key (yet): it refuses every request. */
  | 'proof_key_missing'
  /** The proof was made with another key, or for another request. */
  | 'proof_wrong'
  /** The proof is older than its lifetime, or the clocks differ by more. */
  | 'proof_expired';

/**
 * The value of the `Authorization` header.
 * @param key the text of the Secret
 * @param now epoch milliseconds
 * @returns undefined where the key is missing or too short to be one
 */
export function controllerProof(question: Question, key: string | undefined, now: number): string | undefined {
  const secret = usableKey(key);
  if (secret === undefined) return undefined;
  const seconds = String(Math.floor(now / 1000));
  return `${SCHEME} ${seconds}.${macOf(question, secret, seconds).toString('base64url')}`;
}

/** The fault of the `Authorization` header of a request; undefined when the request is the controller's. */
export function proofFault(
  question: Question,
  authorization: string | undefined,
  key: string | undefined,
  now: number,
): ProofFault | undefined {
  const [, seconds, mac] = PROOF.exec(authorization ?? '') ?? [];
  if (seconds === undefined || mac === undefined) return 'proof_missing';
  const secret = usableKey(key);
  if (secret === undefined) return 'proof_key_missing';
  if (!timingSafeEqual(macOf(question, secret, seconds), Buffer.from(mac, 'base64url'))) return 'proof_wrong';
  return Math.abs(now / 1000 - Number(seconds)) > LIFETIME_SECONDS ? 'proof_expired' : undefined;
}

function usableKey(key: string | undefined): string | undefined {
  const trimmed = key?.trim();
  return trimmed !== undefined && trimmed.length >= MINIMUM_KEY_CHARACTERS ? trimmed : undefined;
}

/** Neither a path nor a time contains a zero byte, so no two requests have the same input. */
function macOf({ path, body }: Question, key: string, seconds: string): Buffer {
  return createHmac('sha256', key).update(`grantry-controller-v1\0${path}\0${seconds}\0`).update(body).digest();
}
