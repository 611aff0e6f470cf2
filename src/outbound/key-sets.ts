// The key sets that clients publish, fetched at use and cached: the adapter of ports/key-sets.ts.

import type { KeySets } from '../oauth/ports/key-sets.ts';
import type { VerificationKey } from '../oauth/values/jwk.ts';
import { PublishedSet, type PublishedSetOptions } from './published-set.ts';

/** How many addresses are cached; the least recently used one goes. */
const ADDRESSES_MAX = 1000;

export class PublishedKeySets implements KeySets<VerificationKey> {
  readonly #options: PublishedSetOptions;
  /** By address, the most recently used last. */
  readonly #sets = new Map<string, PublishedSet>();

  constructor(options: PublishedSetOptions) {
    this.#options = options;
  }

  keysAt(uri: string, kid: string | undefined): Promise<readonly VerificationKey[]> {
    const set = this.#sets.get(uri) ?? new PublishedSet(uri, this.#options);
    this.#sets.delete(uri);
    this.#sets.set(uri, set);
    const [oldest] = this.#sets.keys();
    if (this.#sets.size > ADDRESSES_MAX && oldest !== undefined) this.#sets.delete(oldest);
    return set.keysFor(kid);
  }
}
