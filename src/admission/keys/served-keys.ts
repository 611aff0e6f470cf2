// Selects the stored keys that the token servers serve, and the one that signs: the same result in every replica.

import type { SigningAlgorithm } from '../../oauth/values/signature.ts';
import { fieldsOf, type SourceObject } from '../kinds/manifest.ts';
import type { StoredKey } from './key-secret.ts';

/** The algorithm that signs where there are keys of several. */
const PREFERRED_ALGORITHM: SigningAlgorithm = 'ES256';

/** A key in the JWKS. */
type ServedKey<Key extends StoredKey> = Key & { readonly state: Exclude<StoredKey['state'], 'Revoked'> };

/**
 * The keys to serve, in the order of a `KeyRing`: of several Active ones the newest of the preferred algorithm signs. A
 * suspended SigningKey removes its keys, `spec.revokedKeyIds` the keys it names; no other field of a manifest removes a
 * key, so that a mistake in it does not invalidate every token. Keys of a deleted SigningKey come last.
 * @param objects the SigningKeys of the release namespace
 */
export function servedKeys<Key extends StoredKey>(
  objects: readonly SourceObject[],
  keys: readonly Key[],
): readonly ServedKey<Key>[] {
  const byName = new Map(objects.map((object) => [object.name, object]));
  const age = ({ signingKeyName }: StoredKey) => byName.get(signingKeyName)?.createdAt ?? -Infinity;
  const rank = ({ algorithm }: StoredKey) => (algorithm === PREFERRED_ALGORITHM ? 1 : 0);
  return keys
    .filter((key) => isServed(key, byName.get(key.signingKeyName)))
    .sort(
      (a, b) =>
        Number(byName.has(b.signingKeyName)) - Number(byName.has(a.signingKeyName)) ||
        rank(b) - rank(a) ||
        compare(age(b), age(a)) ||
        compare(b.activatedAt ?? b.publishedAt, a.activatedAt ?? a.publishedAt) ||
        compare(a.keyId, b.keyId),
    );
}

function isServed<Key extends StoredKey>(key: Key, object: SourceObject | undefined): key is ServedKey<Key> {
  const { suspended, revokedKeyIds } = fieldsOf(fieldsOf(object?.manifest).spec);
  const revoked = Array.isArray(revokedKeyIds) && revokedKeyIds.includes(key.keyId);
  return key.state !== 'Revoked' && suspended !== true && !revoked;
}

function compare<Value extends number | string>(a: Value, b: Value): number {
  return a < b ? -1 : Number(a > b);
}
