// What a token server keeps of an OAuthClient: as text what it may have to judge again, because a tree of small objects
// takes four times the room of its text, and there may be a hundred thousand.

import { classOf, type SourceObject } from '../admission/manifest.ts';
import type { KubernetesObject } from './resources.ts';
import { sourceOf } from './source-object.ts';

/** An OAuthClient as a reflector keeps it. */
export type KeptClient = KubernetesObject & {
  /** The text of its `spec`; undefined for one of another class, of which nothing is kept. */
  readonly specText: string | undefined;
};

/** Keeps OAuthClients of one class. Namespaces, of which there are few, are kept once. */
export function clientKeeper(className: string): (object: KubernetesObject) => KubernetesObject {
  const namespaces = new Map<string, string>();
  const once = (namespace: string) => {
    const known = namespaces.get(namespace);
    if (known === undefined) namespaces.set(namespace, namespace);
    return known ?? namespace;
  };
  return (object) => {
    const { apiVersion, kind, metadata } = object;
    const {
      name,
      namespace = '',
      uid,
      resourceVersion,
      generation = 1,
      creationTimestamp,
      deletionTimestamp,
    } = metadata;
    const kept = { name, namespace: once(namespace), uid, resourceVersion, generation, creationTimestamp };
    const isOurs = classOf(object) === className;
    return {
      ...{ apiVersion, kind },
      metadata: deletionTimestamp === undefined ? kept : { ...kept, deletionTimestamp },
      specText: isOurs ? JSON.stringify(object.spec ?? null) : undefined,
    };
  };
}

/** Whether it is of this class and not being deleted. */
export function isOurs(object: KubernetesObject): object is KeptClient {
  return typeof object.specText === 'string' && object.metadata.deletionTimestamp === undefined;
}

/** The object as the judge takes it. */
export function sourceOfKept({ specText = 'null', ...object }: KeptClient): SourceObject {
  return sourceOf({ ...(object as KubernetesObject), spec: JSON.parse(specText) });
}
