// Keys and tokens of every algorithm, made by jose and node:crypto, and jose's opinion of a token: the oracle.

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { CompactSign, compactVerify, importJWK, type JWK } from 'jose';
import { readJwk, type VerificationKey } from '../../../src/oauth/values/jwk.ts';
import { parseJws, verifyJws } from '../../../src/oauth/values/jws.ts';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';

export const ALGORITHMS: readonly SigningAlgorithm[] = ['ES256', 'ES384', 'PS256', 'RS256', 'EdDSA'];

export interface TestKey {
  readonly algorithm: SigningAlgorithm;
  readonly privateKey: KeyObject;
  /** Public, with `alg`. */
  readonly jwk: JWK;
  readonly key: VerificationKey;
}

/** A new key; an RSA one of 2048 bits. */
export function aKey(algorithm: SigningAlgorithm): TestKey {
  const { privateKey, publicKey } = KEY_PAIRS[algorithm]();
  const jwk = { ...publicKey.export({ format: 'jwk' }), alg: algorithm } as JWK;
  return { algorithm, privateKey, jwk, key: readKey(jwk) };
}

const KEY_PAIRS = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

/** The key of a JWK that has to be accepted. */
export function readKey(jwk: object): VerificationKey {
  const key = readJwk(jwk);
  if (typeof key === 'string') throw new Error(key);
  return key;
}

export function sign(
  { algorithm, privateKey }: Pick<TestKey, 'algorithm' | 'privateKey'>,
  payload: string | object = { sub: 'shop.reports' },
  header: object = {},
): Promise<string> {
  const bytes = Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload));
  return new CompactSign(bytes).setProtectedHeader({ alg: algorithm, ...header }).sign(privateKey);
}

/** A JWS of any header and signature, in strict base64url. */
export function compact(header: unknown, payload: unknown, signature: Uint8Array | ((input: string) => Uint8Array)) {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const input = `${encode(header)}.${encode(payload)}`;
  const bytes = typeof signature === 'function' ? signature(input) : signature;
  return `${input}.${Buffer.from(bytes).toString('base64url')}`;
}

/** Whether grantry accepts a token by this key, whichever of its algorithms is used. */
export function grantryAccepts(token: string, key: VerificationKey): boolean {
  const jws = parseJws(token);
  return typeof jws !== 'string' && verifyJws(jws, key, ALGORITHMS);
}

/** Whether jose accepts a token by this key. */
export async function joseAccepts(token: string, jwk: JWK): Promise<boolean> {
  try {
    await compactVerify(token, await importJWK(jwk, jwk.alg), { algorithms: [...ALGORITHMS, 'Ed25519'] });
    return true;
  } catch {
    return false;
  }
}
