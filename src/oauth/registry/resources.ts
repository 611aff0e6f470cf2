// The resources of one registry, by name and by identifier.

import type { Resource } from './resource.ts';

/** What an identifier stands for: a slash at the end makes it no other one. */
export function withoutFinalSlash(identifier: string): string {
  return identifier.replace(/\/+$/, '');
}

/** One consistent set of accepted resources; no two of them have the same identifier (`admission/` ensures that). */
export class Resources {
  static readonly NONE = new Resources([]);

  readonly #byName: ReadonlyMap<string, Resource>;
  readonly #byIdentifier: ReadonlyMap<string, Resource>;

  constructor(resources: readonly Resource[]) {
    this.#byName = new Map(resources.map((resource) => [`${resource.namespace}/${resource.name}`, resource]));
    this.#byIdentifier = new Map(resources.map((resource) => [withoutFinalSlash(resource.identifier), resource]));
  }

  get size(): number {
    return this.#byName.size;
  }

  find(namespace: string, name: string): Resource | undefined {
    return this.#byName.get(`${namespace}/${name}`);
  }

  /** The resource whose owner decides on this audience; undefined where it has no owner. */
  ownerOf(audience: string): Resource | undefined {
    return this.size === 0 ? undefined : this.#byIdentifier.get(withoutFinalSlash(audience));
  }
}
