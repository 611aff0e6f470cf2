// What can go wrong, as a sentence for a person that says what to do.

import * as client from 'openid-client';

/** An end of the command that its person can do something about. */
export class Problem extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'Problem';
  }
}

/** A server that gives no answer. */
class Unreachable extends Error {
  readonly origin: string;

  constructor(origin: string, cause: unknown) {
    super(`no answer from ${origin}`, { cause });
    this.name = 'Unreachable';
    this.origin = origin;
  }
}

/** Where the two servers are. */
export interface Places {
  readonly issuer: string;
  readonly api: string;
}

/** `fetch` whose failures name the server. */
export const fetchOrSay: client.CustomFetch = async (url, options) => {
  try {
    return await fetch(url, { ...options, body: options.body ?? null });
  } catch (error) {
    throw new Unreachable(new URL(url).origin, error);
  }
};

/** What is wrong with an address at which no issuer of this name is found. */
export function discoveryProblem(error: unknown, issuer: string): unknown {
  if (!(error instanceof client.ClientError) || error.cause instanceof Unreachable) return error;
  switch (error.code) {
    case 'OAUTH_HTTP_REQUEST_FORBIDDEN':
      return new Problem(`${issuer} is neither https nor on this machine`, error);
    case 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED': {
      const { body } = error.cause as { readonly body: { readonly issuer: string } };
      return new Problem(`the server at ${issuer} is known as ${body.issuer}: say that by --issuer`, error);
    }
    default:
      return new Problem(`${issuer} is no authorization server: say by --issuer where grantry is`, error);
  }
}

/** The sentence about an error; undefined for one that is a mistake of this program. */
export function sentenceAbout(error: unknown, places: Places): string | undefined {
  if (error instanceof Problem) return error.message;
  if (error instanceof client.AuthorizationResponseError) return aboutSignIn(error);
  if (error instanceof client.ResponseBodyError) return aboutTokenRequest(error, places);
  if (error instanceof client.WWWAuthenticateChallengeError) return aboutChallenge(error, places);
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Unreachable ? aboutSilence(cause, places) : undefined;
}

function aboutSilence({ origin }: Unreachable, { issuer }: Places): string {
  return origin === new URL(issuer).origin
    ? `no answer from ${origin}: start grantry (npm start), or say by --issuer where it is`
    : `no answer from ${origin}: start the API (npm run notes-api), or say by --api where it is`;
}

function aboutSignIn({ error, error_description: details }: client.AuthorizationResponseError): string {
  if (error === 'access_denied') return 'the access was not allowed, so nothing was done';
  return `the sign-in ended with ${error}${details === undefined ? '' : `: ${details}`}`;
}

function aboutTokenRequest(
  { error, error_description: details }: client.ResponseBodyError,
  { issuer }: Places,
): string {
  if (error === 'invalid_client') return `${issuer} does not serve the client of examples/quickstart/notes.yaml`;
  return `${issuer} answers ${error}${details === undefined ? '' : `: ${details}`}`;
}

function aboutChallenge({ status, cause }: client.WWWAuthenticateChallengeError, { issuer, api }: Places): string {
  const error = cause.map(({ parameters }) => parameters.error).find((value) => value !== undefined);
  switch (error) {
    case 'invalid_token':
      return `${api} takes no token of ${issuer}: start it for this issuer (npm run notes-api -- --issuer ${issuer})`;
    case 'invalid_dpop_proof':
      return `${api} refuses the proof of this program: it is known by another address, or the clocks differ`;
    case 'insufficient_scope':
      return `the access that was allowed is too small for this: sign out and in again`;
    default:
      return `${api} answers ${status}${error === undefined ? '' : ` ${error}`}`;
  }
}
