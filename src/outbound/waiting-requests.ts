// How many requests wait for a key set at once, of one client and of one namespace: each holds its body meanwhile, and anyone can
// send requests that name a client.

import { type KeySetOwner, keySetLimited } from '../oauth/ports/key-sets.ts';

const OF_A_CLIENT = 64;
const OF_A_NAMESPACE = 256;

export class WaitingRequests {
  readonly #ofClients = new Map<string, number>();
  readonly #ofNamespaces = new Map<string, number>();

  /** Counts a request. @returns what ends its waiting, to be called once @throws OAuthError of {@link keySetLimited} */
  enter({ uid, namespace }: KeySetOwner): () => void {
    if ((this.#ofClients.get(uid) ?? 0) >= OF_A_CLIENT) throw keySetLimited('client');
    if ((this.#ofNamespaces.get(namespace) ?? 0) >= OF_A_NAMESPACE) throw keySetLimited('namespace');
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
