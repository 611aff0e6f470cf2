// The network of an IP address, by the length of its prefix.

/** The usual network of one subscriber or site: a retry may move within it. */
const SITE_OCTETS = 3;
const SITE_GROUPS = 3;

/**
 * Whether two addresses are of one family and in different networks: a /24 of IPv4, a /48 of IPv6. Addresses of two
 * families are not comparable: a client on a dual-stack network changes between them.
 */
export function areInDifferentNetworks(one: string, other: string): boolean {
  if (one.includes(':') !== other.includes(':')) return false;
  return siteOf(one) !== siteOf(other);
}

function siteOf(address: string): string {
  return address.includes(':')
    ? ipv6Groups(address).slice(0, SITE_GROUPS).join(':')
    : address.split('.').slice(0, SITE_OCTETS).join('.');
}

/** The eight groups of an IPv6 address, each of 16 bits. @param address without brackets and zone */
export function ipv6Groups(address: string): readonly number[] {
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array<string>(zeros).fill('0'), ...right].map((group) => Number.parseInt(group, 16));
}
