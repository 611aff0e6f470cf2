// Redirect addresses (RFC 6749 §3.1.2, RFC 9700 §4.1.3, RFC 8252 §7): which may be registered, which sent one matches,
// and how a response is appended. Matching compares the sent address with the registered ones and never parses: a
// parser that disagrees with the browser would make an open redirector. Only registration parses.

const LOOPBACK_PREFIXES = ['http://127.0.0.1', 'http://[::1]'] as const;
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
const RESPONSE_PARAMETERS: ReadonlySet<string> = new Set(['code', 'state', 'iss', 'error', 'error_description']);

/** Whether the redirect_uri of a request is a registered one: byte for byte, or on a loopback literal with any port. */
export function matchRedirectUri(sent: string, registered: readonly string[]): boolean {
  return registered.includes(sent) || matchLoopback(sent, registered);
}

// RFC 8252 §7.3: the app listens on an ephemeral port; everything else is equal.
function matchLoopback(sent: string, registered: readonly string[]): boolean {
  const address = withoutLoopbackPort(sent);
  return address !== undefined && registered.some((uri) => withoutLoopbackPort(uri) === address);
}

/** The address less its port, or undefined when it is on no loopback literal or its port is not 1–65535 or absent. */
function withoutLoopbackPort(uri: string): string | undefined {
  const prefix = LOOPBACK_PREFIXES.find((candidate) => uri.startsWith(candidate));
  if (prefix === undefined) return undefined;
  const rest = uri.slice(prefix.length);
  const port = /^:([0-9]*)/.exec(rest);
  if (port !== null && !isPort(port[1] ?? '')) return undefined;
  const remainder = rest.slice(port?.[0].length ?? 0);
  // What follows must end the authority: `127.0.0.1.example.com` and `127.0.0.1:80@example.com` are other hosts.
  return /^(?:[/?]|$)/.test(remainder) ? prefix + remainder : undefined;
}

function isPort(digits: string): boolean {
  return /^[1-9][0-9]{0,4}$/.test(digits) && Number(digits) <= 65_535;
}

/** Why an address may not be registered; each has a sentence for people in `admission/`. */
export type RedirectUriFault =
  | 'not_absolute'
  | 'invalid_character'
  | 'fragment'
  | 'wildcard'
  | 'userinfo'
  | 'invalid_host'
  | 'invalid_port'
  | 'http_not_loopback'
  | 'unsupported_scheme'
  | 'response_parameter';

/**
 * Why this address may not be registered, undefined when it may: https, http on a loopback host, or a private-use
 * scheme with a dot; absolute, without fragment, userinfo or wildcard, and without a response parameter in the query
 * (RFC 6749 §3.1.2, RFC 8252 §7.1, RFC 9700 §2.6). Whether the client's policy allows it is validated in `admission/`.
 */
export function redirectUriFault(uri: string): RedirectUriFault | undefined {
  if (PLAIN_ADDRESS.test(uri)) return undefined;
  if (uri.includes('#')) return 'fragment';
  if (uri.includes('*')) return 'wildcard';
  if (!/^(?:[A-Za-z0-9._~:/?[\]@!$&'()+,;=-]|%[0-9A-Fa-f]{2})*$/.test(uri)) return 'invalid_character';
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):./.exec(uri)?.[1];
  if (scheme === undefined) return 'not_absolute';
  const isWeb = scheme === 'https' || scheme === 'http';
  if (!isWeb && !isPrivateUseScheme(scheme)) return 'unsupported_scheme';
  return (isWeb ? webFault(uri, scheme) : privateUseFault(uri)) ?? queryFault(uri);
}

function webFault(uri: string, scheme: 'http' | 'https'): RedirectUriFault | undefined {
  const authority = authorityOf(uri);
  if (authority === undefined || authority === '') return 'not_absolute';
  if (authority.includes('@')) return 'userinfo';
  const [, host = '', port] = /^(\[[^\]]*\]|[^:[]*)(?::(.*))?$/.exec(authority) ?? [];
  if (port !== undefined && !isPort(port)) return 'invalid_port';
  if (PLAIN_HOST.test(host)) return scheme === 'http' ? 'http_not_loopback' : undefined;
  // Only the form a browser shows: no upper case, `127.1`, `2130706433`, `[0:0:0:0:0:0:0:1]`, no percent-encoding.
  if (host === '' || URL.parse(`${scheme}://${host}/`)?.hostname !== host) return 'invalid_host';
  // `shop.example.` is `shop.example` to the network and another host to every rule.
  if (host.startsWith('.') || host.endsWith('.') || host.includes('..')) return 'invalid_host';
  if (scheme === 'http' && !LOOPBACK_HOSTS.has(host)) return 'http_not_loopback';
  return undefined;
}

/** Host names that every parser reads alike: lower case, with a dot, a last label of letters, and no punycode. */
const PLAIN_HOST = /^(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)+[a-z]+$/;

/** Most addresses: https, such a host, and a path of characters that no rule excludes. */
const PLAIN_ADDRESS = /^https:\/\/(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)+[a-z]+(?:\/[A-Za-z0-9._~/-]*)?$/;

/**
 * The host of an https address, where it is certain without a parser and is not on the person's own machine. Undefined
 * proves nothing. A fast path: most addresses have such a host, and a parser is much slower.
 */
export function plainHost(uri: string): string | undefined {
  const host = uri.startsWith('https://') ? (authorityOf(uri) ?? '') : '';
  return PLAIN_HOST.test(host) && !host.endsWith('.localhost') ? host : undefined;
}

function privateUseFault(uri: string): RedirectUriFault | undefined {
  if (authorityOf(uri)?.includes('@')) return 'userinfo';
  return URL.canParse(uri) ? undefined : 'not_absolute';
}

// RFC 8252 §7.1: a reversed domain name; the dot also keeps out javascript:, data: and their like.
function isPrivateUseScheme(scheme: string): boolean {
  return /^[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+$/.test(scheme);
}

/** The part between `//` and the path, query or end; undefined for an address without authority. */
function authorityOf(uri: string): string | undefined {
  return /^[^:]*:\/\/([^/?]*)/.exec(uri)?.[1];
}

// A response parameter that is already there would reach the client twice, the registered one first. `;` separates,
// too, for some older parsers.
function queryFault(uri: string): RedirectUriFault | undefined {
  const start = uri.indexOf('?');
  if (start === -1) return undefined;
  const names = uri
    .slice(start + 1)
    .split(/[&;]/)
    .flatMap((pair) => [...new URLSearchParams(pair).keys()]);
  return names.some((name) => RESPONSE_PARAMETERS.has(name)) ? 'response_parameter' : undefined;
}

/**
 * Whether any app on the person's machine could receive what is sent to this registered address, so that the client's
 * identity is not assured (RFC 8252 §8.6): a loopback host or a private-use scheme.
 */
export function isLoopbackOrPrivateUse(uri: string): boolean {
  return (!uri.startsWith('https://') && !uri.startsWith('http://')) || isLoopback(uri);
}

/** Whether the host of this http or https address is `localhost` or a name below it, on any port: no literal of loopback. */
export function isLocalhostName(uri: string): boolean {
  return /^https?:\/\/(?:[^/?#@:]+\.)?localhost(?:[:/?]|$)/.test(uri);
}

/** Further hosts that operating systems and browsers resolve to the machine they run on. */
const ALSO_LOOPBACK =
  /^(?:127(?:\.[0-9]{1,3}){3}|0\.0\.0\.0|\[::\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]|.+\.localhost)$/;

/** Whether this http or https address leads back to the person's own machine, whatever its port. */
export function isLoopback(uri: string): boolean {
  const host = authorityOf(uri)?.replace(/:[0-9]*$/, '') ?? '';
  return LOOPBACK_HOSTS.has(host) || ALSO_LOOPBACK.test(host);
}

/**
 * The address with response parameters appended: the registered query stays as it is (RFC 6749 §3.1.2). Undefined
 * values are left out. Values must be well-formed Unicode. No fragment is pinned: browsers carry one over to the next
 * address, but a code in the query is not part of it (RFC 9700 §4.1.3).
 */
export function appendParameters(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const query = Object.entries(parameters)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]))
    .join('&');
  if (!uri.includes('?')) return `${uri}?${query}`;
  return /[?&]$/.test(uri) ? uri + query : `${uri}&${query}`;
}
