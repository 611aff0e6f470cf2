// The form in which a token server caches the objects of which there are as many as clients: plain objects of the fields
// that are read.

import {
  type ClientVerifiers,
  readVerifierSecret,
  VERIFIER_SECRET_TYPE,
} from '../admission/client-secrets/client-verifier.ts';
import type { KubernetesObject, ObjectMeta } from '../kubernetes/objects/resources.ts';

/** A verifier Secret in the cache. */
export interface CachedVerifiers extends KubernetesObject {
  readonly type: typeof VERIFIER_SECRET_TYPE;
  /** With the uid of the client that they belong to. Undefined where they cannot be read. */
  readonly verifiers: (ClientVerifiers & { readonly uid: string }) | undefined;
}

/** The cached form of a Secret of the type for verifiers. */
export function cachedVerifiers(object: KubernetesObject): CachedVerifiers {
  const { apiVersion, kind, metadata } = object;
  return {
    apiVersion,
    kind,
    metadata: cachedMetadata(metadata),
    type: VERIFIER_SECRET_TYPE,
    verifiers: readVerifierSecret(object),
  };
}

/** Whether the object is a verifier Secret in its cached form. */
export function isCachedVerifiers(object: KubernetesObject): object is CachedVerifiers {
  return object.type === VERIFIER_SECRET_TYPE;
}

/** Without labels, annotations and the entries of field managers, which can be larger than the rest of an object. */
function cachedMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace = '', uid, resourceVersion, creationTimestamp, generation = 1, deletionTimestamp } = metadata;
  const cached = { name, namespace, uid, resourceVersion, creationTimestamp, generation };
  return deletionTimestamp === undefined ? cached : { ...cached, deletionTimestamp };
}
