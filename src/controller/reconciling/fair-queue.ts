// A queue of keys that serves the namespaces round-robin, so that thousands of objects applied in one namespace do not
// delay the others. Within a namespace, and among cluster-scoped objects, it is first in, first out.

/** The namespace in a key; empty for a cluster-scoped object. */
export function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}

export class FairQueue {
  /** In the order in which the namespaces are served; none is empty. */
  readonly #byNamespace = new Map<string, Set<string>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a key, unless it is queued already. @param key `<namespace>/<name>`, or `<name>` */
  add(key: string): void {
    const namespace = namespaceOf(key);
    const keys = this.#byNamespace.get(namespace) ?? new Set();
    if (keys.has(key)) return;
    this.#byNamespace.set(namespace, keys.add(key));
    this.#size += 1;
  }

  /** Takes the next key that may be taken, of a namespace that may be served; undefined when there is none. */
  take(mayBeServed: (namespace: string) => boolean, mayBeTaken: (key: string) => boolean): string | undefined {
    for (const [namespace, keys] of this.#byNamespace) {
      if (!mayBeServed(namespace)) continue;
      for (const key of keys) {
        if (!mayBeTaken(key)) continue;
        keys.delete(key);
        this.#size -= 1;
        this.#byNamespace.delete(namespace);
        if (keys.size > 0) this.#byNamespace.set(namespace, keys);
        return key;
      }
    }
    return undefined;
  }

  clear(): void {
    this.#byNamespace.clear();
    this.#size = 0;
  }
}
