// The address of the caller: that of the peer or, behind trusted proxies, the one in X-Forwarded-For.
// No other forwarding header is read.

import { BlockList, isIP, isIPv4 } from 'node:net';

/** The configured proxies whose X-Forwarded-For is trusted. */
export class TrustedProxies {
  readonly #networks = new BlockList();

  /** @param networks addresses or CIDR blocks, e.g. `10.0.0.0/8`, `::1`. @throws Error when one is neither. */
  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = '', bits] = network.split('/');
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      if (bits === undefined) this.#networks.addAddress(address, family);
      else this.#networks.addSubnet(address, Number(bits), family);
    }
  }

  /**
   * The rightmost address that is not a trusted proxy's: every entry further left was written by an untrusted peer.
   * Without trusted proxies the peer itself; at a malformed entry, the address to the right of it.
   */
  clientAddress(peer: string | undefined, forwardedFor: string | undefined): string {
    let address = plainAddress(peer ?? '') ?? '0.0.0.0';
    if (forwardedFor === undefined || !this.#trusts(address)) return address;
    for (const hop of forwardedFor.split(',').reverse()) {
      const next = plainAddress(hop.trim());
      if (next === undefined) return address;
      address = next;
      if (!this.#trusts(address)) return address;
    }
    return address;
  }

  #trusts(address: string): boolean {
    return this.#networks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  }
}

/** The address without zone, port and IPv4-in-IPv6 wrapping; undefined when it is none. */
function plainAddress(text: string): string | undefined {
  const unwrapped = text.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return isIP(unwrapped) === 0 ? undefined : unwrapped;
}

/** The key under which attempts from an address are counted: an IPv4 address, or the /64 of an IPv6 one. */
export function addressNetwork(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.toLowerCase().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  const groups = [...left, ...Array<string>(zeros).fill('0'), ...right];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
