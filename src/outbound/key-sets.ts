// The key sets that clients publish, fetched at use and cached: the adapter of ports/key-sets.ts.

import type { KeySetOwner, KeySets } from '../oauth/ports/key-sets.ts';
import type { VerificationKey } from '../oauth/values/jwk.ts';
import { PublishedSet, type PublishedSetOptions } from './published-set.ts';
import { WaitingRequests } from './waiting-requests.ts';

/** How many sets of a namespace, and of how many namespaces, are cached; the least recently used one goes. */
const OF_A_NAMESPACE = 1000;
const NAMESPACES = 10_000;

export class PublishedKeySets implements KeySets<VerificationKey> {
  readonly #options: PublishedSetOptions;
  /** By namespace and address, the most recently used last: a fetch that waits for the slots of one namespace holds up no other. */
  readonly #sets = new Map<string, Map<string, PublishedSet>>();
  readonly #waiting = new WaitingRequests();

  constructor(options: PublishedSetOptions) {
    this.#options = options;
  }

  keysAt(owner: KeySetOwner, uri: string, kid: string | undefined): Promise<readonly VerificationKey[]> {
    const { namespace } = owner;
    const ofNamespace = this.#sets.get(namespace) ?? new Map<string, PublishedSet>();
    const set = ofNamespace.get(uri) ?? new PublishedSet(namespace, uri, this.#options);
    use(this.#sets, { name: namespace, value: ofNamespace, most: NAMESPACES });
    use(ofNamespace, { name: uri, value: set, most: OF_A_NAMESPACE });
    return set.keysFor(kid, () => this.#waiting.enter(owner));
  }
}

/** Makes an entry the most recently used one, and drops the least recently used one above the bound. */
function use<Value>(
  entries: Map<string, Value>,
  { name, value, most }: { readonly name: string; readonly value: Value; readonly most: number },
): void {
  entries.delete(name);
  entries.set(name, value);
  const [oldest] = entries.keys();
  if (entries.size > most && oldest !== undefined) entries.delete(oldest);
}
