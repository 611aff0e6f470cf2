// Selects the keys of a key set that a JWS may be signed with, and tries them: for the keys of a client, fetched key sets
// and the issuer of a cluster alike. Whatever the outcome, at least one signature is verified, so that the time of a
// refusal does not reveal whether there are keys.

import { readJwk, type VerificationKey } from './jwk.ts';
import { type Jws, verifyJws } from './jws.ts';
import { isSignatureOf, type SigningAlgorithm } from './signature.ts';

/** The keys of one party and the algorithms that it may sign by. */
export interface TrustedKeys {
  readonly keys: readonly VerificationKey[];
  readonly algorithms: readonly SigningAlgorithm[];
}

/** Why no key verifies a JWS: a slug for logs and tests. `key_unknown` is the one that another key set may mend. */
export type SignatureFault = 'algorithm_not_allowed' | 'key_unknown' | 'signature_invalid';

/** How many keys are tried for a JWS that names none: the old one and the new one of a rotation. */
const KEYS_TRIED_WITHOUT_KID = 2;
/** How many keys of one `kid` are tried: a check may take half a millisecond, and a tenant chooses the keys. */
const KEYS_TRIED_OF_ONE_KID = 4;

/**
 * The keys that a JWS may be signed with, in the order of the set: they fit its algorithm and have its `kid`. Of one `kid`
 * the first four are returned, without `kid` the first two.
 */
export function candidateKeys(
  { algorithm, header: { kid } }: Pick<Jws, 'algorithm' | 'header'>,
  keys: readonly VerificationKey[],
): readonly VerificationKey[] {
  if (algorithm === undefined) return [];
  const fitting = keys.filter((key) => key.algorithms.includes(algorithm));
  if (kid === undefined) return fitting.slice(0, KEYS_TRIED_WITHOUT_KID);
  return fitting.filter((key) => key.kid === kid).slice(0, KEYS_TRIED_OF_ONE_KID);
}

/** The key of the set that the JWS is signed with, or why there is none. Never throws. */
export function verifyWithKeys(jws: Jws, { keys, algorithms }: TrustedKeys): VerificationKey | SignatureFault {
  const isAllowed = jws.algorithm !== undefined && algorithms.includes(jws.algorithm);
  const candidates = isAllowed ? candidateKeys(jws, keys) : [];
  const signer = candidates.find((key) => verifyJws(jws, key, algorithms));
  if (signer !== undefined) return signer;
  if (candidates.length > 0) return 'signature_invalid';
  verifyInVain(jws);
  return isAllowed ? 'key_unknown' : 'algorithm_not_allowed';
}

/** A well-formed key whose private key is not kept, and a well-formed signature that is not of it. */
const FIXED_KEY = readJwk({
  kty: 'EC',
  crv: 'P-256',
  x: 'r0I_ppDO7GUDW3Q9YXx-Dtka1_OPu9-ph22AlpgTJ4c',
  y: 'Ue8srfbMsuYkl6og4xPv81QO61-dU1DmkyJB5BCqFx0',
}) as VerificationKey;
const FIXED_SIGNATURE = Buffer.alloc(64, 1);

/**
 * Verifies an ES256 signature of a fixed key: the work of a check, for a JWS that no key can verify, such as that of an
 * unknown client.
 */
export function verifyInVain({ signingInput }: Pick<Jws, 'signingInput'>): void {
  const key = FIXED_KEY.keyObject;
  if (key !== undefined) isSignatureOf({ signingInput, signature: FIXED_SIGNATURE, algorithm: 'ES256', key });
}
