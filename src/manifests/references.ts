// Implements the lookup of referenced objects (admission/references) over the objects of a folder.

import type { ReferencedConfigMap, ReferencedSecret, References } from '../admission/references/references.ts';
import type { ManifestKind, ManifestObject } from './objects.ts';

export interface ReferenceOptions {
  readonly objects: readonly ManifestObject[];
  /** See {@link References.verifiersOf}. */
  readonly verifiersOf: References['verifiersOf'];
  /** Whether objects that are not in the folder are assumed to exist elsewhere (an offline check). */
  readonly assumeMissing: boolean;
}

const NAME_LABEL = 'kubernetes.io/metadata.name';

/** The references that the objects of a folder resolve. */
export function manifestReferences({ objects, verifiersOf, assumeMissing }: ReferenceOptions): References {
  const index = new Map(objects.map((object) => [keyOf(object.kind, object.namespace, object.name), object]));
  const objectOf = (kind: ManifestKind, namespace: string, name: string) => index.get(keyOf(kind, namespace, name));
  const find = (kind: ManifestKind, namespace: string, name: string) => objectOf(kind, namespace, name)?.manifest;
  return {
    secret: (namespace, name) => {
      const secret: ReferencedSecret | undefined = find('Secret', namespace, name);
      return secret ?? (assumeMissing ? 'assumed' : undefined);
    },
    configMap: (namespace, name) => {
      const configMap: ReferencedConfigMap | undefined = find('ConfigMap', namespace, name);
      return configMap ?? (assumeMissing ? 'assumed' : undefined);
    },
    serviceAccountUid: (namespace, name) =>
      objectOf('ServiceAccount', namespace, name)?.uid ?? (assumeMissing ? 'assumed' : undefined),
    namespaceLabels: (namespace) => ({
      ...labelsOf(find('Namespace', '', namespace)),
      // The API server sets this label on every Namespace and overrides the manifest.
      [NAME_LABEL]: namespace,
    }),
    verifiersOf,
    jwksOf: () => undefined,
  };
}

function keyOf(kind: ManifestKind, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

function labelsOf(manifest: Readonly<Record<string, unknown>> | undefined): Readonly<Record<string, string>> {
  const { labels } = (manifest?.metadata ?? {}) as { readonly labels?: unknown };
  if (typeof labels !== 'object' || labels === null) return {};
  const entries = Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return Object.fromEntries(entries);
}
