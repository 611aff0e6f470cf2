// The client that all load comes from, its address on the way back, and its requests for tokens: the same for grantry and
// for the peer.

import { createPrivateKey, randomUUID } from 'node:crypto';
import { signatureOf } from '../../src/oauth/values/signature.ts';

export const CLIENT_ID = 'bench.load';
export const CLIENT_SECRET = 'a-secret-that-is-only-ever-used-under-load';
export const CLIENT_UID = '5e1c7d3a-2f64-4a0b-9d8e-31b7c0f2a946';
/** How many users have agreed to what the client asks for: none meets the limit on the refreshes of one person, and a users file holds them. */
export const PEOPLE = 1400;
export const usernameOf = (number: number): string => `person-${number % PEOPLE}`;
/** What the MACs of records depend on, besides what they hold: grantry has both, and so has what writes its state. */
export const ISSUER = 'http://localhost:9400';
export const PEPPER = 'a-pepper-that-is-only-ever-used-under-load';
export const AUDIENCE = 'https://api.example.com/';
export const SCOPE = 'load';
/** What a client of OpenID Connect asks for. */
export const OPENID_SCOPES = ['openid', 'profile', 'email'] as const;
/** What each person is known by. */
export const PERSON = { displayName: 'Ada', email: 'ada@example.com' } as const;
/** The identity provider of servers that have one: its name, and what they have of it. */
export const PROVIDER = {
  name: 'corp',
  clientId: 'grantry',
  clientSecret: 'a-secret-for-the-provider-under-load',
} as const;
export const REDIRECT_URI = 'https://app.example.com/callback';
/** The pair of RFC 7636 appendix B. */
const CODE_VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
export const CODE_CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
/** Long enough for the codes of a round to be made before it; seconds. */
export const CODE_SECONDS = 600;

/** A second client, which has no secret: it signs assertions. */
export const SIGNER_ID = 'bench.signer';
/** Its key, which is only ever used under load. */
const SIGNER_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'oXRb0aeJ4K0RyrESxJYYA3OBde8RDzfFB7PH9E8JY4E',
  y: 'QyBtbu06pOOWmWyPE40TmyzzN7QFZZQ96ZkxyARfn2c',
  d: '3mJsdNTtEMdJi534-tvW43V0O41ULEEoJKFRXAKpw9E',
} as const;
export const SIGNER_JWK = { kty: SIGNER_KEY.kty, crv: SIGNER_KEY.crv, x: SIGNER_KEY.x, y: SIGNER_KEY.y } as const;
/** Long enough for those of a load to be made before it. */
const ASSERTION_SECONDS = 120;

/** Those of a request that carries its credentials in the body. */
export const FORM_HEADERS = { 'content-type': 'application/x-www-form-urlencoded' };
export const HEADERS = {
  ...FORM_HEADERS,
  authorization: basicCredentials(CLIENT_ID),
};

export const CLIENT_CREDENTIALS = form({ grant_type: 'client_credentials', scope: SCOPE });

/** The header `authorization` of a client that has the secret of the load. */
export function basicCredentials(clientId: string): string {
  return `Basic ${Buffer.from(`${clientId}:${CLIENT_SECRET}`).toString('base64')}`;
}

/** The body that redeems a code. */
export function redemption(code: string): string {
  return form({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT_URI,
    code_verifier: CODE_VERIFIER,
  });
}

/** Bodies that ask for tokens of the second client; each has an assertion of its own. */
export function assertedBodies(issuer: string, count: number): readonly string[] {
  const key = createPrivateKey({ key: SIGNER_KEY, format: 'jwk' });
  const header = encoded({ alg: 'ES256' });
  const iat = Math.floor(Date.now() / 1000);
  const claims = { iss: SIGNER_ID, sub: SIGNER_ID, aud: issuer, iat, exp: iat + ASSERTION_SECONDS };
  return Array.from({ length: count }, () => {
    const input = `${header}.${encoded({ ...claims, jti: randomUUID() })}`;
    return form({
      grant_type: 'client_credentials',
      scope: SCOPE,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: `${input}.${signatureOf(input, 'ES256', key)}`,
    });
  });
}

/** Proofs of the possession of one key (RFC 9449), for POSTs to an address; each is another. */
export function proofs(htu: string, count: number): readonly string[] {
  const key = createPrivateKey({ key: SIGNER_KEY, format: 'jwk' });
  const header = encoded({ typ: 'dpop+jwt', alg: 'ES256', jwk: SIGNER_JWK });
  const claims = { htm: 'POST', htu, iat: Math.floor(Date.now() / 1000) };
  return Array.from({ length: count }, () => {
    const input = `${header}.${encoded({ ...claims, jti: randomUUID() })}`;
    return `${input}.${signatureOf(input, 'ES256', key)}`;
  });
}

/** The body that refreshes. */
export function refresh(token: string): string {
  return form({ grant_type: 'refresh_token', refresh_token: token });
}

/** What a person has agreed to: access to an API, the same beside a sign-in, or a sign-in alone. */
export type Agreement = 'api' | 'api and sign-in' | 'sign-in';

/** How many codes to make, where, in whose name, and of what. */
export interface CodeOrder {
  readonly redisUrl: string;
  readonly issuer: string;
  readonly count: number;
  readonly agreement: Agreement;
  /** The issuer of the provider whose people they are; without it they are local users. */
  readonly provider?: string;
}

export type Headers = Readonly<Record<string, string>>;

/** A successful answer of a token endpoint. */
export interface Tokens {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly id_token?: string;
}

/**
 * Asks for tokens once and holds the access token to be what servers are compared by: a JWT, ES256, for the audience.
 * @throws Error when the answer is anything else
 */
export async function requestTokens(url: string, body: string, headers: Headers = HEADERS): Promise<Tokens> {
  const tokens = (await answerOf(url, body, headers)) as unknown as Tokens;
  const [header, payload] = partsOf(tokens.access_token);
  if (header.alg !== 'ES256' || payload.aud !== AUDIENCE) {
    throw new Error(`${url} gave another kind of token: ${JSON.stringify([header, payload])}`);
  }
  return tokens;
}

/** The same beside an ID token, which has to be of ES256 and to name the person. */
export async function requestSignIn(url: string, body: string): Promise<Tokens> {
  const tokens = await requestTokens(url, body);
  const [header, payload] = partsOf(tokens.id_token ?? '');
  if (header.alg !== 'ES256' || payload.aud !== CLIENT_ID || payload.email !== PERSON.email) {
    throw new Error(`${url} gave another kind of ID token: ${JSON.stringify([header, payload])}`);
  }
  return tokens;
}

/** Header and claims of a JWT; empty where it is none. */
function partsOf(jwt: string): readonly [Record<string, unknown>, Record<string, unknown>] {
  const [header = '', payload = ''] = jwt.split('.');
  const read = (part: string) =>
    JSON.parse(Buffer.from(part, 'base64url').toString() || '{}') as Record<string, unknown>;
  return [read(header), read(payload)];
}

/** The JSON that a POST is answered with. @throws Error for any status but 200 */
export async function answerOf(
  url: string,
  body: string,
  headers: Headers = HEADERS,
): Promise<Record<string, unknown>> {
  const response = await fetch(url, { method: 'POST', headers, body });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function form(parameters: Record<string, string>): string {
  return new URLSearchParams(parameters).toString();
}
