// All objects of a kind as of one moment, in pages where the API server still has what they are cut from.

import type { KubernetesApi, Selection } from '../api/kubernetes-api.ts';
import { type KubernetesObject, objectKey, type Resource } from '../objects/resources.ts';
import { isExpired } from './watch-faults.ts';

const PAGE = 500;

export interface Listing {
  /** By their keys. */
  readonly objects: Map<string, KubernetesObject>;
  /** What a watch goes on from. */
  readonly resourceVersion: string;
}

/** @param options.keep what is kept of an object. @throws KubernetesError */
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
      // Page by page: of what is not kept only one page is ever held.
      for (const item of page.items) {
        const key = objectKey(item.metadata);
        objects.set(key, keep(key, item));
      }
      if (page.continue === undefined) return { objects, resourceVersion: page.resourceVersion };
      limit = { limit: PAGE, continue: page.continue };
    } catch (error) {
      // What the pages are cut from is gone already: once more, in one piece.
      if (!isExpired(error) || limit.continue === undefined) throw error;
      objects.clear();
      limit = {};
    }
  }
}
