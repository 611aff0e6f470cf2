// The labels of a namespace that policies select by, the same for the token server and the controller.

import type { KubernetesObject } from '../objects/resources.ts';
import type { ObjectView } from './shared-reflector.ts';

const NAME_LABEL = 'kubernetes.io/metadata.name';

/** All labels of a namespace; undefined while it is not observed, which differs from a namespace without labels. */
export function labelsOf(
  namespaces: Pick<ObjectView, 'get'>,
  namespace: string,
): Readonly<Record<string, string>> | undefined {
  const object = namespaces.get(namespace);
  if (object === undefined) return undefined;
  const { labels } = object.metadata;
  // The API server sets this label on every namespace.
  return labels?.[NAME_LABEL] === namespace ? labels : { ...labels, [NAME_LABEL]: namespace };
}

/** The names of all observed namespaces. */
export function* namesOf(namespaces: Pick<ObjectView, 'objects'>): Iterable<string> {
  for (const { metadata } of namespaces.objects()) yield metadata.name;
}

/** Whether two states of a namespace are the same to policies. */
export function hasSameLabels({ metadata: now }: KubernetesObject, { metadata: then }: KubernetesObject): boolean {
  return JSON.stringify(now.labels) === JSON.stringify(then.labels);
}
