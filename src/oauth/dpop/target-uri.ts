// The target URI of a DPoP proof (`htu`, RFC 9449 §4.3 check 9), compared with the addresses a resource is known by.

/** Scheme, authority, path; query and fragment have no say. In printable ASCII: other letters have lower cases among it. */
const TARGET_URI = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]+)([^?#]*)/;
const PRINTABLE_ASCII = /^[\x21-\x7e]+$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/**
 * Whether `htu` names one of the addresses: scheme and host in any case, the default port written or not, the path letter by
 * letter (RFC 3986 §6.2.2.1, §6.2.3).
 * @param spelled makes the paths of one meaning one; default: two paths of one meaning are two paths
 */
export function isTargetUri(
  htu: string,
  addresses: readonly string[],
  spelled: (path: string) => string = asIs,
): boolean {
  const target = comparable(htu, spelled);
  return target !== undefined && addresses.some((address) => comparable(address, spelled) === target);
}

function asIs(path: string): string {
  return path;
}

function comparable(uri: string, spelled: (path: string) => string): string | undefined {
  const [, givenScheme, givenAuthority, path] = (PRINTABLE_ASCII.test(uri) && TARGET_URI.exec(uri)) || [];
  if (givenScheme === undefined || givenAuthority === undefined) return undefined;
  const scheme = givenScheme.toLowerCase();
  const authority = givenAuthority.toLowerCase().replace(/:(\d*)$/, (port, digits: string) => {
    return digits === '' || digits === DEFAULT_PORTS[scheme] ? '' : port;
  });
  return `${scheme}://${authority}${spelled(path || '/')}`;
}
