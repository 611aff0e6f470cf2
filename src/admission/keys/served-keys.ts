// Selects the stored keys that the token servers serve, and the one that signs: the same result in every replica. A key
// that several SigningKeys have is that of the oldest.

import type { SigningAlgorithm } from '../../oauth/values/signature.ts';
import { fieldsOf, type SourceObject } from '../kinds/manifest.ts';
import { isRs256, RS256_SIGNING_KEY } from './default-signing-keys.ts';
import type { StoredKey } from './key-secret.ts';

/** The algorithm that signs where there are keys of several. */
const PREFERRED_ALGORITHM: SigningAlgorithm = 'ES256';

/** How many keys are published: as many as any library reads that bounds the work of a key set. */
export const PUBLISHED_KEYS_MAX = 16;

/** A key in the JWKS. */
type ServedKey<Key extends StoredKey> = Key & { readonly state: Exclude<StoredKey['state'], 'Revoked'> };

/**
 * The keys to serve, in the order of a `KeyRing`: of several Active ones the newest of the preferred algorithm signs. A
 * suspended SigningKey removes its keys, `spec.revokedKeyIds` of any one the keys it names; no other field of a manifest removes a
 * key, so that a mistake in it does not invalidate every token. Keys of a deleted SigningKey come last. No key id occurs
 * twice. Keys of {@link RS256_SIGNING_KEY} come after all others: it must not take over the access tokens of an install.
 * @param objects the SigningKeys of the release namespace
 */
export function servedKeys<Key extends StoredKey>(
  objects: readonly SourceObject[],
  keys: readonly Key[],
): readonly ServedKey<Key>[] {
  const byName = new Map(objects.map((object) => [object.name, object]));
  const revoked = revokedKeyIds(objects);
  const age = ({ signingKeyName }: StoredKey) => byName.get(signingKeyName)?.createdAt ?? -Infinity;
  const rank = ({ algorithm }: StoredKey) => (algorithm === PREFERRED_ALGORITHM ? 1 : 0);
  const isSpare = ({ signingKeyName }: StoredKey) => Number(signingKeyName === RS256_SIGNING_KEY);
  const isHolder = (key: Key, other: Key) => {
    const [object, objectOfOther] = [byName.get(key.signingKeyName), byName.get(other.signingKeyName)];
    if (object !== undefined && objectOfOther !== undefined) return isOlder(object, objectOfOther);
    // Of deleted SigningKeys the age is not known.
    return object === objectOfOther ? key.signingKeyName < other.signingKeyName : object !== undefined;
  };
  const holders = new Map<string, ServedKey<Key>>();
  for (const key of keys) {
    if (revoked.has(key.keyId) || !isServed(key, byName.get(key.signingKeyName))) continue;
    const holder = holders.get(key.keyId);
    if (holder === undefined || isHolder(key, holder)) holders.set(key.keyId, key);
  }
  return [...holders.values()].sort(
    (a, b) =>
      compare(isSpare(a), isSpare(b)) ||
      Number(byName.has(b.signingKeyName)) - Number(byName.has(a.signingKeyName)) ||
      rank(b) - rank(a) ||
      compare(age(b), age(a)) ||
      compare(b.activatedAt ?? b.publishedAt, a.activatedAt ?? a.publishedAt) ||
      compare(a.keyId, b.keyId),
  );
}

/**
 * Whether other keys sign in place of a key whose SigningKey was deleted: access tokens, and ID tokens of RS256 where the
 * key may have signed those. A suspended SigningKey is meant to sign nothing, so no key waits for it.
 * @param objects the SigningKeys of the release namespace
 * @param keys the stored keys of all of them
 */
export function isReplaced(
  { algorithm }: StoredKey,
  { objects, keys }: { readonly objects: readonly SourceObject[]; readonly keys: readonly StoredKey[] },
): boolean {
  const names = new Set(objects.map(({ name }) => name));
  const signing = servedKeys(objects, keys).filter(
    ({ state, signingKeyName }) => state === 'Active' && names.has(signingKeyName),
  );
  if (!signing.some(({ signingKeyName }) => signingKeyName !== RS256_SIGNING_KEY)) return false;
  if (algorithm !== 'RS256' || signing.some((key) => key.algorithm === 'RS256')) return true;
  const successors = objects.filter(isRs256);
  return successors.length > 0 && successors.every(isSuspended);
}

/**
 * Whether one more key may be published. Where no key signs it may: the others make no room for it soon enough.
 * @param objects the SigningKeys of the release namespace
 * @param keys the stored keys of all of them
 */
export function mayPublish(objects: readonly SourceObject[], keys: readonly StoredKey[]): boolean {
  const served = servedKeys(objects, keys);
  return served.length < PUBLISHED_KEYS_MAX || !served.some(({ state }) => state === 'Active');
}

function isSuspended({ manifest }: SourceObject): boolean {
  return fieldsOf(fieldsOf(manifest).spec).suspended === true;
}

/** The key ids that any of these SigningKeys revokes: a key that leaked must not stay active in another ring. */
export function revokedKeyIds(objects: readonly SourceObject[]): ReadonlySet<string> {
  const lists = objects.map(({ manifest }) => fieldsOf(fieldsOf(manifest).spec).revokedKeyIds);
  return new Set(lists.flatMap((list: unknown) => (Array.isArray(list) ? (list as readonly string[]) : [])));
}

/**
 * The name of a SigningKey that publishes a key and is older than this one, which must not have the key then; undefined
 * when there is none. Two algorithms would have one kid.
 * @param objects the SigningKeys of the release namespace
 * @param keys the stored keys of all of them
 */
export function olderPublisher(
  keyId: string,
  object: SourceObject,
  { objects, keys }: { readonly objects: readonly SourceObject[]; readonly keys: readonly StoredKey[] },
): string | undefined {
  const holder = servedKeys(objects, keys).find((key) => key.keyId === keyId);
  const publisher = objects.find(({ name }) => name === holder?.signingKeyName);
  return publisher !== undefined && isOlder(publisher, object) ? publisher.name : undefined;
}

/** Whether the first of two SigningKeys is older; by name where they are of one age. */
export function isOlder(one: SourceObject, other: SourceObject): boolean {
  return one.createdAt < other.createdAt || (one.createdAt === other.createdAt && one.name < other.name);
}

function isServed<Key extends StoredKey>(key: Key, object: SourceObject | undefined): key is ServedKey<Key> {
  return key.state !== 'Revoked' && !(object !== undefined && isSuspended(object));
}

function compare<Value extends number | string>(a: Value, b: Value): number {
  return a < b ? -1 : Number(a > b);
}
