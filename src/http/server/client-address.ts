// The address of the caller: that of the peer or, behind trusted proxies, the one in X-Forwarded-For.
// No other forwarding header is read.

import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net';
import { ipv6Groups } from '../../oauth/values/network.ts';

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
    if (forwardedFor === undefined || !this.#isMember(address)) return address;
    for (const hop of forwardedFor.split(',').reverse()) {
      const next = forwardedAddress(hop.trim());
      if (next === undefined) return address;
      address = next;
      if (!this.#isMember(address)) return address;
    }
    return address;
  }

  /** Whether the peer of a connection is one of them. */
  trusts(peer: string | undefined): boolean {
    const address = plainAddress(peer ?? '');
    return address !== undefined && this.#isMember(address);
  }

  #isMember(address: string): boolean {
    return this.#networks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  }
}

/** The address without zone and IPv4-in-IPv6 wrapping; undefined when it is none. */
function plainAddress(text: string): string | undefined {
  const unwrapped = text.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return isIP(unwrapped) === 0 ? undefined : unwrapped;
}

/** `1.2.3.4:5`, as load balancers of Azure and AWS and IIS write it, with its port of up to five digits. */
const IPV4_WITH_PORT = /^([\d.]+):\d{1,5}$/;
/** `[v6]` and `[v6]:5`. */
const IPV6_IN_BRACKETS = /^\[([^\]]+)\](?::\d{1,5})?$/;

/**
 * The address in an entry of X-Forwarded-For, in one spelling, without port, brackets and zone; undefined when it is
 * none. An IPv6 address with a port and without brackets is read as an address: the two look alike.
 */
function forwardedAddress(text: string): string | undefined {
  const bracketed = IPV6_IN_BRACKETS.exec(text)?.[1];
  const address = bracketed ?? IPV4_WITH_PORT.exec(text)?.[1] ?? text;
  if (isIPv4(address)) return bracketed === undefined ? address : undefined;
  if (!isIPv6(address)) return undefined;
  const [unzoned = ''] = address.split('%');
  return plainAddress(new SocketAddress({ address: unzoned, family: 'ipv6' }).address);
}

/** A network that attempts are counted under. */
export interface CountedNetwork {
  readonly network: string;
  /** How many times the limit of the smallest network applies. */
  readonly share: number;
}

/** The bits of IPv6 networks that a site may have, smallest first, and their shares. */
const IPV6_NETWORKS = [
  { bits: 64, share: 1 },
  { bits: 56, share: 4 },
  { bits: 48, share: 16 },
] as const;

/** The networks of an address: an IPv4 address by itself, or the /64, the /56 and the /48 of an IPv6 one. */
export function countedNetworks(address: string): readonly CountedNetwork[] {
  if (!address.includes(':')) return [{ network: address, share: 1 }];
  const numbers = ipv6Groups(address).slice(0, 4);
  return IPV6_NETWORKS.map(({ bits, share }) => {
    const last = (numbers[3] ?? 0) & (0xffff << (64 - bits));
    const text = [...numbers.slice(0, 3), last].map((number) => number.toString(16)).join(':');
    return { network: `${text}::/${bits}`, share };
  });
}
