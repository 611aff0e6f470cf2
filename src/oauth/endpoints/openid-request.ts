// What an authorization request with scope `openid` may say about the sign-in (OpenID Connect Core §3.1.2.1): reads and
// validates the parameters, and says whether a session answers them. Without that scope they are unknown parameters.

import { OAuthError } from '../ports/error.ts';
import type { AuthorizationSnapshot, OpenidRequest, Prompt, Session } from '../ports/login-stores.ts';
import type { Client } from '../registry/client.ts';
import type { KeyRing } from '../registry/keys.ts';
import { reportedAuthTime } from '../tokens/auth-time.ts';
import { readIdTokenHint } from '../tokens/id-token-hint.ts';
import type { Parameters } from '../values/parameters.ts';

const PARAMETERS = ['nonce', 'prompt', 'max_age', 'id_token_hint', 'login_hint', 'ui_locales'] as const;

const MOST_NONCE_BYTES = 512;
/** The longest user name that the login page takes. */
const LONGEST_LOGIN_HINT = 254;

/** The client that asks, and what its hint is verified by. */
export interface OpenidRequestContext {
  readonly client: Pick<Client, 'clientId'>;
  readonly issuer: string;
  readonly keys: KeyRing;
}

/**
 * The parameters of a request; undefined for a scope without `openid`.
 * @param scope that of the request, or the default one
 * @throws OAuthError invalid_request: `duplicate_parameter`, `nonce_unreadable`, `prompt_contradictory`,
 *   `max_age_malformed`, `id_token_hint_invalid`
 */
export function readOpenidRequest(
  parameters: Parameters,
  scope: readonly string[],
  context: OpenidRequestContext,
): OpenidRequest | undefined {
  if (!scope.includes('openid')) return undefined;
  parameters.rejectDuplicates(PARAMETERS);
  return {
    nonce: nonceOf(parameters),
    prompt: promptOf(parameters),
    maxAge: maxAgeOf(parameters),
    loginHint: loginHintOf(parameters),
    subject: subjectOf(parameters, context),
  };
}

function nonceOf(parameters: Parameters): string | undefined {
  const nonce = parameters.get('nonce');
  if (nonce === undefined) return undefined;
  // It comes back exactly as sent, so one that cannot is refused.
  if (Buffer.byteLength(nonce) > MOST_NONCE_BYTES || !nonce.isWellFormed() || /\p{Cc}/u.test(nonce)) {
    throw malformed('nonce is too long or has control characters.', 'nonce_unreadable');
  }
  return nonce;
}

/** Unknown values are ignored, as Core says of those that are not supported. */
const PROMPTS: Readonly<Record<string, Prompt>> = {
  none: 'none',
  login: 'login',
  consent: 'consent',
  select_account: 'select_account',
};

function promptOf(parameters: Parameters): readonly Prompt[] {
  const values = new Set((parameters.get('prompt') ?? '').split(' ').filter((value) => value !== ''));
  if (values.has('none') && values.size > 1) {
    throw malformed('prompt has none beside other values.', 'prompt_contradictory');
  }
  return [...new Set([...values].flatMap((value) => (Object.hasOwn(PROMPTS, value) ? (PROMPTS[value] ?? []) : [])))];
}

function maxAgeOf(parameters: Parameters): number | undefined {
  const maxAge = parameters.get('max_age');
  if (maxAge === undefined) return undefined;
  if (!/^[0-9]+$/.test(maxAge)) {
    throw malformed('max_age must be a whole number of seconds.', 'max_age_malformed');
  }
  return Math.min(Number(maxAge), Number.MAX_SAFE_INTEGER);
}

function loginHintOf(parameters: Parameters): string | undefined {
  const hint = parameters.get('login_hint');
  return hint !== undefined && hint.length <= LONGEST_LOGIN_HINT ? hint : undefined;
}

function subjectOf(parameters: Parameters, { client, issuer, keys }: OpenidRequestContext): string | undefined {
  const hint = parameters.get('id_token_hint');
  if (hint === undefined) return undefined;
  const read = readIdTokenHint(hint, { issuer, keys });
  if (read?.clientId !== client.clientId) {
    throw malformed('id_token_hint is not an ID token of this client.', 'id_token_hint_invalid');
  }
  return read.subject;
}

function malformed(description: string, reason: string): OAuthError {
  return new OAuthError('invalid_request', description, { reason });
}

/**
 * The parameters that say the same again, for a request that starts again. None stands for the hint: only the client has
 * that token.
 */
export function openidParameters({
  nonce,
  prompt,
  maxAge,
  loginHint,
}: OpenidRequest): Readonly<Record<string, string>> {
  const parameters: Record<string, string> = {};
  if (nonce !== undefined) parameters.nonce = nonce;
  if (prompt.length > 0) parameters.prompt = prompt.join(' ');
  if (maxAge !== undefined) parameters.max_age = String(maxAge);
  if (loginHint !== undefined) parameters.login_hint = loginHint;
  return parameters;
}

/** Whether the request must be answered without any page (`prompt=none`). */
export function isSilent({ openid }: AuthorizationSnapshot): boolean {
  return openid?.prompt.includes('none') ?? false;
}

/** Whether the person is to see the login page, though a session or the only provider would do (`prompt=login`). */
export function asksForSignIn({ openid }: AuthorizationSnapshot): boolean {
  return openid?.prompt.includes('login') ?? false;
}

/**
 * Whether the person is to choose an account (`prompt=select_account`). "Use another account" asks for it in any request, so
 * it applies without the scope `openid` as well.
 */
export function asksForAccount(parameters: Parameters): boolean {
  return (parameters.get('prompt') ?? '').split(' ').includes('select_account');
}

/** Whether the answer may be about any person; else it is about the one of the hint. */
export function isAboutAnyone({ openid }: AuthorizationSnapshot): boolean {
  return openid?.subject === undefined;
}

/** Whether the answer may be about this person. */
export function isAbout(request: AuthorizationSnapshot, { subject }: Pick<Session, 'subject'>): boolean {
  return isAboutAnyone(request) || request.openid?.subject === subject;
}

/**
 * Whether a session leaves the request unanswered: its person must sign in, or another one. {@link asksForAccount} does so too. Only for the request as it
 * arrives; behind the login page it would ask for ever.
 * @param now epoch milliseconds
 */
export function needsSignIn(
  request: AuthorizationSnapshot,
  session: Pick<Session, 'subject' | 'authTime' | 'provider' | 'upstreamAuthTime'>,
  now: number,
): boolean {
  const { openid } = request;
  if (openid === undefined) return false;
  const { maxAge } = openid;
  // A greatest age of 0 means the same as `prompt=login`.
  const isTooOld = maxAge !== undefined && (maxAge === 0 || ageOf(session, now) > maxAge * 1000);
  return asksForSignIn(request) || isTooOld || !isAbout(request, session);
}

/** A sign-in at an identity provider that does not say when it was is of any age. */
function ageOf(session: Pick<Session, 'authTime' | 'provider' | 'upstreamAuthTime'>, now: number): number {
  const isUnknown = session.provider !== undefined && session.upstreamAuthTime === undefined;
  return isUnknown ? Number.POSITIVE_INFINITY : now - reportedAuthTime(session);
}
