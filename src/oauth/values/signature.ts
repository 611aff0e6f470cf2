// Makes and verifies JWS signatures. `crypto.sign` with a KeyObject that is reused is 2.7 times as fast as
// the builder of a JWT library. Node's option `dsaEncoding: 'ieee-p1363'` costs a third more than DER to verify and as
// much again to sign, so this file converts between DER and the fixed-width form of ECDSA itself.

import { constants, type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';

/** The JWS algorithms that grantry signs with and accepts. */
export type SigningAlgorithm = 'ES256' | 'ES384' | 'RS256' | 'PS256' | 'EdDSA';

const ALGORITHMS: ReadonlyMap<string, SigningAlgorithm> = new Map([
  ['ES256', 'ES256'],
  ['ES384', 'ES384'],
  ['RS256', 'RS256'],
  ['PS256', 'PS256'],
  ['EdDSA', 'EdDSA'],
  // RFC 9864 §2.2: the same algorithm by its full name.
  ['Ed25519', 'EdDSA'],
]);

/** The names by which a JWS may call them. */
export const SIGNING_ALGORITHM_NAMES: readonly string[] = [...ALGORITHMS.keys()];

/** The algorithm that `alg` of a header or a JWK names; undefined for `none`, symmetric ones and whatever grantry never accepts. */
export function algorithmNamed(alg: string): SigningAlgorithm | undefined {
  return ALGORITHMS.get(alg);
}

interface Scheme {
  readonly sign: (data: Buffer, key: KeyObject) => Buffer;
  readonly verify: (data: Buffer, key: KeyObject, signature: Buffer) => boolean;
}

const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

/** Bytes of one coordinate. */
const P256_WIDTH = 32;
const P384_WIDTH = 48;

const SCHEMES: Record<SigningAlgorithm, Scheme> = {
  ES256: ecdsa('sha256', P256_WIDTH),
  ES384: ecdsa('sha384', P384_WIDTH),
  RS256: {
    sign: (data, key) => sign('sha256', data, key),
    verify: (data, key, signature) => verify('sha256', data, key, signature),
  },
  PS256: {
    sign: (data, key) => sign('sha256', data, { key, ...PSS }),
    verify: (data, key, signature) => verify('sha256', data, { key, ...PSS }, signature),
  },
  EdDSA: {
    sign: (data, key) => sign(null, data, key),
    verify: (data, key, signature) => verify(null, data, key, signature),
  },
};

/** The base64url JWS signature of a signing input (RFC 7515 §5.1, RFC 7518 §3). */
export function signatureOf(signingInput: string, algorithm: SigningAlgorithm, key: KeyObject): string {
  return SCHEMES[algorithm].sign(Buffer.from(signingInput, 'ascii'), key).toString('base64url');
}

const signOnThreadPool = promisify<string, Buffer, Parameters<typeof sign>[2], Buffer>(sign);

/**
 * The signature of {@link signatureOf} without holding up the event loop: those that {@link isMadeAside} says are made on the
 * thread pool. The others are faster than the way there, and are made at once.
 */
export async function signatureAside(
  signingInput: string,
  algorithm: SigningAlgorithm,
  key: KeyObject,
): Promise<string> {
  const data = Buffer.from(signingInput, 'ascii');
  switch (algorithm) {
    case 'RS256':
      return (await signOnThreadPool('sha256', data, key)).toString('base64url');
    case 'PS256':
      return (await signOnThreadPool('sha256', data, { key, ...PSS })).toString('base64url');
    case 'ES384':
      return fixedWidthSignature(await signOnThreadPool('sha384', data, key), P384_WIDTH).toString('base64url');
    case 'ES256':
    case 'EdDSA':
      return signatureOf(signingInput, algorithm, key);
  }
}

/** Whether signatures of an algorithm are made on the thread pool: one takes as long as ten or more of ES256. */
export function isMadeAside(algorithm: SigningAlgorithm): boolean {
  return algorithm === 'RS256' || algorithm === 'PS256' || algorithm === 'ES384';
}

export interface SignatureCheck {
  /** ASCII. */
  readonly signingInput: string;
  /** As decoded from the JWS; of any content and length. */
  readonly signature: Buffer;
  readonly algorithm: SigningAlgorithm;
  /** A public key of the type and curve of the algorithm; the caller has checked that. */
  readonly key: KeyObject;
}

/** Whether a signature is that of the key over the signing input (RFC 7515 §5.2, RFC 7518 §3). Never throws. */
export function isSignatureOf({ signingInput, signature, algorithm, key }: SignatureCheck): boolean {
  try {
    return SCHEMES[algorithm].verify(Buffer.from(signingInput, 'ascii'), key, signature);
  } catch {
    return false;
  }
}

/** r = s = 1: well-formed, so that verifying it costs as much as verifying any other signature. */
const UNIT_SIGNATURE = Buffer.from('3006020101020101', 'hex');

/** @param width bytes of one coordinate */
function ecdsa(digest: string, width: number): Scheme {
  return {
    sign: (data, key) => fixedWidthSignature(sign(digest, data, key), width),
    verify: (data, key, signature) => {
      const der = derSignature(signature, width);
      // A malformed signature takes the same time as a wrong one: how far a check comes is not to be measured.
      return verify(digest, data, key, der ?? UNIT_SIGNATURE) && der !== undefined;
    },
  };
}

/**
 * The fixed-width r‖s form of a DER ECDSA signature (RFC 7518 §3.4).
 * @param width bytes of one coordinate
 */
function fixedWidthSignature(der: Buffer, width: number): Buffer {
  const signature = Buffer.alloc(2 * width);
  // SEQUENCE { INTEGER r, INTEGER s }: below 128 bytes of content every length is one byte, which holds for both
  // curves.
  let offset = 2;
  for (const end of [width, 2 * width]) {
    const length = der[offset + 1] as number;
    const start = offset + 2;
    // A positive INTEGER may have one leading zero byte; an INTEGER shorter than the width is padded on the left.
    const significant =
      length > width ? der.subarray(start + length - width, start + length) : der.subarray(start, start + length);
    significant.copy(signature, end - significant.length);
    offset = start + length;
  }
  return signature;
}

/** The DER form of a fixed-width signature; undefined when its length is wrong, or r or s is zero. */
function derSignature(signature: Buffer, width: number): Buffer | undefined {
  if (signature.length !== 2 * width) return undefined;
  const r = derInteger(signature.subarray(0, width));
  const s = derInteger(signature.subarray(width));
  return r && s && Buffer.concat([Buffer.of(0x30, r.length + s.length), r, s]);
}

/** A positive INTEGER in its shortest form; undefined for zero. */
function derInteger(bytes: Buffer): Buffer | undefined {
  const first = bytes.findIndex((byte) => byte !== 0);
  if (first < 0) return undefined;
  const significant = bytes.subarray(first);
  const sign = (significant[0] as number) < 0x80 ? [] : [0];
  return Buffer.concat([Buffer.of(0x02, sign.length + significant.length, ...sign), significant]);
}
