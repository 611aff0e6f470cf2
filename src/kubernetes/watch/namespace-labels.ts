// The labels of a namespace as policies are chosen by them, the same for token servers and controller.

import type { KubernetesObject } from '../objects/resources.ts';
import type { ObjectView } from './shared-reflector.ts';

const NAME_LABEL = 'kubernetes.io/metadata.name';

/** All labels of a namespace; undefined while it is not known. Nobody may take that for a namespace without labels. */
export function labelsOf(
  namespaces: Pick<ObjectView, 'get'>,
  namespace: string,
): Readonly<Record<string, string>> | undefined {
  const object = namespaces.get(namespace);
  if (object === undefined) return undefined;
  const { labels } = object.metadata;
  // The API server puts it on every namespace.
  return labels?.[NAME_LABEL] === namespace ? labels : { ...labels, [NAME_LABEL]: namespace };
}

/** Whether a namespace is to policies what it was. */
export function hasSameLabels({ metadata: now }: KubernetesObject, { metadata: then }: KubernetesObject): boolean {
  return JSON.stringify(now.labels) === JSON.stringify(then.labels);
}
