// How a replica knows its controller on the admin port: a MAC over the question, by a key that is in a Secret of the release
// namespace and nowhere else. It is no token: nothing that verifies tokens knows the key, and nothing here reads tokens.
// Who asks: controller/replicas/replicas.ts; who answers: http/admin/controller-endpoints.ts.

import { createHmac, timingSafeEqual } from 'node:crypto';

const SCHEME = 'Grantry-Controller';
const PROOF = /^Grantry-Controller ([1-9]\d{0,11})\.([A-Za-z0-9_-]{43})$/;
/** A proof counts for so long after it was made, and so long before it where clocks differ. */
const LIFETIME_SECONDS = 30;
const MINIMUM_KEY_CHARACTERS = 32;

/** What is asked of a replica. */
export interface Question {
  /** Of the endpoint. */
  readonly path: string;
  readonly body: Uint8Array | string;
}

/** Why a question is not the controller's; each is the `reason` of its log line. */
export type ProofFault =
  /** It brings none, or something else, such as a bearer token. */
  | 'proof_missing'
  /** This replica does not know the key (yet): nobody is believed. */
  | 'proof_key_missing'
  /** It was made with another key, or for another question. */
  | 'proof_wrong'
  /** It is older than its lifetime, or the clocks are that far apart. */
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

/** What is wrong with the `Authorization` header of a question; undefined when it is the controller's. */
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

/** Neither a path nor a time holds a zero byte, so no two questions read the same. */
function macOf({ path, body }: Question, key: string, seconds: string): Buffer {
  return createHmac('sha256', key).update(`grantry-controller-v1\0${path}\0${seconds}\0`).update(body).digest();
}
