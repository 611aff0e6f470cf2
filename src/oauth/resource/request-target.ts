// The addresses that a DPoP proof may name for a request to an API: its configured origins with the path of the request, in any
// spelling of one meaning (RFC 9449 §4.3 check 9, RFC 3986 §6.2.2 and §6.2.3).

const UNRESERVED = /^[A-Za-z0-9._~-]$/;

/** A request target in its parts. The query is without its question mark. */
export interface RequestTarget {
  readonly path: string;
  readonly query: string;
}

/** Reads a target in origin form or absolute form (RFC 9112 §3.2); of the latter the authority has no say. */
export function readTarget(target: string): RequestTarget {
  const [beforeFragment = ''] = target.split('#', 1);
  const relative = beforeFragment.replace(/^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?]*/, '');
  const mark = relative.indexOf('?');
  const path = mark < 0 ? relative : relative.slice(0, mark);
  return { path: path === '' ? '/' : path, query: mark < 0 ? '' : relative.slice(mark + 1) };
}

/** The addresses of a path, one at each origin. */
export function targetAddresses(origins: readonly string[], path: string): readonly string[] {
  return origins.map((origin) => `${origin}${normalizedPath(path)}`);
}

/**
 * A path with its escapes in upper case, unreserved characters unescaped and dot segments removed (RFC 3986 §6.2.2).
 * Normalising twice changes nothing more.
 */
export function normalizedPath(path: string): string {
  const unescaped = path.replace(/%([0-9A-Fa-f]{2})/g, (escaped, digits: string) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16));
    return UNRESERVED.test(character) ? character : escaped.toUpperCase();
  });
  return withoutDotSegments(unescaped);
}

/** RFC 3986 §5.2.4, for paths that begin with a slash. */
function withoutDotSegments(path: string): string {
  const segments = path.split('/').slice(1);
  const kept: string[] = [];
  for (const segment of segments) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  const last = segments.at(-1);
  const isFolder = last === '.' || last === '..';
  return `/${kept.join('/')}${isFolder && kept.length > 0 ? '/' : ''}`;
}
