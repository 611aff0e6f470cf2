// An object of the API server as the judge takes it.

import type { SourceObject } from '../../admission/kinds/manifest.ts';
import type { KubernetesObject } from './resources.ts';

/** The whole object is the manifest. */
export function sourceOf(object: KubernetesObject): SourceObject {
  const { namespace = '', name, uid, creationTimestamp, generation = 1 } = object.metadata;
  return { namespace, name, uid, createdAt: Date.parse(creationTimestamp), generation, manifest: object };
}
