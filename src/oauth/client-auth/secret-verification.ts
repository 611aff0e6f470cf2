// The verification of a client secret, in the words of a method.

import type { Client } from '../registry/client.ts';
import { secretMatches } from '../registry/client-secret.ts';
import type { Verification } from './method.ts';

const MATCH: Verification = { ok: true };
const MISMATCH: Verification = { ok: false, reason: 'secret_mismatch' };

/** @param presented the readings of the secret as sent, of which one has to match */
export function verifySecret(client: Client | undefined, presented: readonly string[]): Verification {
  return secretMatches(client, presented) ? MATCH : MISMATCH;
}
