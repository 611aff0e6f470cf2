// Admission of all SigningKeys of a folder, where no keys are stored: each alone; a key that several of them import belongs
// to the oldest, and the oldest have room for their keys. The controller compares with the stored keys instead
// (served-keys.ts).

import type { SourceObject } from '../kinds/manifest.ts';
import { admitKey, type KeyContext, type KeyVerdict, withoutRoom } from './admit-key.ts';
import { isOlder, PUBLISHED_KEYS_MAX, revokedKeyIds } from './served-keys.ts';

/** The settings and objects that the SigningKeys of a folder are validated against. */
export interface KeysContext extends Pick<KeyContext, 'unknownFields' | 'references'> {
  /** See {@link KeyContext.releaseNamespace}; undefined where it is not known: then every namespace is one. */
  readonly releaseNamespace: string | undefined;
}

/** Validates every SigningKey, in the order given. Never throws or rejects, for any manifest. */
export async function admitKeys<Source extends SourceObject>(
  objects: readonly Source[],
  { releaseNamespace, ...context }: KeysContext,
): Promise<readonly KeyVerdict<Source>[]> {
  /** The name of the SigningKey that publishes a key, by namespace and key id. */
  const publishers = new Map<string, string>();
  /** How many SigningKeys have a key, by namespace. */
  const published = new Map<string, number>();
  const verdicts = new Map<Source, KeyVerdict<Source>>();
  for (const object of objects.toSorted((a, b) => (isOlder(a, b) ? -1 : 1))) {
    const nameOf = (keyId: string) => `${object.namespace}/${keyId}`;
    const alone = await admitKey(object, {
      ...context,
      releaseNamespace: releaseNamespace ?? object.namespace,
      revokedKeyIds: revokedKeyIds(objects.filter(({ namespace }) => namespace === object.namespace)),
      olderPublisher: (keyId) => publishers.get(nameOf(keyId)),
    });
    const count = published.get(object.namespace) ?? 0;
    const verdict = alone.accepted && count === PUBLISHED_KEYS_MAX ? withoutRoom(alone) : alone;
    if (verdict.accepted) published.set(object.namespace, count + 1);
    if (verdict.imported !== undefined) publishers.set(nameOf(verdict.imported.kid), object.name);
    verdicts.set(object, verdict);
  }
  return objects.flatMap((object) => verdicts.get(object) ?? []);
}
