// Tokens that look like one of this server, each wrong in one way (RFC 8725 §2): what a party makes that has a good token and the
// public keys, or a signing key of its own.

import { createHmac, type KeyObject } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, type JWTPayload } from 'jose';
import type { SigningKey } from '../../../../src/oauth/registry/keys.ts';
import { compact, sign } from '../../../oauth/values/signed-tokens.ts';

/** What is wrong, and the token. */
export type Forgery = readonly [fault: string, token: string];

export interface ForgeryMaterial {
  /** The key by which the token is good. */
  readonly key: SigningKey;
  /** Another key of this server. */
  readonly otherKey: SigningKey;
  /** A key of its own. */
  readonly ownKey: SigningKey;
}

/** The JWT, forged in every way. */
export async function forgeriesOf(token: string, material: ForgeryMaterial): Promise<readonly Forgery[]> {
  return [...unsigned(token), ...symmetric(token, material), ...(await resigned(token, material)), ...changed(token)];
}

function partsOf(token: string): { readonly header: object; readonly payload: JWTPayload } {
  return { header: decodeProtectedHeader(token), payload: decodeJwt(token) };
}

function unsigned(token: string): readonly Forgery[] {
  const { header, payload } = partsOf(token);
  const signature = Buffer.from(token.split('.')[2] ?? '', 'base64url');
  const named = (alg: unknown, bytes: Uint8Array) => compact({ ...header, alg }, payload, bytes);
  return [
    ['none and no signature', named('none', Buffer.alloc(0))],
    ['none beside the signature', named('none', signature)],
    ['none in upper case', named('NONE', Buffer.alloc(0))],
    ['no algorithm', named(undefined, signature)],
    ['an algorithm that is a list', named(['none'], signature)],
    ['no signature', token.slice(0, token.lastIndexOf('.') + 1)],
    ['no third part', token.slice(0, token.lastIndexOf('.'))],
  ];
}

/** A public key in each text that a library may take for a secret. */
function textsOf(key: KeyObject): Readonly<Record<string, string | Buffer>> {
  const pem = key.export({ type: 'spki', format: 'pem' }) as string;
  return {
    'in PEM': pem,
    'in PEM without its line end': pem.trimEnd(),
    'in DER': key.export({ type: 'spki', format: 'der' }),
    'as JWK': JSON.stringify(key.export({ format: 'jwk' })),
  };
}

function symmetric(token: string, { key, otherKey }: ForgeryMaterial): readonly Forgery[] {
  const { header, payload } = partsOf(token);
  const hmac = (secret: string | Buffer) => (input: string) => createHmac('sha256', secret).update(input).digest();
  const texts = Object.entries(textsOf(key.publicKey));
  return [
    ...texts.map(
      ([form, text]): Forgery => [
        `HS256 by the public key ${form}`,
        compact({ ...header, alg: 'HS256' }, payload, hmac(text)),
      ],
    ),
    ['HS256 by an empty secret', compact({ ...header, alg: 'HS256' }, payload, hmac(''))],
    [
      'HS256 by another public key, under its kid',
      compact(
        { ...header, alg: 'HS256', kid: otherKey.kid },
        payload,
        hmac(textsOf(otherKey.publicKey)['in PEM'] ?? ''),
      ),
    ],
  ];
}

async function resigned(token: string, { key, otherKey, ownKey }: ForgeryMaterial): Promise<readonly Forgery[]> {
  const { header, payload } = partsOf(token);
  const by = (signer: SigningKey, different: object = {}, claims: object = {}) =>
    sign(signer, { ...payload, ...claims }, { ...header, alg: signer.algorithm, ...different });
  const address = 'https://evil.example/keys';
  return [
    ['another key under the kid of this server', await by(ownKey)],
    ['another key under a kid of its own', await by(ownKey, { kid: ownKey.kid })],
    ['another key that it carries', await by(ownKey, { jwk: ownKey.publicJwk })],
    ['another key at an address', await by(ownKey, { kid: ownKey.kid, jku: address, x5u: address })],
    ['the right key under the kid of another one', await by(key, { kid: otherKey.kid })],
    ['the right key under an unknown kid', await by(key, { kid: 'unknown' })],
    ['the right key under a kid that is a path', await by(key, { kid: '../../../dev/null' })],
    ['the right key without a kid', await by(key, { kid: undefined })],
    ...(key.algorithm === 'RS256'
      ? [['the right key by another algorithm of it', await by({ ...key, algorithm: 'PS256' })] as const]
      : []),
    ['another issuer', await by(key, {}, { iss: 'https://other.example' })],
    ['an issuer that only begins so', await by(key, {}, { iss: `${payload.iss}/` })],
    ['no issuer', await by(key, {}, { iss: undefined })],
    ['no type', await by(key, { typ: undefined })],
    ['the type of nothing', await by(key, { typ: 'secevent+jwt' })],
    ['an extension that must be understood', compact({ ...header, crit: ['x'], x: 1 }, payload, Buffer.alloc(64, 1))],
  ];
}

/** The token with its bytes changed, a few in each part, and in other spellings. */
function changed(token: string): readonly Forgery[] {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const starts = [0, header.length + 1, header.length + payload.length + 2];
  const places = starts.flatMap((start, part) => {
    const length = [header, payload, signature][part]?.length ?? 0;
    return [start, start + Math.floor(length / 2), start + length - 1];
  });
  return [
    ...places.map((place): Forgery => [`character ${place} changed`, flipped(token, place)]),
    ['another spelling of the same signature', respelt(token)],
    ['a part more', `${token}.e30`],
    ['padding', `${token}=`],
    ['a blank at the end of the payload', `${header}.${payload} .${signature}`],
    ['the payload of another', `${header}.${Buffer.from('{"sub":"usr_other"}').toString('base64url')}.${signature}`],
    ['JSON serialization', JSON.stringify({ protected: header, payload, signature })],
  ];
}

/** With another character there: one that no base64url takes for the same. */
function flipped(text: string, index: number): string {
  return text.slice(0, index) + (text[index] === 'A' ? 'Q' : 'A') + text.slice(index + 1);
}

/** The last character of a signature has spare bits: this sets one of them. */
function respelt(token: string): string {
  return token.slice(0, -1) + String.fromCharCode(token.charCodeAt(token.length - 1) + 1);
}
