// The conversion of an object of the API server into the input of admission.

import type { SourceObject } from '../../admission/kinds/manifest.ts';
import type { KubernetesObject } from './resources.ts';

/** An object of the API server as admission takes it. */
export interface ClusterSource<Manifest extends KubernetesObject = KubernetesObject> extends SourceObject {
  /** The whole object. */
  readonly manifest: Manifest;
}

export function sourceOf<Manifest extends KubernetesObject>(object: Manifest): ClusterSource<Manifest> {
  const { namespace = '', name, uid, creationTimestamp, generation = 1 } = object.metadata;
  return { namespace, name, uid, createdAt: Date.parse(creationTimestamp), generation, manifest: object };
}
