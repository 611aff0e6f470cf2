// Lists all objects of a kind at one resourceVersion, in pages of a bounded size. When the continue token expires, it
// begins again once.

import type { KubernetesApi, Selection } from '../api/kubernetes-api.ts';
import { type KubernetesObject, objectKey, type Resource } from '../objects/resources.ts';
import { PageLimit } from './page-limit.ts';
import { isExpired, isOversized } from './watch-faults.ts';

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
