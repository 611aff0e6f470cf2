// What this process wrote and its watch has not told yet. Whoever plans by the state it left must not plan by the one
// before: it would make a second secret, or write the same status twice.

import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';

interface Written {
  /** Undefined after a deletion. */
  readonly object: KubernetesObject | undefined;
  /** Of it, or of what was deleted. */
  readonly uid: string | undefined;
  /** The states it replaced: while the watch tells of one of them, it is behind. Undefined: there was none. */
  readonly replaced: ReadonlySet<string | undefined>;
}

/** A view of watched objects, with own writes in it at once. */
export class OwnWrites {
  readonly #view: ObjectView;
  readonly #written = new Map<string, Written>();
  /** The uids of objects that went while a write of their key was under way. */
  readonly #goneMeanwhile = new Map<string, Set<string>>();

  constructor(view: ObjectView) {
    this.#view = view;
  }

  get(key: string): KubernetesObject | undefined {
    const watched = this.#view.get(key);
    const written = this.#written.get(key);
    if (written === undefined) return watched;
    if (written.replaced.has(versionOf(watched))) return written.object;
    this.#written.delete(key);
    return watched;
  }

  /**
   * Sends a write, one of each key at a time, and knows from its answer on what it left. The watch may have told more than
   * the answer by then: what it tells of anew since the write began is not taken for older.
   * @param send answers with the object as the API server did; undefined after a deletion
   * @throws what `send` throws
   */
  async write<Answer extends KubernetesObject | undefined>(key: string, send: () => Promise<Answer>): Promise<Answer> {
    const before = this.#written.get(key);
    const watched = this.#view.get(key);
    const replaced = new Set(before?.replaced).add(versionOf(watched));
    if (before !== undefined) replaced.add(versionOf(before.object));
    const gone = new Set<string>();
    this.#goneMeanwhile.set(key, gone);
    try {
      const object = await send();
      // An apply that changed nothing replaces nothing.
      if (object !== undefined) replaced.delete(versionOf(object));
      const { uid } = object?.metadata ?? before ?? watched?.metadata ?? {};
      if (object === undefined || !gone.has(object.metadata.uid)) this.#written.set(key, { object, uid, replaced });
      return object;
    } finally {
      this.#goneMeanwhile.delete(key);
    }
  }

  /** To be called when the watch tells that an object is gone: then it is not meant again. Another of its name may be. */
  gone(key: string, uid: string): void {
    this.#goneMeanwhile.get(key)?.add(uid);
    if (this.#written.get(key)?.uid === uid) this.#written.delete(key);
  }
}

function versionOf(object: KubernetesObject | undefined): string | undefined {
  return object?.metadata.resourceVersion;
}
