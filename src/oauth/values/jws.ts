// Reads compact JWS and JWTs of other parties, strictly, and verifies them with one key. Synchronous: a limiter counts a
// failure before the next request of a batch is verified. Headers that name or carry keys (jku, x5u, x5c, jwk) have no say.

import { isUtf8 } from 'node:buffer';
import { decodedBase64url } from './base64url.ts';
import type { VerificationKey } from './jwk.ts';
import { algorithmNamed, isSignatureOf, type SigningAlgorithm } from './signature.ts';

const JWS_BYTES_MAX = 8192;

/** A JSON object. A member of a hostile name, such as `__proto__`, is an own member like any other. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The JOSE header (RFC 7515 §4): `alg` and `kid` are of the right type, all else is as sent. */
export type JwsHeader = JsonObject & { readonly alg: string; readonly kid?: string };

/** A JWS as it was sent; nothing of it is verified. */
export interface Jws {
  readonly header: JwsHeader;
  /** The header as sent, in base64url. */
  readonly encodedHeader: string;
  /** The algorithm that `alg` names; undefined for `none`, for symmetric ones and all others that grantry never accepts. */
  readonly algorithm: SigningAlgorithm | undefined;
  readonly payload: Buffer;
  /** RFC 7515 §5.1. */
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** A JWS with a claims set (RFC 7519 §7.2); nothing of it is verified. */
export interface Jwt extends Jws {
  readonly claims: JsonObject;
}

/** Why a text is no JWS that grantry reads: a slug for logs and tests. */
export type JwsFault = 'too_large' | 'malformed' | 'critical_header';

/**
 * Parses a compact JWS (RFC 7515 §7.1): three parts in strict base64url, the header a JSON object, no extension that must
 * be understood (`crit`, `b64`).
 * @param maxBytes of the whole text; 8 KiB unless given
 */
export function parseJws(compact: string, maxBytes: number = JWS_BYTES_MAX): Jws | JwsFault {
  if (compact.length > maxBytes) return 'too_large';
  const [encodedHeader = '', encodedPayload = '', encodedSignature = '', ...more] = compact.split('.', 4);
  const payload = decodedBase64url(encodedPayload);
  const signature = decodedBase64url(encodedSignature);
  if (more.length > 0 || payload === undefined || !signature?.length) return 'malformed';
  const header = jsonObject(decodedBase64url(encodedHeader));
  if (header === undefined || !isJwsHeader(header)) return 'malformed';
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) return 'critical_header';
  const signingInput = `${encodedHeader}.${encodedPayload}`;
  return { header, encodedHeader, algorithm: algorithmNamed(header.alg), payload, signingInput, signature };
}

/** {@link parseJws} for a JWT: the payload, too, is a JSON object. */
export function parseJwt(compact: string, maxBytes?: number): Jwt | JwsFault {
  const jws = parseJws(compact, maxBytes);
  if (typeof jws === 'string') return jws;
  const claims = jsonObject(jws.payload);
  return claims === undefined ? 'malformed' : { ...jws, claims };
}

/**
 * Whether the signature is that of this key, by an algorithm which the caller allows and the key fits (RFC 8725 §3.1).
 * False also where the key turns out to be unusable. Never throws.
 */
export function verifyJws(jws: Jws, key: VerificationKey, allowed: readonly SigningAlgorithm[]): boolean {
  const { algorithm, signingInput, signature } = jws;
  if (algorithm === undefined || !allowed.includes(algorithm) || !key.algorithms.includes(algorithm)) return false;
  const { keyObject } = key;
  return keyObject !== undefined && isSignatureOf({ signingInput, signature, algorithm, key: keyObject });
}

function isJwsHeader(header: JsonObject): header is JwsHeader {
  return typeof header.alg === 'string' && (header.kid === undefined || typeof header.kid === 'string');
}

/** The JSON object that bytes in UTF-8 hold; undefined for anything else. */
function jsonObject(bytes: Buffer | undefined): JsonObject | undefined {
  if (bytes === undefined || !isUtf8(bytes)) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
