// Matches the client secrets in an owner's Secret against the stored verifiers. Pure.

import {
  clientSecretKeys,
  MINIMUM_SECRET_BYTES,
  STAGED_SUFFIX,
  stagedKey,
} from '../../admission/client-secrets/client-secret-manifest.ts';
import type { AcceptedVerifier } from '../../admission/client-secrets/client-verifier.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import { secretVerifier } from '../../oauth/registry/client-secret.ts';
import type { RotationStep } from './client-rotation.ts';
import { ownNames, secretText } from './client-secret-object.ts';
import { indexOfSecret } from './credential-changes.ts';
import type { CredentialSubject } from './credential-subject.ts';

/** So many texts of a Secret are hashed at most: its owner may put any number there, also under the controller's name. */
const TEXTS_MAX = 100;

/** The client secret in the owner's Secret: under its key, or under an earlier key that the owner renamed. */
export function presentSecret(
  { client, manifest, state }: CredentialSubject,
  secret: KubernetesObject | undefined,
): string | undefined {
  const current = usableText(secret, clientSecretKeys(manifest.spec).clientSecret);
  const texts = secretTexts({ manifest }, secret);
  const find = (verifiers: readonly AcceptedVerifier[]) =>
    texts.find((text) => indexOfSecret(client.uid, text, verifiers) !== undefined);
  const [newest, ...older] = state?.verifiers ?? [];
  return find(newest === undefined ? [] : [newest]) ?? current ?? find(older);
}

/** The secret of the newest verifier, where it is staged in the owner's Secret, also beside an earlier key. */
export function stagedSecret(
  { client, manifest, state }: CredentialSubject,
  secret: KubernetesObject | undefined,
): string | undefined {
  const [newest] = state?.verifiers ?? [];
  if (newest === undefined) return undefined;
  const staged = stagedKey(clientSecretKeys(manifest.spec).clientSecret);
  const others = Object.keys(fieldsOf(secret?.data)).filter((key) => key.endsWith(STAGED_SUFFIX));
  const texts = [staged, ...others].flatMap((key) => usableText(secret, key) ?? []);
  return texts.slice(0, TEXTS_MAX).find((text) => matches(newest, client.uid, text));
}

/** Whether a Secret of the owner holds a secret of these verifiers, under the client's key or a former one. */
export function holdsSecretOf(
  verifiers: readonly AcceptedVerifier[],
  { client, manifest }: CredentialSubject,
  secret: KubernetesObject,
): boolean {
  return secretTexts({ manifest }, secret).some((text) => indexOfSecret(client.uid, text, verifiers) !== undefined);
}

/** What may be a client secret: the text under the client's key, and those that the controller wrote, a few at most. */
function secretTexts(
  { manifest }: Pick<CredentialSubject, 'manifest'>,
  secret: KubernetesObject | undefined,
): readonly string[] {
  const { clientSecret } = clientSecretKeys(manifest.spec);
  const own = secret === undefined ? [] : ownNames(secret, 'data').filter((key) => !key.endsWith(STAGED_SUFFIX));
  return [...new Set([clientSecret, ...own])].flatMap((key) => usableText(secret, key) ?? []).slice(0, TEXTS_MAX);
}

/** The secret before the one that a step publishes, where the owner asks for a key for it and its value is known. */
export function previousOf(
  { client, manifest, state }: CredentialSubject,
  secret: KubernetesObject | undefined,
  { storeAfterWrite, store }: Pick<RotationStep, 'storeAfterWrite' | 'store'>,
): string | undefined {
  const keys = clientSecretKeys(manifest.spec);
  const after = storeAfterWrite ?? store ?? state;
  if (keys.previousClientSecret === undefined || after === undefined) return undefined;
  const candidates = [keys.clientSecret, keys.previousClientSecret].map((key) => secretText(secret, key));
  // While a rotation is pending, the present secret is not the previous one yet.
  const verifiers = after.begunAt === undefined ? after.verifiers : after.verifiers.slice(1);
  return candidates.find((secret) => secret !== undefined && (indexOfSecret(client.uid, secret, verifiers) ?? 0) > 0);
}

/** The text under a key, if it is long enough for a client secret. */
function usableText(secret: KubernetesObject | undefined, key: string): string | undefined {
  const text = secretText(secret, key);
  return text !== undefined && Buffer.byteLength(text) >= MINIMUM_SECRET_BYTES ? text : undefined;
}

function matches({ verifier }: AcceptedVerifier, uid: string, secret: string): boolean {
  return Buffer.from(verifier).equals(secretVerifier(uid, secret));
}
