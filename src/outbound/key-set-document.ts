// Reads what a host answered as a key set: its keys, and how long they may be used without asking again.

import { type JwkSetFault, readJwkSet, type VerificationKey } from '../oauth/values/jwk.ts';
import type { FetchedDocument } from './guarded-fetch.ts';

const MINUTE = 60_000;
const FRESH_LEAST = 5 * MINUTE;
const FRESH_MOST = 60 * MINUTE;

/** Why a document is no key set: a slug. */
export type KeySetFault = 'not_a_key_set' | Exclude<JwkSetFault, 'malformed'>;

export interface KeySetDocument {
  /** The keys that can verify a signature; the others are left out (RFC 7517 §5). */
  readonly keys: readonly VerificationKey[];
  /** How long they are fresh, in milliseconds: 5 minutes to 1 hour. */
  readonly freshFor: number;
}

/** The key set in a document, or why there is none. */
export function readKeySet({ content, cacheControl }: FetchedDocument): KeySetDocument | KeySetFault {
  const set = readJwkSet(content);
  if (typeof set === 'string') return set === 'malformed' ? 'not_a_key_set' : set;
  return { keys: set.keys, freshFor: Math.min(Math.max(maxAge(cacheControl) ?? 0, FRESH_LEAST), FRESH_MOST) };
}

/** The `max-age` of a Cache-Control header (RFC 9111 §5.2.2.1) in milliseconds; undefined without a readable one. */
function maxAge(cacheControl = ''): number | undefined {
  const seconds = /(?:^|,)\s*max-age="?(\d+)"?\s*(?:,|$)/i.exec(cacheControl)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
