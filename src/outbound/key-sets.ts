// The key sets that clients publish, fetched at use and cached: the adapter of ports/key-sets.ts.

import type { KeySetOwner, KeySets } from '../oauth/ports/key-sets.ts';
import type { VerificationKey } from '../oauth/values/jwk.ts';
import { PublishedSet, type PublishedSetOptions } from './published-set.ts';
import { WaitingRequests } from './waiting-requests.ts';

/** How many sets are cached; the least recently used one goes. */
const ADDRESSES_MAX = 1000;

export class PublishedKeySets implements KeySets<VerificationKey> {
  readonly #options: PublishedSetOptions;
  /** By namespace and address, the most recently used last: a fetch that waits for the slots of one namespace holds up no other. */
  readonly #sets = new Map<string, PublishedSet>();
  readonly #waiting = new WaitingRequests();

  constructor(options: PublishedSetOptions) {
    this.#options = options;
  }

  keysAt(owner: KeySetOwner, uri: string, kid: string | undefined): Promise<readonly VerificationKey[]> {
    const { namespace } = owner;
    const name = `${namespace} ${uri}`;
    const set = this.#sets.get(name) ?? new PublishedSet(namespace, uri, this.#options);
    this.#sets.delete(name);
    this.#sets.set(name, set);
    const [oldest] = this.#sets.keys();
    if (this.#sets.size > ADDRESSES_MAX && oldest !== undefined) this.#sets.delete(oldest);
    return set.keysFor(kid, () => this.#waiting.enter(owner));
  }
}
