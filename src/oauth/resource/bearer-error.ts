// Why an API refuses a request, and the answer to it: status and headers (RFC 6750 §3, RFC 9449 §7.1, RFC 9728 §5.1). For the
// library and forward auth alike.

/** The schemes by which an access token comes in the Authorization header. */
export type Scheme = 'Bearer' | 'DPoP';

/** The error codes on the wire; `unavailable` has none there and is 503. */
export type RefusalCode =
  | 'invalid_request'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce'
  | 'unavailable';

/** The error of a request that is refused. */
export interface BearerError {
  /** Undefined where the request has no credentials: the challenge is without an error (RFC 6750 §3.1). */
  readonly code: RefusalCode | undefined;
  /** A stable snake_case slug for logs and tests; never sent. */
  readonly reason: string;
  /** The scheme that the request uses; undefined where it uses none. */
  readonly scheme?: Scheme | undefined;
  /** The nonce for the next proof, with `use_dpop_nonce`. */
  readonly dpopNonce?: string | undefined;
}

/** What every challenge of one API says. */
export interface ChallengeFacts {
  /** The identifier of the API, without quotes and backslashes. */
  readonly audience: string;
  /** Those that the API takes, at least one. */
  readonly schemes: readonly Scheme[];
  /** The address of the API's RFC 9728 document. */
  readonly metadataUrl: string | undefined;
  /** What proofs may be signed with. */
  readonly proofAlgorithms: readonly string[];
}

/** An answer without an access: what goes on the wire. */
export interface BearerErrorAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON, or empty where the answer has no error code. */
  readonly body: string;
}

const RETRY_SECONDS = '5';

const STATUS: Readonly<Record<RefusalCode, number>> = {
  invalid_request: 400,
  invalid_token: 401,
  insufficient_scope: 403,
  invalid_dpop_proof: 401,
  use_dpop_nonce: 401,
  unavailable: 503,
};

const DESCRIPTIONS: Readonly<Record<RefusalCode, string>> = {
  invalid_request: 'The request does not present one access token in one right way.',
  invalid_token: 'The access token is not valid for this request.',
  insufficient_scope: 'The access token has not the scope that this request needs.',
  invalid_dpop_proof: 'A valid DPoP proof is required.',
  use_dpop_nonce: 'The DPoP proof needs the nonce of this answer.',
  unavailable: 'Access cannot be checked now.',
};

/** The answer with this error. @param scope what the request needs; empty for nothing */
export function bearerErrorAnswer(
  error: BearerError,
  scope: readonly string[],
  facts: ChallengeFacts,
): BearerErrorAnswer {
  const { code, dpopNonce } = error;
  if (code === 'unavailable') {
    return {
      status: 503,
      headers: { 'cache-control': 'no-store', 'retry-after': RETRY_SECONDS, 'content-type': 'application/json' },
      body: bodyOf('temporarily_unavailable', DESCRIPTIONS.unavailable),
    };
  }
  const challenge = { 'cache-control': 'no-store', 'www-authenticate': challengeLine(error, scope, facts) };
  if (code === undefined) return { status: 401, headers: challenge, body: '' };
  const headers = { ...challenge, 'content-type': 'application/json' };
  return {
    status: STATUS[code],
    headers: dpopNonce === undefined ? headers : { ...headers, 'dpop-nonce': dpopNonce },
    body: bodyOf(code, DESCRIPTIONS[code]),
  };
}

/** The text that goes with a code on the wire. */
export function bearerErrorDescription(code: RefusalCode): string {
  return DESCRIPTIONS[code];
}

function bodyOf(error: string, description: string): string {
  return JSON.stringify({ error, error_description: description });
}

/**
 * All challenges in one line: some proxies pass the first WWW-Authenticate header only. The error stands in the challenge of
 * the scheme that the request uses, where the API takes that one.
 */
function challengeLine({ code, scheme }: BearerError, scope: readonly string[], facts: ChallengeFacts): string {
  const { schemes, audience, metadataUrl, proofAlgorithms } = facts;
  const concerned = scheme !== undefined && schemes.includes(scheme) ? scheme : schemes[0];
  return schemes
    .map((offered, index) => {
      const parameters = [
        index === 0 ? parameter('realm', audience) : [],
        code !== undefined && offered === concerned
          ? [parameter('error', code), parameter('error_description', DESCRIPTIONS[code])]
          : [],
        scope.length > 0 && offered === concerned ? parameter('scope', scope.join(' ')) : [],
        index === 0 && metadataUrl !== undefined ? parameter('resource_metadata', metadataUrl) : [],
        offered === 'DPoP' ? parameter('algs', proofAlgorithms.join(' ')) : [],
      ];
      return `${offered} ${parameters.flat().join(', ')}`;
    })
    .join(', ');
}

function parameter(name: string, value: string): string {
  return `${name}="${value}"`;
}

/** Whether a text can stand in a quoted parameter as it is. */
export function isQuotable(text: string): boolean {
  return /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/.test(text);
}

/** The well-known address of the RFC 9728 document of an https identifier (§3.1); undefined for another identifier. */
export function wellKnownMetadataUrl(audience: string): string | undefined {
  const url = audience.startsWith('https://') ? URL.parse(audience) : null;
  if (url === null) return undefined;
  return `${url.origin}/.well-known/oauth-protected-resource${url.pathname.replace(/\/$/, '')}${url.search}`;
}
