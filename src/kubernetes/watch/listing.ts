// Lists all objects of a kind at one resourceVersion, in pages. When the continue token expires, it lists again without
// pages.

import type { KubernetesApi, Selection } from '../api/kubernetes-api.ts';
import { type KubernetesObject, objectKey, type Resource } from '../objects/resources.ts';
import { isExpired } from './watch-faults.ts';

const PAGE = 500;

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
  let limit: { limit?: number; continue?: string | undefined } = { limit: PAGE };
  for (;;) {
    try {
      const page = await api.list(resource, { ...selection, ...limit, signal });
      // Pruned page by page: only one page of whole objects is in memory at a time.
      for (const item of page.items) {
        const key = objectKey(item.metadata);
        objects.set(key, keep(key, item));
      }
      if (page.continue === undefined) return { objects, resourceVersion: page.resourceVersion };
      limit = { limit: PAGE, continue: page.continue };
    } catch (error) {
      // The continue token expired: list again, in one page.
      if (!isExpired(error) || limit.continue === undefined) throw error;
      objects.clear();
      limit = {};
    }
  }
}
