// The resources of one registry, by name and by identifier.

import type { Resource } from './resource.ts';

/** What an identifier stands for: a slash at the end makes it no other one. */
export function withoutFinalSlash(identifier: string): string {
  let end = identifier.length;
  // Not by a pattern: it would start again at every slash of an identifier that is full of them.
  while (identifier.endsWith('/', end)) end--;
  return identifier.slice(0, end);
}

/** One consistent set of resources; no two of them have the same identifier (`admission/` ensures that). */
export class Resources {
  static readonly NONE = new Resources([]);

  readonly #byName: ReadonlyMap<string, Resource>;
  readonly #byIdentifier: ReadonlyMap<string, Resource>;

  /**
   * @param accepted are found by name and by identifier
   * @param withheld are refused now and keep their identifiers: they restrict what others give there, and no name finds them
   */
  constructor(accepted: readonly Resource[], withheld: readonly Resource[] = []) {
    this.#byName = new Map(accepted.map((resource) => [`${resource.namespace}/${resource.name}`, resource]));
    this.#byIdentifier = new Map(
      [...accepted, ...withheld].map((resource) => [withoutFinalSlash(resource.identifier), resource]),
    );
  }

  /** The number of identifiers that have an owner. */
  get size(): number {
    return this.#byIdentifier.size;
  }

  /** The accepted resource of a name. */
  find(namespace: string, name: string): Resource | undefined {
    return this.#byName.get(`${namespace}/${name}`);
  }

  /** The resource whose owner decides on this audience; undefined where it has no owner. */
  ownerOf(audience: string): Resource | undefined {
    return this.size === 0 ? undefined : this.#byIdentifier.get(withoutFinalSlash(audience));
  }
}
