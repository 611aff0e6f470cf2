// Lists all objects of a kind at one resourceVersion, in pages of a bounded size. When the continue token expires, it
// begins again once.

import type { KubernetesApi, Selection } from '../api/kubernetes-api.ts';
import { type KubernetesObject, objectKey, type Resource } from '../objects/resources.ts';
import { isExpired, isOversized } from './watch-faults.ts';

const MOST_OBJECTS = 500;
/** Few: the API server reads a whole page before it sends any of it, and objects may be of a mebibyte each. */
const FIRST_OBJECTS = 32;
const LARGEST_PAGE = 8 * 1024 * 1024;
/** The size that pages are to have. */
const USUAL_PAGE = LARGEST_PAGE / 2;
/** How many times fewer objects the next page has when one was too large: objects may be a thousand times the usual. */
const SHRINK = 8;

export interface Listing {
  /** By their keys. */
  readonly objects: Map<string, KubernetesObject>;
  /** The version at which a watch starts. */
  readonly resourceVersion: string;
}

/** @param options.keep the form in which an object is stored. @throws KubernetesError */
export async function listAll(options: {
  readonly api: Pick<KubernetesApi, 'list'>;
  readonly resource: Resource;
  readonly selection: Selection;
  readonly keep: (key: string, object: KubernetesObject) => KubernetesObject;
  readonly signal: AbortSignal;
}): Promise<Listing> {
  const { api, resource, selection, keep, signal } = options;
  const objects = new Map<string, KubernetesObject>();
  const limit = new PageLimit();
  let next: string | undefined;
  let mayBeginAgain = true;
  for (;;) {
    try {
      const { objects: most, bytes: maxBytes } = limit;
      const page = await api.list(resource, { ...selection, limit: most, maxBytes, continue: next, signal });
      // Pruned page by page: only one page of whole objects is in memory at a time.
      for (const item of page.items) {
        const key = objectKey(item.metadata);
        objects.set(key, keep(key, item));
      }
      if (page.continue === undefined) return { objects, resourceVersion: page.resourceVersion };
      next = page.continue;
      limit.received(page.bytes);
    } catch (error) {
      if (isOversized(error)) limit.exceeded();
      else if (isExpired(error) && next !== undefined && mayBeginAgain) {
        objects.clear();
        next = undefined;
        mayBeginAgain = false;
      } else throw error;
    }
  }
}

/** The length of the pages of one list: as many objects as give pages of a bounded size, whatever size the objects have. */
class PageLimit {
  #objects = FIRST_OBJECTS;

  /** The most objects of the next page. */
  get objects(): number {
    return this.#objects;
  }

  /** The most bytes of the next page; undefined for a single object, which no request can make smaller. */
  get bytes(): number | undefined {
    return this.#objects === 1 ? undefined : LARGEST_PAGE;
  }

  /** A page came. The next one may be twice as long where objects are small. @param bytes its size */
  received(bytes: number): void {
    const fitting = Math.floor((this.#objects * USUAL_PAGE) / Math.max(1, bytes));
    this.#objects = Math.max(1, Math.min(fitting, 2 * this.#objects, MOST_OBJECTS));
  }

  /** A page had more than {@link bytes}. */
  exceeded(): void {
    this.#objects = Math.max(1, Math.floor(this.#objects / SHRINK));
  }
}
