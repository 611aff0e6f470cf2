// A holder of a DPoP key, as a client is one: makes proofs, right ones and wrong ones, with Node's own signatures.

import { constants, createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';

export type HolderAlgorithm = 'ES256' | 'ES384' | 'RS256' | 'PS256' | 'EdDSA' | 'Ed25519';

/** What of a proof differs from a right one; an undefined member is left out of it. */
export interface ProofChanges {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
}

export class DpopHolder {
  readonly algorithm: HolderAlgorithm;
  readonly privateKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;

  constructor(algorithm: HolderAlgorithm = 'ES256', { modulusLength = 2048, publicExponent = 65_537 } = {}) {
    this.algorithm = algorithm;
    const { privateKey, publicKey } = keyPair(algorithm, { modulusLength, publicExponent });
    this.privateKey = privateKey;
    this.jwk = publicKey.export({ format: 'jwk' });
  }

  /** RFC 7638. */
  get thumbprint(): string {
    const { crv, e, kty, n, x, y } = this.jwk;
    // An undefined member is left out, and these are in lexicographic order.
    return createHash('sha256').update(JSON.stringify({ crv, e, kty, n, x, y })).digest('base64url');
  }

  /** A proof for a POST to this address at this time. @param now epoch milliseconds */
  proof(htu: string, now: number, { header, claims }: ProofChanges = {}): string {
    const wholeHeader = { typ: 'dpop+jwt', alg: this.algorithm, jwk: this.jwk, ...header };
    const wholeClaims = { jti: randomUUID(), htm: 'POST', htu, iat: Math.floor(now / 1000), ...claims };
    const input = `${base64url(wholeHeader)}.${base64url(wholeClaims)}`;
    return `${input}.${this.#signature(input)}`;
  }

  #signature(input: string): string {
    const data = Buffer.from(input);
    const key = this.privateKey;
    switch (this.algorithm) {
      case 'ES256':
      case 'ES384':
        return sign(this.algorithm === 'ES256' ? 'sha256' : 'sha384', data, {
          key,
          dsaEncoding: 'ieee-p1363',
        }).toString('base64url');
      case 'RS256':
        return sign('sha256', data, key).toString('base64url');
      case 'PS256':
        return sign('sha256', data, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }).toString(
          'base64url',
        );
      case 'EdDSA':
      case 'Ed25519':
        return sign(null, data, key).toString('base64url');
    }
  }
}

function keyPair(algorithm: HolderAlgorithm, rsa: { readonly modulusLength: number; readonly publicExponent: number }) {
  switch (algorithm) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'ES384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' });
    case 'RS256':
    case 'PS256':
      return generateKeyPairSync('rsa', rsa);
    case 'EdDSA':
    case 'Ed25519':
      return generateKeyPairSync('ed25519');
  }
}

function base64url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
