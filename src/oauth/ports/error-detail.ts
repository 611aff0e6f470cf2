// Text of a request as a log line may show it: what a person needs to find the fault, bounded, printable, and no secret.

/** The longest `detail` of a log line, in characters. */
const LONGEST = 120;
/** The form of `spec.clientId`. */
const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/;
/** Codes, tokens and client secrets have at least so many characters, those of other writers too (`Existing`). */
const SHORTEST_SECRET = 27;
/** Words between dots and dashes, as in the ids of namespaces and names: the form that a long id is shown in. */
const WORDS = /^[a-z][a-z0-9]{0,62}(?:[.-][a-z0-9]+)*$/;
/** What hexadecimal secrets have and words have not: a digit in a long run. And the begin of a UUID. */
const RANDOM = /(?=[a-z]*[0-9])[a-z0-9]{16}|[0-9a-f]{8}-[0-9a-f]{4}-/;

/** A `client_id` that no client has; undefined unless it has the form of one, and where a code, token or secret may have been sent in its place. */
export function unknownClientDetail(clientId: string): string | undefined {
  if (!CLIENT_ID.test(clientId)) return undefined;
  const isShown = clientId.length < SHORTEST_SECRET || (WORDS.test(clientId) && !RANDOM.test(clientId));
  return isShown ? clientId.slice(0, LONGEST) : undefined;
}

/** A `redirect_uri` without user information, path parameters, query and fragment; what is not printable ASCII is percent-encoded. */
export function redirectUriDetail(redirectUri: string): string {
  const [shown = ''] = redirectUri.split(/[?#;]/, 1);
  const withoutUser = shown
    .replace(/[/\\]{2}[^/\\]*@/, '//')
    .slice(0, LONGEST)
    .toWellFormed();
  return withoutUser.replace(/[^\x21-\x7e]/gu, encodeURIComponent).slice(0, LONGEST);
}
