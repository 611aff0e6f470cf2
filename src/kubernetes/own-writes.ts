// What this process wrote and its watch has not told yet. Whoever plans by the state it left must not plan by the one
// before: it would make a second secret, or write the same status twice.

import type { KubernetesObject } from './resources.ts';
import type { ObjectView } from './watched.ts';

interface Written {
  /** Undefined after a deletion. */
  readonly object: KubernetesObject | undefined;
  /** The states it replaced: while the watch tells of one of them, it is behind. Undefined: there was none. */
  readonly replaced: ReadonlySet<string | undefined>;
}

/** A view of watched objects, with own writes in it at once. */
export class OwnWrites {
  readonly #view: ObjectView;
  readonly #written = new Map<string, Written>();

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

  /** @param object as the API server answered; undefined after a deletion */
  wrote(key: string, object: KubernetesObject | undefined): void {
    const before = this.#written.get(key);
    const replaced = new Set(before?.replaced).add(versionOf(this.#view.get(key)));
    if (before !== undefined) replaced.add(versionOf(before.object));
    // An apply that changed nothing replaces nothing.
    replaced.delete(versionOf(object));
    this.#written.set(key, { object, replaced });
  }

  /** To be called when the watch tells that the object is gone: then none is meant again. */
  gone(key: string): void {
    this.#written.delete(key);
  }
}

function versionOf(object: KubernetesObject | undefined): string | undefined {
  return object?.metadata.resourceVersion;
}
