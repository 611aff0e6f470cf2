// The judge of one SigningKey: whether it counts, and with which material. When keys are published, activated and retired
// is decided by whoever keeps them.

import { importSigningKey, type SigningKey } from '../../oauth/registry/keys.ts';
import { secretMetadataFaults } from '../client-secrets/secret-template.ts';
import { type Condition, type Fault, failing, pending, readyCondition } from '../kinds/conditions.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import { readManifest, type SourceObject, type UnknownFields } from '../kinds/manifest.ts';
import { quoted } from '../kinds/quoted.ts';
import { SIGNING_KEY, type SigningKeyManifest } from '../kinds/signing-key.ts';
import { presentKeys, type References, readSecretValue } from '../references/references.ts';

/**
 * Why `KeyMaterialReady` is False, in the order in which the first one is named. Beside these it is False with
 * `Suspended`, Unknown with `Pending`, True with `KeyImported`; `KeyGenerated` is the keeper's to say.
 */
export const KEY_FAULTS = [
  'InvalidManifest',
  'NamespaceNotHonoured',
  'InvalidRotation',
  'InvalidSecretTemplate',
  'SecretNotFound',
  'SecretKeyMissing',
  'InvalidKeyMaterial',
  'KeyRevoked',
] as const;

export type KeyFaultReason = (typeof KEY_FAULTS)[number];

/** What a SigningKey came to. */
export interface KeyVerdict<Source extends SourceObject = SourceObject> {
  readonly object: Source;
  /** Undefined when it is not a well-shaped SigningKey. */
  readonly manifest: SigningKeyManifest | undefined;
  /**
   * Whether the ring counts: generate its keys by `manifest.spec` and leave out `revokedKeyIds`; or, with
   * `importSecretRef`, use `imported`.
   */
  readonly accepted: boolean;
  /** The imported key, Active; undefined when none is asked for, or it is missing, unusable or revoked. */
  readonly imported: SigningKey | undefined;
  /** KeyMaterialReady and Ready. */
  readonly conditions: readonly Condition[];
  readonly faults: readonly Fault<KeyFaultReason>[];
}

/** What a SigningKey is judged by beside itself. */
export interface KeyContext {
  readonly unknownFields: UnknownFields;
  /** The only namespace whose SigningKeys count. */
  readonly releaseNamespace: string;
  readonly references: Pick<References, 'secret'>;
}

/** JWKS answers may be cached for 5 minutes; a key must have been seen by everybody before it signs. */
const MINIMUM_PRE_PUBLISH_SECONDS = 600;
/** No access token lives longer than a day. */
const MINIMUM_RETAIN_SECONDS = 24 * 3600;

/** Judges one SigningKey. Never throws and never rejects, whatever the manifest is. */
export async function admitKey<Source extends SourceObject>(
  object: Source,
  context: KeyContext,
): Promise<KeyVerdict<Source>> {
  const { manifest, faults: shapeFaults } = readManifest(SIGNING_KEY[context.unknownFields], object.manifest);
  if (manifest === undefined) return keyVerdict(object, manifest, shapeFaults, undefined);
  const material = await importedKey(object, manifest, context.references);
  const templateFaults = secretMetadataFaults(['spec', 'secretTemplate'], manifest.spec.secretTemplate);
  const faults = [
    ...namespaceFaults(object, context),
    ...rotationFaults(manifest),
    ...templateFaults,
    ...material.faults,
  ];
  return keyVerdict(object, manifest, faults, material.key);
}

function namespaceFaults(
  { namespace }: SourceObject,
  { releaseNamespace }: KeyContext,
): readonly Fault<KeyFaultReason>[] {
  if (namespace === releaseNamespace) return [];
  const message = 'Signing keys count only in the namespace that grantry itself runs in.';
  return [{ path: ['metadata', 'namespace'], reason: 'NamespaceNotHonoured', message }];
}

function rotationFaults({ spec: { rotation } }: SigningKeyManifest): readonly Fault<KeyFaultReason>[] {
  const faults: Fault<KeyFaultReason>[] = [];
  const refuse = (field: string, message: string) =>
    faults.push({ path: ['spec', 'rotation', field], reason: 'InvalidRotation', message });
  if (rotation.prePublish < MINIMUM_PRE_PUBLISH_SECONDS) {
    refuse('prePublish', 'Must be at least 10m: the key set may be cached for 5 minutes before a new key signs.');
  }
  if (rotation.interval <= rotation.prePublish) refuse('interval', 'Must be longer than prePublish.');
  if (rotation.retain < MINIMUM_RETAIN_SECONDS) {
    refuse('retain', 'Must be at least 24h: a retired key stays until the last token it signed has died.');
  }
  return faults;
}

interface Material {
  readonly key: SigningKey | undefined;
  readonly faults: readonly Fault<KeyFaultReason>[];
}

async function importedKey(
  object: SourceObject,
  { spec }: SigningKeyManifest,
  references: Pick<References, 'secret'>,
): Promise<Material> {
  const reference = spec.importSecretRef;
  if (reference === undefined) return { key: undefined, faults: [] };
  const refuse = (reason: KeyFaultReason, field: string, message: string): Material => {
    const path: FieldPath = ['spec', 'importSecretRef', field];
    return { key: undefined, faults: [{ path, reason, message }] };
  };
  const secret = references.secret(object.namespace, reference.name);
  if (typeof secret === 'string') return { key: undefined, faults: [] };
  if (secret === undefined) {
    return refuse('SecretNotFound', 'name', `There is no Secret ${quoted(reference.name)} in this namespace.`);
  }
  const pem = readSecretValue(secret, reference.key, true);
  if (pem.outcome !== 'found') {
    const missing = pem.outcome === 'missing' ? `; ${presentKeys(secret)}` : '';
    const message = `The Secret ${quoted(reference.name)} has no text under ${quoted(reference.key)}${missing}.`;
    return refuse('SecretKeyMissing', 'name', message);
  }
  const key = await importSigningKey(pem.value, spec.algorithm, 'Active').catch(() => undefined);
  if (key === undefined) {
    return refuse('InvalidKeyMaterial', 'key', `This is not a private key in PEM that fits ${spec.algorithm}.`);
  }
  if (reference.keyId !== undefined && reference.keyId !== key.kid) {
    return refuse('InvalidKeyMaterial', 'keyId', 'The key has another RFC 7638 thumbprint.');
  }
  if (spec.revokedKeyIds.includes(key.kid)) return refuse('KeyRevoked', 'name', 'The key is among spec.revokedKeyIds.');
  return { key, faults: [] };
}

function keyVerdict<Source extends SourceObject>(
  object: Source,
  manifest: SigningKeyManifest | undefined,
  faults: readonly Fault<KeyFaultReason>[],
  key: SigningKey | undefined,
): KeyVerdict<Source> {
  const material = materialCondition(object, manifest, faults, key);
  const accepted = manifest !== undefined && !manifest.spec.suspended && faults.length === 0;
  return {
    object,
    manifest,
    accepted,
    imported: accepted ? key : undefined,
    conditions: [material, readyCondition([material], object.generation)],
    faults,
  };
}

function materialCondition(
  { generation: observedGeneration }: SourceObject,
  manifest: SigningKeyManifest | undefined,
  faults: readonly Fault<KeyFaultReason>[],
  key: SigningKey | undefined,
): Condition {
  const type = 'KeyMaterialReady';
  if (manifest?.spec.suspended === true) {
    const message = 'spec.suspended is true: this ring neither signs nor is published.';
    return { type, status: 'False', reason: 'Suspended', message, observedGeneration };
  }
  const fault = failing(type, faults, KEY_FAULTS, observedGeneration);
  if (fault !== undefined) return fault;
  if (key === undefined) return pending(type, 'The key is not there yet.', observedGeneration);
  return { type, status: 'True', reason: 'KeyImported', message: 'The imported key is in place.', observedGeneration };
}
