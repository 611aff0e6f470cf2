// Signing keys: one immutable ring per registry snapshot, with the lifecycle publish → sign → retire.
// `admission/` and the controller decide on the state of a key.

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  type KeyPairKeyObjectResult,
} from 'node:crypto';
import { promisify } from 'node:util';
import type { JWK } from 'jose';
import { type PublicJwk, thumbprintOf } from '../values/jwk.ts';
import type { SigningAlgorithm } from '../values/signature.ts';

/**
 * `Published`: in the JWKS, not signing yet. `Active`: signs. `Retiring`: verifies until its last token has expired.
 */
export type SigningKeyState = 'Published' | 'Active' | 'Retiring';

export interface SigningKey {
  /** RFC 7638 thumbprint. */
  readonly kid: string;
  readonly algorithm: SigningAlgorithm;
  readonly state: SigningKeyState;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** Public members only, with kid, alg and use. */
  readonly publicJwk: JWK;
}

/** The key type and curve of each algorithm: input of `generateKeyPair`, and the check of an imported key. */
const KEY_SHAPES: Record<SigningAlgorithm, { readonly type: string; readonly curve?: string }> = {
  ES256: { type: 'ec', curve: 'prime256v1' },
  ES384: { type: 'ec', curve: 'secp384r1' },
  RS256: { type: 'rsa' },
  PS256: { type: 'rsa' },
  EdDSA: { type: 'ed25519' },
};

const MINIMUM_RSA_BITS = 2048;

/**
 * A new private key in PKCS #8 PEM.
 * @param rsaModulusBits used by RS256 and PS256 only
 */
export async function generateSigningKeyPem(algorithm: SigningAlgorithm, rsaModulusBits = 3072): Promise<string> {
  const generate = promisify(generateKeyPair) as unknown as (
    type: string,
    options: object,
  ) => Promise<KeyPairKeyObjectResult>;
  const shape = KEY_SHAPES[algorithm];
  const { privateKey } = await generate(shape.type, { namedCurve: shape.curve, modulusLength: rsaModulusBits });
  return privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
}

/**
 * Reads a private key and names it by its RFC 7638 thumbprint.
 * @throws TypeError when the PEM is not a private key that fits the algorithm (RSA: at least 2048 bits)
 */
export async function importSigningKey(
  pem: string,
  algorithm: SigningAlgorithm,
  state: SigningKeyState,
): Promise<SigningKey> {
  const privateKey = createPrivateKey(pem);
  const shape = KEY_SHAPES[algorithm];
  const details = privateKey.asymmetricKeyDetails;
  if (privateKey.asymmetricKeyType !== shape.type || (shape.curve && details?.namedCurve !== shape.curve)) {
    throw new TypeError(`the key does not fit ${algorithm}`);
  }
  if (shape.type === 'rsa' && (details?.modulusLength ?? 0) < MINIMUM_RSA_BITS) {
    throw new TypeError(`an RSA key needs at least ${MINIMUM_RSA_BITS} bits`);
  }
  const publicKey = createPublicKey(privateKey);
  const jwk = publicKey.export({ format: 'jwk' }) as PublicJwk;
  const kid = thumbprintOf(jwk);
  return { kid, algorithm, state, privateKey, publicKey, publicJwk: { ...jwk, kid, alg: algorithm, use: 'sig' } };
}

/** The keys of one snapshot. A kid names one key with one algorithm: verifiers find the algorithm by it (RFC 7517 §4.5). */
export class KeyRing {
  /** The key that signs access tokens: the first Active one; undefined means no token can be made. */
  readonly signing: SigningKey | undefined;
  /** The answer of `/.well-known/jwks.json` (RFC 7517 §5). */
  readonly jwks: { readonly keys: readonly JWK[] };
  readonly #byKid: ReadonlyMap<string, SigningKey>;
  readonly #active: readonly SigningKey[];

  /** @param keys in order of preference: of several Active keys the first signs; of one kid it is in the ring alone */
  constructor(keys: readonly SigningKey[]) {
    const byKid = new Map<string, SigningKey>();
    for (const key of keys) {
      const known = byKid.get(key.kid);
      if (known === undefined || (known.state !== 'Active' && key.state === 'Active')) byKid.set(key.kid, key);
    }
    this.#byKid = byKid;
    this.#active = keys.filter((key) => key.state === 'Active' && byKid.get(key.kid) === key);
    this.signing = this.#active[0];
    this.jwks = { keys: [...this.#byKid.values()].map((key) => key.publicJwk) };
  }

  /** The first Active key of one of these algorithms; undefined where none of them signs. */
  signingFor(algorithms: readonly SigningAlgorithm[]): SigningKey | undefined {
    return this.#active.find(({ algorithm }) => algorithms.includes(algorithm));
  }

  /** What the Active keys sign with, each once. */
  get signingAlgorithms(): readonly SigningAlgorithm[] {
    return [...new Set(this.#active.map(({ algorithm }) => algorithm))];
  }

  find(kid: string): SigningKey | undefined {
    return this.#byKid.get(kid);
  }

  get algorithms(): readonly SigningAlgorithm[] {
    return [...new Set([...this.#byKid.values()].map((key) => key.algorithm))];
  }
}
