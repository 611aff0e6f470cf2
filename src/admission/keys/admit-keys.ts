// Judges all SigningKeys of a folder together, where no keys are stored: each by itself, a key that several of them import
// is that of the oldest, and the oldest have room for their keys. The controller compares with the stored keys instead
// (served-keys.ts).

import type { SourceObject } from '../kinds/manifest.ts';
import { admitKey, type KeyContext, type KeyVerdict, withoutRoom } from './admit-key.ts';
import { isOlder, PUBLISHED_KEYS_MAX, revokedKeyIds } from './served-keys.ts';

/** What the SigningKeys of a folder are judged by. */
export interface KeysContext extends Pick<KeyContext, 'unknownFields' | 'references'> {
  /** See {@link KeyContext.releaseNamespace}; undefined where it is not known: then every namespace is one. */
  readonly releaseNamespace: string | undefined;
}

/** Judges every SigningKey, in the order given. Never throws or rejects, for any manifest. */
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
    const judged = await admitKey(object, {
      ...context,
      releaseNamespace: releaseNamespace ?? object.namespace,
      revokedKeyIds: revokedKeyIds(objects.filter(({ namespace }) => namespace === object.namespace)),
      olderPublisher: (keyId) => publishers.get(nameOf(keyId)),
    });
    const count = published.get(object.namespace) ?? 0;
    const verdict = judged.accepted && count === PUBLISHED_KEYS_MAX ? withoutRoom(judged) : judged;
    if (verdict.accepted) published.set(object.namespace, count + 1);
    if (verdict.imported !== undefined) publishers.set(nameOf(verdict.imported.kid), object.name);
    verdicts.set(object, verdict);
  }
  return objects.flatMap((object) => verdicts.get(object) ?? []);
}
