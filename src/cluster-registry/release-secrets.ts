// The Secrets of the release namespace as a token server reads them: verifiers by client, keys with their material, and
// the single Secrets. The exact type and name of a Secret decide its meaning, never a label alone.

import {
  type ClientVerifiers,
  VERIFIER_SECRET_TYPE,
  verifierSecretName,
} from '../admission/client-secrets/client-verifier.ts';
import { importKeySecret, readKeySecret, type StoredKey } from '../admission/keys/key-secret.ts';
import { servedKeys } from '../admission/keys/served-keys.ts';
import { fieldsOf } from '../admission/kinds/manifest.ts';
import { PART_LABEL, type SingleSecret, USERS_SECRET } from '../admission/references/secret-parts.ts';
import { textOfSingle } from '../kubernetes/objects/release-parts.ts';
import { type KubernetesObject, objectKey } from '../kubernetes/objects/resources.ts';
import { sourceOf } from '../kubernetes/objects/source-object.ts';
import { type ObjectChange, withoutBallast } from '../kubernetes/watch/object-store.ts';
import type { ObjectView } from '../kubernetes/watch/shared-reflector.ts';
import { KeyRing, type SigningKey } from '../oauth/registry/keys.ts';
import { cachedVerifiers, isCachedVerifiers } from './cached-objects.ts';

/** A stored key and the Secret its material is in. */
type KeyInSecret = StoredKey & { readonly secret: KubernetesObject };

/** The part of a changed Secret. */
export type SecretChange =
  | { readonly part: 'verifier'; readonly uid: string }
  | { readonly part: 'signing-key' | SingleSecret['part'] | 'none' };

/** The cached form of a Secret: a verifier Secret as its parsed contents, because there are as many as clients. */
export function keptOfSecret(object: KubernetesObject): KubernetesObject {
  return object.type === VERIFIER_SECRET_TYPE ? cachedVerifiers(object) : withoutBallast(object);
}

/** The cached form of a Secret with users: its list alone. The password of the first user stands beside it. */
export function keptUsersSecret(object: KubernetesObject): KubernetesObject {
  const { apiVersion, kind, metadata, type } = object;
  const list = fieldsOf(object.data)[USERS_SECRET.key];
  const data = list === undefined ? undefined : { [USERS_SECRET.key]: list };
  return withoutBallast({ apiVersion, kind, metadata, type, data });
}

function verifiersIn(object: KubernetesObject | undefined) {
  return object !== undefined && isCachedVerifiers(object) ? object.verifiers : undefined;
}

/** The accepted verifiers of a client; undefined without a verifier Secret. @param namespace that of the release */
export function verifiersOf(
  secrets: Pick<ObjectView, 'get'>,
  namespace: string,
  uid: string,
): ClientVerifiers | undefined {
  return verifiersIn(secrets.get(objectKey({ namespace, name: verifierSecretName(uid) })));
}

export class ReleaseSecrets {
  /** When verifiers expire, by client uid: a client has two secrets during the overlap of a rotation. */
  readonly #expiries = new Map<string, readonly number[]>();
  readonly #keys = new Map<string, KeyInSecret>();
  readonly #singles = new Map<string, KubernetesObject>();
  /** Imported material, by uid of the Secret and state of the key: immutable Secrets are read once for each state. */
  readonly #imported = new Map<string, SigningKey>();

  /** Applies a change. @returns what it affects */
  apply({ type, object, before }: ObjectChange): SecretChange {
    // A Secret that became invalid has no verifiers, least of all the previous ones.
    const verifiers = type === 'put' ? verifiersIn(object) : undefined;
    const uid = (verifiersIn(object) ?? verifiersIn(before))?.uid;
    if (uid !== undefined) {
      const times = (verifiers?.verifiers ?? []).flatMap(({ expiresAt }) => expiresAt ?? []);
      if (times.length === 0) this.#expiries.delete(uid);
      else this.#expiries.set(uid, times);
      return { part: 'verifier', uid };
    }
    const key = objectKey(object.metadata);
    const wasKey = this.#keys.delete(key);
    const stored = type === 'delete' ? undefined : readKeySecret(object);
    if (stored !== undefined) this.#keys.set(key, { ...stored, secret: object });
    if (wasKey || stored !== undefined) return { part: 'signing-key' };
    const part = object.metadata.labels?.[PART_LABEL];
    if (part !== 'pepper' && part !== 'webhook' && part !== 'controller') return { part: 'none' };
    if (type === 'delete') this.#singles.delete(object.metadata.name);
    else this.#singles.set(object.metadata.name, object);
    return { part };
  }

  /** When the next verifier expires, in epoch milliseconds; undefined without one. */
  get nextExpiry(): number | undefined {
    let next: number | undefined;
    for (const times of this.#expiries.values()) {
      for (const time of times) if (next === undefined || time < next) next = time;
    }
    return next;
  }

  /** The uids of clients with a verifier that expired since the previous call. @param now epoch milliseconds */
  takeExpired(now: number): readonly string[] {
    const expired: string[] = [];
    for (const [uid, times] of this.#expiries) {
      const ahead = times.filter((time) => time > now);
      if (ahead.length === times.length) continue;
      expired.push(uid);
      if (ahead.length === 0) this.#expiries.delete(uid);
      else this.#expiries.set(uid, ahead);
    }
    return expired;
  }

  /** The text of a part's single Secret; undefined while it is missing or holds none. */
  textOf(single: SingleSecret): string | undefined {
    return textOfSingle(this.#singles.get(single.name), single);
  }

  /**
   * The key ring of the stored keys. A key that cannot be read is left out.
   * @param signingKeys the SigningKeys of the release namespace
   * @param onFault called with the Secret of each key that was left out, and why
   */
  async ringOf(
    signingKeys: Iterable<KubernetesObject>,
    onFault: (secret: string, message: string) => void,
  ): Promise<{ readonly ring: KeyRing; readonly signing: StoredKey | undefined }> {
    const served = servedKeys([...signingKeys].map(sourceOf), [...this.#keys.values()]);
    const material = new Map<string, SigningKey>();
    const keys: SigningKey[] = [];
    for (const stored of served) {
      const id = `${stored.secret.metadata.uid} ${stored.state}`;
      try {
        const key = this.#imported.get(id) ?? (await importKeySecret(stored.secret, stored));
        material.set(id, key);
        keys.push(key);
      } catch (error) {
        onFault(stored.secret.metadata.name, error instanceof Error ? error.message : String(error));
      }
    }
    this.#imported.clear();
    for (const [id, key] of material) this.#imported.set(id, key);
    const ring = new KeyRing(keys);
    return { ring, signing: served.find(({ keyId }) => keyId === ring.signing?.kid) };
  }
}
