// Looks up the addresses of a host at the name servers. getaddrinfo is asked only for names that those do not know: it
// cannot be stopped, and two calls that wait for a dead name server make all lookups of the process wait, those of other
// clients and of Redis included. An address and `localhost` are no question for a name server.

import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { promisify } from 'node:util';

/** Every address of a host: of a name, or itself, an IPv6 address in brackets. @param signal may end the lookup */
export type AddressLookup = (host: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

export interface NameLookupOptions {
  /** `ADDRESS:PORT`; default: those of the system. */
  readonly nameServers?: readonly string[];
  /** For names that the name servers do not know: of the hosts file, below a search domain, `localhost`. Default: getaddrinfo. */
  readonly system?: (host: string) => Promise<readonly LookupAddress[]>;
}

/** Two tries of one name server take 1.5 seconds: the pause doubles. Milliseconds. */
const TRIES = { timeout: 500, tries: 2 };
/** The name does not exist, it has no such address, or there is no name server. A failure of a server is none of these. */
const UNKNOWN = ['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'];

const getAddresses = (host: string) => promisify(dnsLookup)(host, { all: true });

/** A lookup that rejects with the error of `node:dns`. */
export function nameLookup({ nameServers, system = getAddresses }: NameLookupOptions = {}): AddressLookup {
  return async (host, signal) => {
    signal.throwIfAborted();
    const address = host.replace(/^\[(.*)\]$/, '$1');
    const family = isIP(address);
    if (family !== 0) return [{ address, family }];
    // RFC 6761 §6.3; the hosts file has it.
    if (host === 'localhost') return await system(host);
    const resolver = new Resolver(TRIES);
    if (nameServers !== undefined) resolver.setServers(nameServers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await resolved(resolver, host);
    } catch (error) {
      if (!UNKNOWN.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      return await system(host);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

/** The addresses of both families; one family is enough. @throws the error of a server that failed, before any other */
async function resolved(resolver: Resolver, host: string): Promise<readonly LookupAddress[]> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const found = [...addressesIn(v4, 4), ...addressesIn(v6, 6)];
  if (found.length > 0) return found;
  const errors = [v4, v6].flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  throw errors.find(({ code }) => !UNKNOWN.includes(code)) ?? errors[0];
}

function addressesIn(answer: PromiseSettledResult<readonly string[]>, family: 4 | 6): readonly LookupAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : [];
}
