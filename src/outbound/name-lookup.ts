// Looks up the addresses of a host that a tenant chose: in the hosts file, then at the name servers. getaddrinfo is never called: it
// cannot be stopped, and a few calls that wait for a name server without answers make all lookups of the process wait, those for Redis and
// identity providers included. Search domains do not apply.

import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

/** Every address of a host: of a name, or itself, an IPv6 address in brackets. @param signal may end the lookup */
export type AddressLookup = (host: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

export interface NameLookupOptions {
  /** `ADDRESS:PORT`; default: those of the system. */
  readonly nameServers?: readonly string[];
  /** Default: `/etc/hosts`. */
  readonly hostsFile?: string;
}

/** Two tries of one name server take 1.5 seconds: the pause doubles. Milliseconds. */
const TRIES = { timeout: 500, tries: 2 };

/** Neither the hosts file nor a name server has the name. The message is for the operator's log: it repeats no input. */
export class UnknownNameError extends Error {
  readonly code = 'ENOTFOUND';

  constructor() {
    super('no such name; search domains do not apply: a Service is NAME.NAMESPACE.svc.cluster.local');
    this.name = 'UnknownNameError';
  }
}

/** The lookup of the system, for a process with one tenant. It goes on after the signal. */
export const systemLookup: AddressLookup = (host) => lookup(unbracketed(host), { all: true });

/** A lookup that rejects with UnknownNameError or, where no name server answers in time or one fails, an error of `node:dns`. */
export function nameLookup({ nameServers, hostsFile = '/etc/hosts' }: NameLookupOptions = {}): AddressLookup {
  return async (host, signal) => {
    signal.throwIfAborted();
    const address = unbracketed(host);
    const family = isIP(address);
    if (family !== 0) return [{ address, family }];
    const listed = addressesInFile(hostsFile, host);
    if (listed.length > 0) return listed;
    if (!host.includes('.')) throw new UnknownNameError();
    const resolver = new Resolver(TRIES);
    if (nameServers !== undefined) resolver.setServers(nameServers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await resolved(resolver, host);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

function unbracketed(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

/**
 * The addresses of a name in a hosts file (hosts(5)), in its order; none where there is no file. It is read at each lookup, so that
 * changes count, and without a thread: calls of getaddrinfo by other parts of the process may hold all of them.
 */
function addressesInFile(file: string, host: string): readonly LookupAddress[] {
  return contentOf(file)
    .split('\n')
    .flatMap((line) => {
      const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
      const isListed = names.some((name) => name.toLowerCase() === host);
      return isListed && isIP(address) !== 0 ? [{ address, family: isIP(address) }] : [];
    });
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

/** The addresses of both families; one family is enough. A server that failed or was silent for one makes no name unknown. */
async function resolved(resolver: Resolver, host: string): Promise<readonly LookupAddress[]> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const found = [...addressesIn(v4, 4), ...addressesIn(v6, 6)];
  if (found.length > 0) return found;
  const errors = [v4, v6].flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  throw errors.find(({ code }) => code !== 'ENOTFOUND') ?? new UnknownNameError();
}

function addressesIn(answer: PromiseSettledResult<readonly string[]>, family: 4 | 6): readonly LookupAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : [];
}
