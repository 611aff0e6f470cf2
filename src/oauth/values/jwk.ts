// Public keys of other parties (RFC 7517, RFC 7518 §6): validated by shape, cheap enough for every key of 100 000 clients,
// and the import at first use. Wherever a key comes from, it is held to the same limits.

import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { decodedBase64url } from './base64url.ts';
import { algorithmNamed, type SigningAlgorithm } from './signature.ts';

/** The members of a public key, and no others. */
export type PublicJwk =
  | { readonly kty: 'EC'; readonly crv: 'P-256' | 'P-384'; readonly x: string; readonly y: string }
  | { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
  | { readonly kty: 'RSA'; readonly n: string; readonly e: string };

/** Why a JWK is not accepted: a slug for messages, logs and tests. */
export type JwkFault =
  /** Not a JSON object with the members of its kty, each in the one spelling of RFC 7518 §6. */
  | 'malformed'
  /** It has a member of a private or secret key, which is no secret any more. */
  | 'private_member'
  /** Another kty or crv than those of {@link PublicJwk}; `oct` among them. */
  | 'unsupported_key_type'
  /** Its `alg` is not one of grantry's, or not one of its key type. */
  | 'unsupported_algorithm'
  /** `use` is not `sig`, or `key_ops` is without `verify`. */
  | 'wrong_use'
  /** The modulus is not of 2048–4096 bits. */
  | 'rsa_modulus_size'
  /** The exponent is not an odd number from 3 to 2³² − 1: a long one makes each verification expensive. */
  | 'rsa_exponent';

/** RFC 7518 §6.2.2, §6.3.2, §6.4.1; RFC 8037 §2. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
/** Keys of one `kid` are all tried: of sets that others publish this is also the limit of the work for one JWS. */
const JWK_SET_KEYS_MAX = 16;
const RSA_BITS = { min: 2048, max: 4096 };
const RSA_EXPONENT_BYTES_MAX = 4;

/** A public key that fits at least one algorithm by its shape. */
export class VerificationKey {
  readonly kid: string | undefined;
  /** Those that kty, crv and `alg` fit; an RSA key without `alg` fits PS256 and RS256. */
  readonly algorithms: readonly SigningAlgorithm[];
  readonly jwk: PublicJwk;
  #imported: KeyObject | 'unusable' | undefined;

  constructor({ kid, algorithms, jwk }: Pick<VerificationKey, 'kid' | 'algorithms' | 'jwk'>) {
    this.kid = kid;
    this.algorithms = algorithms;
    this.jwk = jwk;
  }

  /** The key, imported at the first call; undefined when it is unusable: a point that is not on its curve. */
  get keyObject(): KeyObject | undefined {
    this.#imported ??= imported(this.jwk) ?? 'unusable';
    return this.#imported === 'unusable' ? undefined : this.#imported;
  }

  /** RFC 7638 thumbprint: SHA-256, base64url. Computed by each call. */
  get thumbprint(): string {
    return thumbprintOf(this.jwk);
  }
}

/** Validates a JWK by its shape; a valid one may still be unusable at its import. */
export function readJwk(value: unknown): VerificationKey | JwkFault {
  if (!isObject(value)) return 'malformed';
  if (PRIVATE_MEMBERS.some((member) => Object.hasOwn(value, member))) return 'private_member';
  const { kid, alg, use, key_ops: operations } = value;
  if (!isOptionalText(kid) || !isOptionalText(alg) || !isOptionalText(use)) return 'malformed';
  if (operations !== undefined && !Array.isArray(operations)) return 'malformed';
  const jwk = publicJwk(value);
  if (typeof jwk === 'string') return jwk;
  const algorithms = algorithmsOf(jwk, alg);
  if (algorithms === undefined) return 'unsupported_algorithm';
  if ((use !== undefined && use !== 'sig') || operations?.includes('verify') === false) return 'wrong_use';
  return new VerificationKey({ kid, algorithms, jwk });
}

/** A JWK Set, validated key by key. */
export interface JwkSet {
  readonly keys: readonly VerificationKey[];
  /** The keys that are not accepted, by their index in the set. RFC 7517 §5: a set may hold keys for other purposes. */
  readonly faults: readonly { readonly index: number; readonly fault: JwkFault }[];
}

/** Why a JWK Set is not accepted as a whole: a slug for messages, logs and tests. */
export type JwkSetFault = 'malformed' | 'too_many_keys';

/** Validates a JWK Set (RFC 7517 §5): an object with an array `keys` of at most so many members, 16 by default. */
export function readJwkSet(value: unknown, keysMax = JWK_SET_KEYS_MAX): JwkSet | JwkSetFault {
  const members = isObject(value) ? value.keys : undefined;
  if (!Array.isArray(members)) return 'malformed';
  if (members.length > keysMax) return 'too_many_keys';
  const results = members.map((member: unknown, index) => ({ index, key: readJwk(member) }));
  return {
    keys: results.flatMap(({ key }) => (typeof key === 'string' ? [] : key)),
    faults: results.flatMap(({ index, key }) => (typeof key === 'string' ? { index, fault: key } : [])),
  };
}

/** The RFC 7638 thumbprint of a public key: SHA-256, base64url. */
export function thumbprintOf(jwk: PublicJwk): string {
  return hash('sha256', JSON.stringify(requiredMembers(jwk)), 'base64url');
}

/** RFC 7638 §3.2, RFC 8037 §2: the members that make the key, in lexicographic order. */
function requiredMembers(jwk: PublicJwk): object {
  switch (jwk.kty) {
    case 'EC':
      return { crv: jwk.crv, kty: jwk.kty, x: jwk.x, y: jwk.y };
    case 'OKP':
      return { crv: jwk.crv, kty: jwk.kty, x: jwk.x };
    case 'RSA':
      return { e: jwk.e, kty: jwk.kty, n: jwk.n };
  }
}

function publicJwk({ kty, crv, x, y, n, e }: Readonly<Record<string, unknown>>): PublicJwk | JwkFault {
  switch (kty) {
    case 'EC': {
      if (crv !== 'P-256' && crv !== 'P-384') return 'unsupported_key_type';
      const width = crv === 'P-256' ? 32 : 48;
      return isBytes(x, width) && isBytes(y, width) ? { kty, crv, x, y } : 'malformed';
    }
    case 'OKP':
      if (crv !== 'Ed25519') return 'unsupported_key_type';
      return isBytes(x, 32) ? { kty, crv, x } : 'malformed';
    case 'RSA':
      return rsaJwk(n, e);
    default:
      return typeof kty === 'string' ? 'unsupported_key_type' : 'malformed';
  }
}

function rsaJwk(n: unknown, e: unknown): PublicJwk | JwkFault {
  if (typeof n !== 'string' || typeof e !== 'string') return 'malformed';
  const [modulus, exponent] = [decodedInteger(n), decodedInteger(e)];
  if (modulus === undefined || exponent === undefined) return 'malformed';
  const bits = modulus.length * 8 - Math.clz32(modulus[0] as number) + 24;
  if (bits < RSA_BITS.min || bits > RSA_BITS.max) return 'rsa_modulus_size';
  const isOdd = ((exponent.at(-1) as number) & 1) === 1;
  const isOne = exponent.length === 1 && exponent[0] === 1;
  if (exponent.length > RSA_EXPONENT_BYTES_MAX || !isOdd || isOne) return 'rsa_exponent';
  return { kty: 'RSA', n, e };
}

/** The algorithms of a key, most preferred first; undefined when its `alg` names none of them. */
function algorithmsOf(jwk: PublicJwk, alg: string | undefined): readonly SigningAlgorithm[] | undefined {
  const fitting = FITTING_ALGORITHMS[jwk.kty === 'RSA' ? 'RSA' : jwk.crv];
  if (alg === undefined) return fitting;
  const named = algorithmNamed(alg);
  return named !== undefined && fitting.includes(named) ? [named] : undefined;
}

const FITTING_ALGORITHMS: Record<'P-256' | 'P-384' | 'Ed25519' | 'RSA', readonly SigningAlgorithm[]> = {
  'P-256': ['ES256'],
  'P-384': ['ES384'],
  Ed25519: ['EdDSA'],
  RSA: ['PS256', 'RS256'],
};

function imported(jwk: PublicJwk): KeyObject | undefined {
  try {
    return createPublicKey({ key: { ...jwk }, format: 'jwk' });
  } catch {
    return undefined;
  }
}

/** A Base64urlUInt (RFC 7518 §2) other than zero: no leading zero byte. */
function decodedInteger(text: string): Buffer | undefined {
  const bytes = decodedBase64url(text);
  return bytes?.length && bytes[0] !== 0 ? bytes : undefined;
}

function isBytes(value: unknown, count: number): value is string {
  return typeof value === 'string' && decodedBase64url(value)?.length === count;
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
