// `grantry/resource-server/testing`: an issuer for the tests of an API, without a server. It signs any token with a key of its
// own and answers as `fetch`.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { Clock } from '../oauth/ports/ports.ts';
import { signatureOf } from '../oauth/values/signature.ts';
import type { Fetch } from './issuer-calls.ts';

export interface TestIssuerOptions {
  /** Default `https://issuer.test`. */
  readonly issuer?: string;
  /** The audience of tokens that name none. Default `urn:test:api`. */
  readonly audience?: string;
  /** Default: that of the system. */
  readonly clock?: Clock;
}

/** What differs from a right token; an undefined member is left out of it. */
export interface TokenChanges {
  /** An array as `scope` is joined by spaces. */
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
}

/** An issuer for tests. */
export interface TestIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** For the option `fetch` of a verifier: answers for the key set and for introspection, of any caller. */
  readonly fetch: Fetch;
  /** A JWT that passes, but for the changes: of ten minutes, without a scope, of the subject `test-subject`. */
  token(changes?: TokenChanges): string;
  /** The same with the signature of another key. */
  forgedToken(changes?: TokenChanges): string;
  /** An opaque token, for introspection. */
  opaqueToken(claims?: Readonly<Record<string, unknown>>): string;
  /** From now on introspection has it as inactive. */
  revoke(token: string): void;
}

const KEY_ID = 'test-key';
const LIFETIME_SECONDS = 600;

/** Makes an issuer with a key of its own. */
export function createTestIssuer(options: TestIssuerOptions = {}): TestIssuer {
  const { issuer = 'https://issuer.test', audience = 'urn:test:api', clock = { now: () => Date.now() } } = options;
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = Object.assign(publicKey.export({ format: 'jwk' }), { kid: KEY_ID, alg: 'ES256', use: 'sig' });
  const active = new Map<string, object>();

  const claimsOf = (changes: Readonly<Record<string, unknown>> = {}): object => {
    const now = Math.floor(clock.now() / 1000);
    const jti = randomBytes(16).toString('base64url');
    const subject = { sub: 'test-subject', client_id: 'test-client', jti };
    const claims = { iss: issuer, aud: audience, ...subject, iat: now, exp: now + LIFETIME_SECONDS, ...changes };
    return Array.isArray(changes.scope) ? { ...claims, scope: changes.scope.join(' ') } : claims;
  };
  const mint = (signer: typeof privateKey, { claims, header }: TokenChanges = {}): string => {
    const payload = claimsOf(claims);
    const input = `${encoded({ alg: 'ES256', typ: 'at+jwt', kid: KEY_ID, ...header })}.${encoded(payload)}`;
    const token = `${input}.${signatureOf(input, 'ES256', signer)}`;
    if (signer === privateKey) active.set(token, payload);
    return token;
  };

  return {
    issuer,
    audience,
    fetch: async (url, { body }) => {
      const { pathname } = new URL(url);
      if (pathname.endsWith('/jwks.json')) return Response.json({ keys: [jwk] });
      if (!pathname.endsWith('/introspect')) return new Response(null, { status: 404 });
      const token = new URLSearchParams(String(body)).get('token') ?? '';
      const claims = active.get(token);
      return Response.json(claims === undefined ? { active: false } : { active: true, ...claims });
    },
    token: (changes) => mint(privateKey, changes),
    forgedToken: (changes) => mint(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, changes),
    opaqueToken: (claims) => {
      const token = `opaque_${randomBytes(24).toString('base64url')}`;
      active.set(token, claimsOf(claims));
      return token;
    },
    revoke: (token) => void active.delete(token),
  };
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
