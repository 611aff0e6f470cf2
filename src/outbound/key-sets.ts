// The key sets that clients publish, fetched at use and cached: the adapter of ports/key-sets.ts.

import { type KeySetOwner, type KeySets, keySetLimited } from '../oauth/ports/key-sets.ts';
import type { VerificationKey } from '../oauth/values/jwk.ts';
import { PublishedSet, type PublishedSetOptions } from './published-set.ts';

/** How many sets of a namespace, and of how many namespaces, are cached; the least recently used one goes. */
const SETS_OF_NAMESPACE = 1000;
const NAMESPACES = 10_000;
/** How many requests of a client, and of a namespace, wait for key sets at once. */
const WAITING_OF_CLIENT = 64;
const WAITING_OF_NAMESPACE = 256;

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
    use(ofNamespace, { name: uri, value: set, most: SETS_OF_NAMESPACE });
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

/**
 * The requests that wait for a key set, bounded: each holds its body meanwhile, and any caller can send requests that name a
 * client.
 */
class WaitingRequests {
  readonly #ofClients = new Map<string, number>();
  readonly #ofNamespaces = new Map<string, number>();

  /** Counts a request. @returns what ends its waiting, to be called once @throws OAuthError of {@link keySetLimited} */
  enter({ uid, namespace }: KeySetOwner): () => void {
    if ((this.#ofClients.get(uid) ?? 0) >= WAITING_OF_CLIENT) throw keySetLimited('client');
    if ((this.#ofNamespaces.get(namespace) ?? 0) >= WAITING_OF_NAMESPACE) throw keySetLimited('namespace');
    add(this.#ofClients, uid, 1);
    add(this.#ofNamespaces, namespace, 1);
    return () => {
      add(this.#ofClients, uid, -1);
      add(this.#ofNamespaces, namespace, -1);
    };
  }
}

function add(counts: Map<string, number>, name: string, change: 1 | -1): void {
  const count = (counts.get(name) ?? 0) + change;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}
