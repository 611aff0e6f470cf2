// The objects of one kind on an API server and their watch, for tests in which nothing else of it matters. test/cluster/
// tests against a real one.

import type { NewObject } from '../../src/kubernetes/api/kubernetes-api.ts';
import {
  apiVersionOf,
  type KubernetesObject,
  objectKey,
  type Resource,
} from '../../src/kubernetes/objects/resources.ts';
import type { ObjectChange } from '../../src/kubernetes/watch/object-store.ts';
import type { ObjectView } from '../../src/kubernetes/watch/shared-reflector.ts';

export class PlayedObjects implements ObjectView {
  readonly #resource: Resource;
  readonly #objects = new Map<string, KubernetesObject>();
  readonly #listeners = new Set<(change: ObjectChange) => void>();
  #version = 0;

  constructor(resource: Resource) {
    this.#resource = resource;
  }

  get(key: string): KubernetesObject | undefined {
    return this.#objects.get(key);
  }

  objects(): readonly KubernetesObject[] {
    return [...this.#objects.values()];
  }

  listen(listener: (change: ObjectChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Fields that are not given keep their values. @param gap whether the change comes from a relist */
  put(object: NewObject, gap: Pick<ObjectChange, 'mayHaveSkippedStates'> = {}): KubernetesObject {
    const key = objectKey(object.metadata);
    const before = this.#objects.get(key);
    const made = { uid: `uid-${object.metadata.name}`, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' };
    const metadata = { ...made, ...before?.metadata, ...object.metadata, resourceVersion: String(++this.#version) };
    const { kind } = this.#resource;
    const kept = { apiVersion: apiVersionOf(this.#resource), kind, ...before, ...object, metadata };
    this.#objects.set(key, kept);
    this.#tell({ type: 'put', key, object: kept, ...(before !== undefined && { before, ...gap }) });
    return kept;
  }

  delete(key: string): void {
    const object = this.#objects.get(key);
    if (object === undefined) return;
    this.#objects.delete(key);
    this.#tell({ type: 'delete', key, object });
  }

  #tell(change: ObjectChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
