// The lookup of objects that a manifest refers to, which the source of manifests implements; and reading one value of a
// Secret or ConfigMap.

import type { VerificationKey } from '../../oauth/values/jwk.ts';
import { quoted } from '../kinds/quoted.ts';

/** A Secret as `kubectl` takes it; `stringData` wins over `data`, as in the API server. */
export interface ReferencedSecret {
  readonly metadata?: unknown;
  readonly data?: unknown;
  readonly stringData?: unknown;
}

/** A ConfigMap as `kubectl` takes it. */
export interface ReferencedConfigMap {
  readonly data?: unknown;
}

/**
 * A Secret whose value is not available to this process. `withheld_reserved`: the process that read it found characters
 * in its client secret other than the unreserved ones (RFC 3986 §2.3).
 */
export type WithheldSecret = 'withheld' | 'withheld_reserved';

/** The objects around a manifest. A tenant's manifest is only ever looked up in its own namespace. */
export interface References {
  /**
   * Undefined when there is none; `assumed` where the source cannot know (an offline check without the cluster);
   * `withheld` where the process must not read tenants' Secrets (a token server): `verifiersOf` then provides all
   * verifiers.
   */
  secret(namespace: string, name: string): ReferencedSecret | 'assumed' | WithheldSecret | undefined;
  /**
   * Undefined when there is none; `assumed` as for a Secret; `withheld` where the process has not read it, as a token
   * server never does: `jwksOf` then provides its keys.
   */
  configMap(namespace: string, name: string): ReferencedConfigMap | 'assumed' | 'withheld' | undefined;
  /**
   * The uid of a ServiceAccount; undefined when there is none; `assumed` as for a Secret; `withheld` where this process
   * does not know it (yet).
   */
  serviceAccountUid(namespace: string, name: string): string | undefined;
  /**
   * All labels of the Namespace, `kubernetes.io/metadata.name` included; undefined while they are not known: no policy
   * can be chosen then, and its clients stay pending.
   */
  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined;
  /**
   * The verifiers of the secrets generated for this object, newest first; where Secrets are `withheld`, those of an
   * existing Secret too. Empty while there is none; `assumed` where no secret is ever generated (an offline check).
   */
  verifiersOf(uid: string): readonly Uint8Array[] | 'assumed';
  /**
   * The keys of this object that the controller read from a ConfigMap; undefined while there are none, and where a
   * ConfigMap is never `withheld`.
   */
  jwksOf(uid: string): readonly VerificationKey[] | undefined;
}

/** {@link References.serviceAccountUid} of an account without a known uid. */
export type UnknownUid = 'assumed' | 'withheld';

/** Whether a result of {@link References.serviceAccountUid} is no uid. No object has one of these words as its uid. */
export function isUnknownUid(uid: string): uid is UnknownUid {
  return uid === 'assumed' || uid === 'withheld';
}

/** The text under one key of a ConfigMap; undefined when it has none: `binaryData` does not count. */
export function configMapText({ data }: ReferencedConfigMap, key: string): string | undefined {
  const text = own(data, key);
  return typeof text === 'string' ? text : undefined;
}

/** One value of a Secret. */
export type SecretValue =
  | { readonly outcome: 'found'; readonly value: string }
  | { readonly outcome: 'missing' }
  /** Not a string, not base64 or not UTF-8. */
  | { readonly outcome: 'not_text' }
  /** With control characters, usually a line break at the end. */
  | { readonly outcome: 'not_one_line' };

/**
 * The text under one key of a Secret.
 * @param multiline whether line breaks belong to the value (PEM) or make it invalid (a client secret)
 */
export function readSecretValue(secret: ReferencedSecret, key: string, multiline = false): SecretValue {
  const plain = own(secret.stringData, key);
  const encoded = own(secret.data, key);
  const value = plain ?? (encoded === undefined ? undefined : decodeBase64(encoded));
  if (value === undefined) return { outcome: plain === undefined && encoded === undefined ? 'missing' : 'not_text' };
  if (typeof value !== 'string' || !value.isWellFormed()) return { outcome: 'not_text' };
  return !multiline && /\p{Cc}/u.test(value) ? { outcome: 'not_one_line' } : { outcome: 'found', value };
}

const KEYS_NAMED = 10;

/** Which keys a Secret or ConfigMap has, for a message that misses one: `it has "a", "b"`. Never a value. */
export function presentKeys({ data, stringData }: Pick<ReferencedSecret, 'data' | 'stringData'>): string {
  const keys = [...new Set([data, stringData].flatMap((map) => Object.keys(isMap(map) ? map : {})))];
  if (keys.length === 0) return 'it has none at all';
  const more = keys.length > KEYS_NAMED ? ` and ${keys.length - KEYS_NAMED} more` : '';
  return `it has ${keys.slice(0, KEYS_NAMED).map(quoted).join(', ')}${more}`;
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function own(map: unknown, key: string): unknown {
  if (typeof map !== 'object' || map === null || !Object.hasOwn(map, key)) return undefined;
  return (map as Readonly<Record<string, unknown>>)[key] ?? undefined;
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeBase64(encoded: unknown): string | undefined {
  if (typeof encoded !== 'string') return undefined;
  // YAML folds long values over lines; the API server ignores the breaks.
  const compact = encoded.replace(/[\r\n]/g, '');
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(compact)) return undefined;
  try {
    return UTF_8.decode(Buffer.from(compact, 'base64'));
  } catch {
    return undefined;
  }
}
