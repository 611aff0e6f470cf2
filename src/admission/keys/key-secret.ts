// Decodes and encodes the Secret of one signing key. This Secret is the authoritative record of the key. The key
// material never changes; state and times are labels and annotations. controller/signing-keys/key-reconciler.ts moves
// keys from state to state.

import { importSigningKey, type SigningKey } from '../../oauth/registry/keys.ts';
import type { SigningAlgorithm } from '../../oauth/values/signature.ts';
import { fieldsOf } from '../kinds/manifest.ts';
import { readSecretValue } from '../references/references.ts';
import { PART_LABEL } from '../references/secret-parts.ts';

/** Only Secrets of this type hold keys. The type of a Secret is immutable, so no other Secret can become a key. */
export const KEY_SECRET_TYPE = 'grantry.dev/signing-key';

const STATE_LABEL = 'grantry.dev/key-state';
/** The label whose value is the name of the SigningKey that a key belongs to. */
export const SIGNING_KEY_LABEL = 'grantry.dev/signing-key';
const KEY_ID_ANNOTATION = 'grantry.dev/key-id';
const ALGORITHM_ANNOTATION = 'grantry.dev/algorithm';
const PUBLISHED_AT_ANNOTATION = 'grantry.dev/published-at';
const ACTIVATED_AT_ANNOTATION = 'grantry.dev/activated-at';
const REMOVE_AFTER_ANNOTATION = 'grantry.dev/remove-after';
const HANDLED_ANNOTATION = 'grantry.dev/handled-rotate-at';
const PRIVATE_KEY = 'private-key.pem';

const STATES = ['Published', 'Active', 'Retiring', 'Revoked'] as const;
const ALGORITHMS = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'] as const satisfies readonly SigningAlgorithm[];
/** Hex digits of the key id in the name of a Secret. */
const NAME_HEX_DIGITS = 10;

/**
 * `Revoked`: in no key set any more, kept until every token that the key signed has expired. The other states are
 * described at {@link SigningKey}.
 */
export type StoredKeyState = (typeof STATES)[number];

/** One key of a ring (the keys of one SigningKey), without its material. Times are epoch milliseconds. */
export interface StoredKey {
  /** The name of the SigningKey that the key belongs to. */
  readonly signingKeyName: string;
  /** RFC 7638 thumbprint. */
  readonly keyId: string;
  readonly algorithm: SigningAlgorithm;
  readonly state: StoredKeyState;
  readonly publishedAt: number;
  /** When the key began to sign; undefined before that. */
  readonly activatedAt: number | undefined;
  /**
   * The time at which the last token that the key signed will have expired; undefined until it retires or is revoked.
   */
  readonly removeAfter: number | undefined;
  /**
   * The latest rotation request that was handled with this key, usually by making it; undefined when there was none.
   */
  readonly handledRotateAt?: string | undefined;
}

/** A Secret as the API server returns it. */
interface Secret {
  readonly metadata?: unknown;
  readonly type?: unknown;
  readonly data?: unknown;
}

/** The name of the Secret of a key. A thumbprint is not a valid object name, so the name has hex digits of it. */
export function keySecretName({ signingKeyName, keyId }: Pick<StoredKey, 'signingKeyName' | 'keyId'>): string {
  return `${signingKeyName}-${Buffer.from(keyId, 'base64url').toString('hex').slice(0, NAME_HEX_DIGITS)}`;
}

/**
 * The key as the metadata of a Secret describes it; undefined unless type, name, labels and annotations are valid.
 */
export function readKeySecret({ metadata, type }: Secret): StoredKey | undefined {
  if (type !== KEY_SECRET_TYPE) return undefined;
  const { name, labels, annotations } = fieldsOf(metadata);
  const label = fieldsOf(labels);
  const annotation = fieldsOf(annotations);
  const signingKeyName = label[SIGNING_KEY_LABEL];
  const keyId = annotation[KEY_ID_ANNOTATION];
  const state = STATES.find((known) => known === label[STATE_LABEL]);
  const algorithm = ALGORITHMS.find((known) => known === annotation[ALGORITHM_ANNOTATION]);
  const publishedAt = timeOf(annotation[PUBLISHED_AT_ANNOTATION]);
  if (typeof signingKeyName !== 'string' || typeof keyId !== 'string') return undefined;
  if (state === undefined || algorithm === undefined || publishedAt === undefined) return undefined;
  if (label[PART_LABEL] !== 'signing-key' || name !== keySecretName({ signingKeyName, keyId })) return undefined;
  const activatedAt = timeOf(annotation[ACTIVATED_AT_ANNOTATION]);
  const removeAfter = timeOf(annotation[REMOVE_AFTER_ANNOTATION]);
  const handled = annotation[HANDLED_ANNOTATION];
  const handledRotateAt = typeof handled === 'string' ? handled : undefined;
  return { signingKeyName, keyId, algorithm, state, publishedAt, activatedAt, removeAfter, handledRotateAt };
}

function timeOf(text: unknown): number | undefined {
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

/**
 * The material of a key, ready to sign or to verify with.
 * @param secret the Secret of a key that is not revoked; the other parameter is what `readKeySecret` returned for it
 * @throws TypeError when it is missing, does not fit the algorithm, or has another key id than the metadata
 */
export async function importKeySecret(
  secret: Secret,
  { keyId, algorithm, state }: StoredKey & { readonly state: SigningKey['state'] },
): Promise<SigningKey> {
  const isMultiline = true;
  const pem = readSecretValue(secret, PRIVATE_KEY, isMultiline);
  if (pem.outcome !== 'found') throw new TypeError(`the Secret has no text under ${PRIVATE_KEY}`);
  const key = await importSigningKey(pem.value, algorithm, state);
  if (key.kid !== keyId) throw new TypeError('the key has another RFC 7638 thumbprint than its Secret says');
  return key;
}

/** The labels and annotations of a key. */
export function keySecretMetadata(key: StoredKey): {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
} {
  const { signingKeyName, keyId, algorithm, state, publishedAt, activatedAt, removeAfter, handledRotateAt } = key;
  return {
    labels: { [PART_LABEL]: 'signing-key', [SIGNING_KEY_LABEL]: signingKeyName, [STATE_LABEL]: state },
    annotations: {
      [KEY_ID_ANNOTATION]: keyId,
      [ALGORITHM_ANNOTATION]: algorithm,
      [PUBLISHED_AT_ANNOTATION]: new Date(publishedAt).toISOString(),
      ...(activatedAt !== undefined && { [ACTIVATED_AT_ANNOTATION]: new Date(activatedAt).toISOString() }),
      ...(removeAfter !== undefined && { [REMOVE_AFTER_ANNOTATION]: new Date(removeAfter).toISOString() }),
      ...(handledRotateAt !== undefined && { [HANDLED_ANNOTATION]: handledRotateAt }),
    },
  };
}

/** The `data` of the Secret, written once: the private key. */
export function keySecretData(pem: string): Readonly<Record<string, string>> {
  return { [PRIVATE_KEY]: Buffer.from(pem).toString('base64') };
}
