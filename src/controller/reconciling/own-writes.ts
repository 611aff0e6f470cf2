// A read-your-writes overlay over the informer cache: it returns what this process wrote until the watch has delivered
// it. A reconcile that planned from the stale cache would generate a second secret, or write the same status twice.

import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';

interface OwnWrite {
  /** Undefined after a deletion. */
  readonly object: KubernetesObject | undefined;
  /** Of the object, or of the deleted one. */
  readonly uid: string | undefined;
  /** The resource versions that it replaced: a cache with one of them is stale. Undefined: the object did not exist. */
  readonly stale: ReadonlySet<string | undefined>;
}

/** A view of watched objects that includes own writes at once. */
export class OwnWrites {
  readonly #view: ObjectView;
  readonly #written = new Map<string, OwnWrite>();
  /** The uids of objects that were deleted during a write of their key. */
  readonly #deletedDuringWrite = new Map<string, Set<string>>();

  constructor(view: ObjectView) {
    this.#view = view;
  }

  get(key: string): KubernetesObject | undefined {
    const cached = this.#view.get(key);
    const written = this.#written.get(key);
    if (written === undefined) return cached;
    if (written.stale.has(versionOf(cached))) return written.object;
    this.#written.delete(key);
    return cached;
  }

  /**
   * Sends a write, one of each key at a time, and returns its result from `get` until the watch has delivered it. The
   * watch may be ahead of the response: a version that it delivers after the write began is not considered stale.
   * @param send resolves with the object as the API server returned it; undefined after a deletion
   * @throws what `send` throws
   */
  async write<Answer extends KubernetesObject | undefined>(key: string, send: () => Promise<Answer>): Promise<Answer> {
    const before = this.#written.get(key);
    const cached = this.#view.get(key);
    const stale = new Set(before?.stale).add(versionOf(cached));
    if (before !== undefined) stale.add(versionOf(before.object));
    const gone = new Set<string>();
    this.#deletedDuringWrite.set(key, gone);
    try {
      const object = await send();
      // An apply that changed nothing replaces nothing.
      if (object !== undefined) stale.delete(versionOf(object));
      const { uid } = object?.metadata ?? before ?? cached?.metadata ?? {};
      if (object === undefined || !gone.has(object.metadata.uid)) this.#written.set(key, { object, uid, stale });
      return object;
    } finally {
      this.#deletedDuringWrite.delete(key);
    }
  }

  /** Whether a write of this key has no result yet. */
  isWriting(key: string): boolean {
    return this.#deletedDuringWrite.has(key);
  }

  /**
   * To be called when the watch delivers a deletion: drops the write to that object, not to another one of the same
   * name.
   */
  gone(key: string, uid: string): void {
    this.#deletedDuringWrite.get(key)?.add(uid);
    if (this.#written.get(key)?.uid === uid) this.#written.delete(key);
  }
}

function versionOf(object: KubernetesObject | undefined): string | undefined {
  return object?.metadata.resourceVersion;
}
