// Redirect addresses that have fooled redirect matchers, made from a registered one: rows R2, R3, R4 and R7 of the security
// checklist. None of them equals the address it is made from, and none may match it.

/** An attack and the address it sends. */
export type RedirectAttack = readonly [name: string, sent: string];

/** Attacks on a registered address of the form `https://host/path` with a lower-case host. */
export function attacksOn(registered: string): readonly RedirectAttack[] {
  const host = new URL(registered).host;
  const path = registered.slice(`https://${host}`.length);
  const withHost = (text: string) => `https://${text}${path}`;
  return [
    ...disguises(registered, host, path, withHost),
    ...foreignAuthorities(host, path, withHost),
    ...pathConfusions(registered),
    ...strangeCharacters(registered),
  ];
}

/** The same address in the eyes of a URL parser, not of a byte comparison (R2). */
function disguises(
  registered: string,
  host: string,
  path: string,
  withHost: (text: string) => string,
): RedirectAttack[] {
  return [
    ['scheme in upper case', registered.replace('https', 'HTTPS')],
    ['scheme in mixed case', registered.replace('https', 'Https')],
    ['http for https', registered.replace('https', 'http')],
    ['host in upper case', withHost(host.toUpperCase())],
    ['the default port', withHost(`${host}:443`)],
    ['the default port with a zero in front', withHost(`${host}:0443`)],
    ['an empty port', withHost(`${host}:`)],
    ['another port', withHost(`${host}:8443`)],
    ['a trailing dot on the host', withHost(`${host}.`)],
    ['a percent-encoded host', withHost(`%73${host.slice(1)}`)],
    ['a full-width letter in the host', withHost(`\uff53${host.slice(1)}`)],
    ['an ideographic full stop in the host', withHost(host.replace('.', '\u3002'))],
    ['a long s in the host', withHost(host.replace('s', '\u017f'))],
    ['a Cyrillic letter in the host', withHost(host.replace('e', '\u0435'))],
    ['a punycode host', withHost(`xn--${host}`)],
    ['a soft hyphen in the host', withHost(`s\u00ad${host.slice(1)}`)],
    ['one slash after the scheme', `https:/${host}${path}`],
    ['three slashes after the scheme', `https:///${host}${path}`],
    ['no slash after the scheme', `https:${host}${path}`],
    ['no scheme', `//${host}${path}`],
    ['a trailing slash', `${registered}/`],
    ['no trailing character', registered.slice(0, -1)],
    ['an empty query', `${registered}?`],
    ['an empty fragment', `${registered}#`],
    ['a dot segment', withHost(`${host}/.`)],
    ['a dot-dot segment', withHost(`${host}/x/..`)],
    ['an encoded dot segment', withHost(`${host}/%2e`)],
    ['an encoded dot-dot segment', withHost(`${host}/x/%2e%2e`)],
    ['a doubled slash', `https://${host}/${path}`],
    [
      'a percent-encoded path',
      `${registered.slice(0, -1)}%${registered.charCodeAt(registered.length - 1).toString(16)}`,
    ],
    ['an encoded slash before the path', `https://${host}%2F${path.slice(1)}`],
    ['a path in upper case', withHost(host).slice(0, -path.length) + path.toUpperCase()],
    ['double encoding', encodeURIComponent(registered)],
    ['triple encoding', encodeURIComponent(encodeURIComponent(registered))],
    ['a plus sign at the end', `${registered}+`],
    ['an encoded space at the end', `${registered}%20`],
    ['a combining accent at the end', `${registered}\u0301`],
  ];
}

/** Addresses that some parser sends to `evil.example` (R3, CVE-2024-8883). */
function foreignAuthorities(host: string, path: string, withHost: (text: string) => string): RedirectAttack[] {
  return [
    ['userinfo', withHost(`${host}@evil.example`)],
    ['userinfo after a port', withHost(`${host}:80@evil.example`)],
    ['userinfo with a password', withHost(`user:password@${host}`)],
    ['empty userinfo', withHost(`@${host}`)],
    ['encoded userinfo', withHost(`${host}%40evil.example`)],
    ['two at signs', withHost(`${host}@${host}@evil.example`)],
    ['a backslash before the at sign', withHost(`evil.example\\@${host}`)],
    ['a backslash after the host', withHost(`evil.example\\.${host}`)],
    ['backslashes for slashes', `https:\\\\${host}${path}`],
    ['a fragment before the host', withHost(`evil.example#@${host}`)],
    ['a query before the host', withHost(`evil.example?@${host}`)],
    ['an encoded fragment', withHost(`evil.example%23.${host}`)],
    ['a semicolon', withHost(`evil.example;${host}`)],
    ['a comma', withHost(`${host},evil.example`)],
    ['a subdomain of evil', withHost(`${host}.evil.example`)],
    ['a suffix on the host', withHost(`${host}evil.example`)],
    ['a prefix on the host', withHost(`evil${host}`)],
    ['a subdomain', withHost(`evil.${host}`)],
    ['evil in the path of slashes', '//evil.example'],
    ['evil after four slashes', '////evil.example'],
    ['evil after a backslash pair', '/\\evil.example'],
    ['evil after a tab', '/\t/evil.example'],
    ['the host in a query', `https://evil.example/?${host}${path}`],
    ['the host in a fragment', `https://evil.example/#https://${host}${path}`],
    ['the host in a path', `https://evil.example/${host}${path}`],
    ['javascript', `javascript://${host}${path}%0aalert(1)`],
    ['data', `data:text/html,https://${host}${path}`],
    ['vbscript', `vbscript:https://${host}${path}`],
    ['blob', `blob:https://${host}${path}`],
    ['a scheme inside a scheme', `view-source:https://${host}${path}`],
    ['a wildcard host', withHost('*')],
    ['a wildcard path', `https://${host}/*`],
  ];
}

/** What is appended to a registered path (R4), as it is, encoded and encoded twice. */
function pathConfusions(registered: string): RedirectAttack[] {
  const tails = [
    '/x',
    '/../x',
    '/./x',
    '/;/../../x',
    ';/x',
    '\n\r/../../x',
    '/..\\x',
    '//evil.example',
    '?next=x',
    '&x',
  ];
  const encodedDots = [
    '/%2e%2e/x',
    '/..%2Fx',
    '/..%252Fx',
    '%2Fx',
    '%3B%2Fx',
    '%0A%0D/../../x',
    '/%c0%ae%c0%ae/x',
    '%00',
  ];
  return [...tails, ...encodedDots].flatMap((tail): RedirectAttack[] => [
    [`${JSON.stringify(tail)} appended`, registered + tail],
    [`${JSON.stringify(tail)} appended and encoded`, registered + encodeURIComponent(tail)],
    [`${JSON.stringify(tail)} appended and encoded twice`, registered + encodeURIComponent(encodeURIComponent(tail))],
  ]);
}

/** Characters that parsers strip, split at or turn into others (R3), at both ends and within. */
function strangeCharacters(registered: string): RedirectAttack[] {
  const characters = [
    '\t',
    '\n',
    '\r',
    '\r\n',
    '\0',
    ' ',
    '\v',
    '\x7f',
    '\x85',
    '\u00a0',
    '\u200b',
    '\u2028',
    '\u2029',
    '\ufeff',
  ];
  const middle = Math.floor(registered.length / 2);
  return characters.flatMap((character): RedirectAttack[] => [
    [`${JSON.stringify(character)} in front`, character + registered],
    [`${JSON.stringify(character)} at the end`, registered + character],
    [`${JSON.stringify(character)} within`, registered.slice(0, middle) + character + registered.slice(middle)],
    [`${JSON.stringify(character)} in the scheme`, `ht${character}${registered.slice(2)}`],
  ]);
}

/** Addresses that are not `http://127.0.0.1/callback` on another port, however much they look it (R7). */
export const LOOPBACK_ATTACKS: readonly RedirectAttack[] = [
  ['port 0', 'http://127.0.0.1:0/callback'],
  ['an empty port', 'http://127.0.0.1:/callback'],
  ['a port with a zero in front', 'http://127.0.0.1:08080/callback'],
  ['port 65536', 'http://127.0.0.1:65536/callback'],
  ['a port of six digits', 'http://127.0.0.1:123456/callback'],
  ['a negative port', 'http://127.0.0.1:-1/callback'],
  ['a port with a sign', 'http://127.0.0.1:+80/callback'],
  ['a hexadecimal port', 'http://127.0.0.1:0x50/callback'],
  ['a port with a space', 'http://127.0.0.1: 80/callback'],
  ['a port in other digits', 'http://127.0.0.1:\u0668\u0660/callback'],
  ['two ports', 'http://127.0.0.1:80:80/callback'],
  ['userinfo after the port', 'http://127.0.0.1:80@evil.example/callback'],
  ['userinfo in front', 'http://user@127.0.0.1/callback'],
  ['a longer host', 'http://127.0.0.1.evil.example/callback'],
  ['a longer number', 'http://127.0.0.10/callback'],
  ['a backslash after the port', 'http://127.0.0.1:80\\@evil.example/callback'],
  ['a fragment after the port', 'http://127.0.0.1:80#@evil.example/callback'],
  ['another loopback address', 'http://127.0.0.2/callback'],
  ['a short address', 'http://127.1/callback'],
  ['a decimal address', 'http://2130706433/callback'],
  ['an octal address', 'http://0177.0.0.1/callback'],
  ['a hexadecimal address', 'http://0x7f.0.0.1/callback'],
  ['the unspecified address', 'http://0.0.0.0/callback'],
  ['the name localhost', 'http://localhost/callback'],
  ['the other family', 'http://[::1]/callback'],
  ['the other family written in full', 'http://[0:0:0:0:0:0:0:1]/callback'],
  ['an address mapped into the other family', 'http://[::ffff:127.0.0.1]/callback'],
  ['an address with a zone', 'http://[::1%25lo]/callback'],
  ['https', 'https://127.0.0.1/callback'],
  ['scheme in upper case', 'HTTP://127.0.0.1/callback'],
  ['no scheme', '//127.0.0.1/callback'],
  ['another path', 'http://127.0.0.1:8080/other'],
  ['a longer path', 'http://127.0.0.1:8080/callback/x'],
  ['a trailing slash', 'http://127.0.0.1:8080/callback/'],
  ['a query', 'http://127.0.0.1:8080/callback?x=1'],
  ['a fragment', 'http://127.0.0.1:8080/callback#x'],
  ['an encoded path', 'http://127.0.0.1:8080/%63allback'],
  ['a dot segment', 'http://127.0.0.1:8080/./callback'],
  ['a trailing dot', 'http://127.0.0.1./callback'],
];
