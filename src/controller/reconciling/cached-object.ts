// What the controller caches of objects that tenants write: the fields that it reads. Annotations, labels and the like may
// be as large as the API server takes them, in any number of objects.

import { classOf, DEFAULT_CLASS } from '../../admission/kinds/manifest.ts';
import { boundedSpec } from '../../admission/kinds/spec-size.ts';
import type { KubernetesObject, ObjectMeta } from '../../kubernetes/objects/resources.ts';
import { requestAnnotations } from './rotation-requests.ts';

/** An OAuthClient: its spec unless that is oversized, its status, and the rotations that it requests. */
export function cachedClient(object: KubernetesObject): KubernetesObject {
  const { apiVersion, kind, metadata, status } = object;
  const { generation, deletionTimestamp } = metadata;
  const annotations = requestAnnotations(object);
  return {
    apiVersion,
    kind,
    metadata: {
      ...identityOf(metadata),
      ...(generation !== undefined && { generation }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: boundedSpec(object),
    ...(status !== undefined && { status }),
  };
}

/** A ProtectedResource or an IdentityProvider: its spec unless that is oversized, and its status. */
export function cachedResource(object: KubernetesObject): KubernetesObject {
  const { metadata, ...rest } = cachedClient(object);
  const { annotations: _, ...kept } = metadata;
  return { ...rest, metadata: kept } as KubernetesObject;
}

/** An object of a class in the form that `keep` gives it; one of another class as its identity and class. */
export function ofClass(
  object: KubernetesObject,
  className: string,
  keep: (object: KubernetesObject) => KubernetesObject,
): KubernetesObject {
  const other = classOf(object);
  if (other === className) return keep(object);
  const { apiVersion, kind, metadata } = object;
  const spec = other === DEFAULT_CLASS ? {} : { className: other };
  return { apiVersion, kind, metadata: identityOf(metadata), spec };
}

/** A ConfigMap or ServiceAccount: which object of its name it is, and whether it is being deleted. */
export function cachedIdentity({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { deletionTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { ...identityOf(metadata), ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
  };
}

function identityOf({ name, namespace, uid, resourceVersion, creationTimestamp }: ObjectMeta): ObjectMeta {
  const place = namespace === undefined ? { name } : { name, namespace };
  return { ...place, uid, resourceVersion, creationTimestamp };
}
