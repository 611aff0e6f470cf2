// The addresses that may be connected to on behalf of a client: those of the public internet, and the networks that the
// operator names. All others lead to the cluster, the node or its cloud (SSRF).

import ipaddr from 'ipaddr.js';

/** IPv6 addresses outside of it are allocated to no host of the internet. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

export class ReachableAddresses {
  readonly #networks: readonly (readonly [ipaddr.IPv4 | ipaddr.IPv6, number])[];

  /** @param networks addresses or CIDR blocks that are reachable beside the public ones. @throws Error when one is neither */
  constructor(networks: readonly string[]) {
    this.#networks = networks.map((network) => {
      if (network.includes('/')) return ipaddr.parseCIDR(network);
      const address = ipaddr.parse(network);
      return [address, address.kind() === 'ipv4' ? 32 : 128];
    });
  }

  /**
   * Whether an address may be connected to. An IPv4-mapped one is its IPv4 address; one that is translated or tunnelled
   * (NAT64, 6to4, Teredo) is not public, whatever it leads to.
   */
  includes(text: string): boolean {
    if (!ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    return isPublic(address) || this.#networks.some(([network, bits]) => isWithin(address, network, bits));
  }
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || isWithin(address, ...GLOBAL_UNICAST);
}

function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, network: ipaddr.IPv4 | ipaddr.IPv6, bits: number): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}
