// The client that all load comes from, its address on the way back, and its requests for tokens: the same for grantry and
// for the peer.

export const CLIENT_ID = 'bench.load';
export const CLIENT_SECRET = 'a-secret-that-is-only-ever-used-under-load';
export const CLIENT_UID = '5e1c7d3a-2f64-4a0b-9d8e-31b7c0f2a946';
/** How many users have agreed to what the client asks for: none meets the limit on the refreshes of one person. */
export const PEOPLE = 1500;
export const usernameOf = (number: number): string => `person-${number % PEOPLE}`;
/** What the MACs of records depend on, besides what they hold: grantry has both, and so has what writes its state. */
export const ISSUER = 'http://localhost:9400';
export const PEPPER = 'a-pepper-that-is-only-ever-used-under-load';
export const AUDIENCE = 'https://api.example.com/';
export const SCOPE = 'load';
export const REDIRECT_URI = 'https://app.example.com/callback';
/** The pair of RFC 7636 appendix B. */
const CODE_VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
export const CODE_CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
/** Long enough for the codes of a round to be made before it; seconds. */
export const CODE_SECONDS = 600;

export const HEADERS = {
  'content-type': 'application/x-www-form-urlencoded',
  authorization: `Basic ${Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64')}`,
};

export const CLIENT_CREDENTIALS = form({ grant_type: 'client_credentials', scope: SCOPE });

/** The body that redeems a code. */
export function redemption(code: string): string {
  return form({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT_URI,
    code_verifier: CODE_VERIFIER,
  });
}

/** The body that refreshes. */
export function refresh(token: string): string {
  return form({ grant_type: 'refresh_token', refresh_token: token });
}

/** How many codes to make, where, and in whose name. */
export interface CodeOrder {
  readonly redisUrl: string;
  readonly issuer: string;
  readonly count: number;
}

/** A successful answer of a token endpoint. */
export interface Tokens {
  readonly access_token: string;
  readonly refresh_token?: string;
}

/**
 * Asks for tokens once and holds the access token to be what servers are compared by: a JWT, ES256, for the audience.
 * @throws Error when the answer is anything else
 */
export async function requestTokens(url: string, body: string): Promise<Tokens> {
  const tokens = (await answerOf(url, body)) as unknown as Tokens;
  const [header, payload] = tokens.access_token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  const isComparable = JSON.parse(header ?? '').alg === 'ES256' && JSON.parse(payload ?? '').aud === AUDIENCE;
  if (!isComparable) throw new Error(`${url} gave another kind of token: ${header}.${payload}`);
  return tokens;
}

/** The JSON that a POST is answered with. @throws Error for any status but 200 */
export async function answerOf(url: string, body: string): Promise<Record<string, unknown>> {
  const response = await fetch(url, { method: 'POST', headers: HEADERS, body });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

function form(parameters: Record<string, string>): string {
  return new URLSearchParams(parameters).toString();
}
