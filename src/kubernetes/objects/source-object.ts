// The conversion of an object of the API server into the input of admission.

import type { SourceObject } from '../../admission/kinds/manifest.ts';
import type { KubernetesObject } from './resources.ts';

/** The whole object is the manifest. */
export function sourceOf(object: KubernetesObject): SourceObject {
  const { namespace = '', name, uid, creationTimestamp, generation = 1 } = object.metadata;
  return { namespace, name, uid, createdAt: Date.parse(creationTimestamp), generation, manifest: object };
}
