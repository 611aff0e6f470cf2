// The issuer identifier (RFC 8414 §2): its validation and its path.

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Why a text is not a valid issuer (RFC 8414 §2); undefined when it is. Clients compare the issuer byte by byte, so it
 * must be spelled as a URL parser serializes it.
 */
export function issuerFault(issuer: string): string | undefined {
  const url = URL.parse(issuer);
  if (url === null || !['https:', 'http:'].includes(url.protocol)) return 'is not an http or https address';
  if (url.protocol === 'http:' && !LOOPBACK.has(url.hostname)) return 'needs https: http is for loopback only';
  if (url.username !== '' || url.password !== '') return 'holds a user name or password';
  if (/[?#]/.test(issuer)) return 'has a query or a fragment';
  if (issuer.endsWith('/')) return 'ends with a slash';
  const path = issuerPath(issuer);
  const plain = `${url.origin}${path}`;
  if (issuer !== plain) return `is not in its plain form ${plain}`;
  if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(path)) return 'has an unusual path';
  return undefined;
}

/** The path of an issuer, below which all public routes are: empty, or with a slash in front and none behind. */
export function issuerPath(issuer: string): string {
  return new URL(issuer).pathname.replace(/\/$/, '');
}
