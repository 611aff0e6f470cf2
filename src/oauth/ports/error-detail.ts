// Text of a request as a log line may show it: what a person needs to find the fault, bounded, printable, and no secret.

/** The longest `detail` of a log line, in characters. */
const LONGEST = 120;
/** The form of `spec.clientId`. */
const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/;
/** Random bits in base64url, as in codes, tokens and generated client secrets: of 27 such characters one is upper case. */
const RANDOM = /(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{27}/;

/** A `client_id` that no client has; undefined unless it has the form of one, and where a code, token or secret was sent in its place. */
export function unknownClientDetail(clientId: string): string | undefined {
  return CLIENT_ID.test(clientId) && !RANDOM.test(clientId) ? clientId.slice(0, LONGEST) : undefined;
}

/** A `redirect_uri` without user information, query and fragment; what is not printable ASCII is percent-encoded. */
export function redirectUriDetail(redirectUri: string): string {
  const [shown = ''] = redirectUri.split(/[?#]/, 1);
  const withoutUser = shown
    .replace(/\/\/[^/]*@/, '//')
    .slice(0, LONGEST)
    .toWellFormed();
  return withoutUser.replace(/[^\x21-\x7e]/gu, encodeURIComponent).slice(0, LONGEST);
}
