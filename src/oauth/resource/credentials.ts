// Where the access token of a request to an API is (RFC 6750 §2, RFC 9449 §7.1): the Authorization header or, where the API
// allows it, the form body. Never the query, never both, never twice.

import type { BearerError, Scheme } from './bearer-error.ts';

/** The parts of a request that may hold an access token. */
export interface RequestParts {
  readonly method: string;
  /** Each Authorization header, as sent; several that are joined by commas are one malformed. */
  readonly authorization: readonly string[];
  /** The query without its question mark. */
  readonly query: string;
  readonly contentType: string | undefined;
  /** The values of `access_token` in the form body; undefined where the API takes no tokens there. */
  readonly formTokens: readonly string[] | undefined;
}

/** An access token as presented; nothing of it is verified. */
export interface PresentedCredentials {
  readonly token: string;
  /** Bearer for a token of the form body. */
  readonly scheme: Scheme;
  readonly transport: 'header' | 'form';
}

/** b64token and token68 have one alphabet (RFC 6750 §2.1, RFC 9110 §11.2). */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;
const CREDENTIALS = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?: +([\x21-\x7e].*))?$/;
const FORM = 'application/x-www-form-urlencoded';

/** The credentials of a request, or the refusal of a request that has none or presents them in a wrong way. */
export function presentedCredentials(parts: RequestParts): PresentedCredentials | BearerError {
  const { authorization, query, formTokens } = parts;
  if (new URLSearchParams(query).has('access_token')) return malformed('token_in_query');
  const headers = authorization.filter((header) => header !== '');
  const inForm = formTokens !== undefined && mayHoldToken(parts) ? formTokens : [];
  if (headers.length > 1) return malformed('authorization_repeated');
  if (inForm.length > 1) return malformed('token_repeated');
  const inHeader = headers[0] === undefined ? undefined : headerCredentials(headers[0]);
  if (inHeader !== undefined && 'code' in inHeader && inHeader.code !== undefined) return inHeader;
  const [formToken] = inForm;
  if (formToken !== undefined) {
    if (inHeader !== undefined) return malformed('two_transports');
    if (!TOKEN.test(formToken)) return malformed('token_malformed', 'Bearer');
    return { token: formToken, scheme: 'Bearer', transport: 'form' };
  }
  return inHeader ?? { code: undefined, reason: 'no_credentials' };
}

/** Whether the body of a request may hold a token: a POST of a form (RFC 6750 §2.2). */
export function mayHoldToken({ method, contentType }: Pick<RequestParts, 'method' | 'contentType'>): boolean {
  return method === 'POST' && contentType?.split(';')[0]?.trim().toLowerCase() === FORM;
}

export function isBearerError(value: object): value is BearerError {
  return 'reason' in value;
}

function headerCredentials(header: string): PresentedCredentials | BearerError {
  const [, name, token] = CREDENTIALS.exec(header) ?? [];
  if (name === undefined) return malformed('authorization_malformed');
  const scheme = SCHEMES.get(name.toLowerCase());
  if (scheme === undefined) return { code: undefined, reason: 'other_scheme' };
  if (token === undefined || !TOKEN.test(token)) return malformed('token_malformed', scheme);
  return { token, scheme, transport: 'header' };
}

const SCHEMES: ReadonlyMap<string, Scheme> = new Map([
  ['bearer', 'Bearer'],
  ['dpop', 'DPoP'],
]);

function malformed(reason: string, scheme?: Scheme): BearerError {
  return { code: 'invalid_request', reason, scheme };
}
