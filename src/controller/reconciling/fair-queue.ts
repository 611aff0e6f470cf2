// A queue of keys that serves the namespaces round-robin, so that thousands of objects applied in one namespace do not
// delay the others. Within a namespace, and among cluster-scoped objects, it is first in, first out.

export class FairQueue {
  /** In the order in which the namespaces are served; none is empty. */
  readonly #byNamespace = new Map<string, Set<string>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a key, unless it is queued already. @param key `<namespace>/<name>`, or `<name>` */
  add(key: string): void {
    const namespace = key.slice(0, Math.max(0, key.indexOf('/')));
    const keys = this.#byNamespace.get(namespace) ?? new Set();
    if (keys.has(key)) return;
    this.#byNamespace.set(namespace, keys.add(key));
    this.#size += 1;
  }

  /** Takes the next key that may be taken; undefined when there is none. */
  take(mayBeTaken: (key: string) => boolean): string | undefined {
    for (const [namespace, keys] of this.#byNamespace) {
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
