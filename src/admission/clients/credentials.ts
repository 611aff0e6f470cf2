// Resolves the credentials of a client: the objects it refers to, and the verifiers of its secrets.

import { CERTIFICATE_METHODS, isPublic, SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import type { AssertionSettings, ServiceAccountIdentity } from '../../oauth/registry/client.ts';
import { secretVerifier } from '../../oauth/registry/client-secret.ts';
import {
  clientSecretKeys,
  clientSecretName,
  hasGeneratedSecret,
  isSecretOf,
  MINIMUM_SECRET_BYTES,
} from '../client-secrets/client-secret-manifest.ts';
import { secretTemplateFaults } from '../client-secrets/secret-template.ts';
import type { Fault } from '../kinds/conditions.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import type { ObjectIdentity } from '../kinds/manifest.ts';
import type { OAuthClientSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';
import {
  presentKeys,
  type ReferencedSecret,
  type References,
  readSecretValue,
  type WithheldSecret,
} from '../references/references.ts';
import { assertionKeys } from './assertion-keys.ts';
import { clientAccounts, missingAccountFaults } from './service-accounts.ts';

type ReadyReason = 'SecretGenerated' | 'SecretAdopted' | 'NotRequired';

/** Whether the server can verify the credentials of a client, and the faults that prevent it. */
export type Credentials = { readonly faults: readonly Fault[] } & (
  | {
      readonly state: 'ready';
      readonly verifiers: readonly Uint8Array[];
      readonly assertion?: AssertionSettings;
      readonly serviceAccounts?: readonly ServiceAccountIdentity[];
      readonly reason: ReadyReason;
      readonly message: string;
    }
  /** An offline check assumes the secret, the ConfigMap or the accounts; the client cannot be served. */
  | { readonly state: 'assumed'; readonly reason: ReadyReason; readonly message: string }
  /** A secret is to be generated. */
  | { readonly state: 'toGenerate' }
  /** Not usable: a fault prevents it, no verifiers are stored yet, or this version does not support the method. */
  | { readonly state: 'pending' }
);

const SECRET_PATH: FieldPath = ['spec', 'auth', 'clientSecret'];

/** Looks up what the client refers to, in its own namespace only. */
export function resolveCredentials(object: ObjectIdentity, spec: OAuthClientSpec, references: References): Credentials {
  const { method } = spec.auth;
  if (hasGeneratedSecret(spec)) return generatedSecret(object, spec, references);
  if (SECRET_METHODS.includes(method)) return existingSecret(object, spec, references);
  if (method === 'private_key_jwt') return assertionCredentials(object, spec, references);
  if (method === 'kubernetes_service_account') return accountCredentials(object, spec, references);
  if (CERTIFICATE_METHODS.includes(method)) {
    const message = 'A certificate authenticates the client; it has no secret.';
    return { ...NO_SECRET, state: 'ready', verifiers: [], message };
  }
  if (!isPublic({ authMethod: method })) return { state: 'pending', faults: [] };
  return { ...NO_SECRET, state: 'ready', verifiers: [], message: 'A public client has no secret.' };
}

const NO_SECRET = { reason: 'NotRequired', faults: [] } as const;

/** The credentials of a private_key_jwt client. */
export function assertionCredentials(
  object: ObjectIdentity,
  spec: OAuthClientSpec,
  references: Pick<References, 'configMap' | 'jwksOf'>,
): Credentials {
  const keys = assertionKeys(object, spec, references);
  switch (keys.outcome) {
    case 'refused':
      return pendingWith(keys.fault);
    case 'pending':
      return { state: 'pending', faults: [] };
    case 'assumed':
      return { ...NO_SECRET, state: 'assumed', message: 'The ConfigMap is assumed to exist.' };
    case 'resolved': {
      const { assertion } = keys;
      const message = 'The client signs assertions with keys of its own; it has no secret.';
      return { ...NO_SECRET, state: 'ready', verifiers: [], assertion, message };
    }
  }
}

/** The credentials of a kubernetes_service_account client. It is served as long as one of its accounts is there. */
export function accountCredentials(
  object: ObjectIdentity,
  spec: OAuthClientSpec,
  references: Pick<References, 'serviceAccountUid'>,
): Credentials {
  const accounts = clientAccounts(object, spec, references);
  const missing = missingAccountFaults(spec, accounts);
  if (accounts.found.length > 0) {
    const own = 'Tokens of its ServiceAccounts authenticate the client; it has no secret.';
    const message = [own, ...missing.map((each) => each.message)].join(' ');
    return { ...NO_SECRET, state: 'ready', verifiers: [], serviceAccounts: accounts.found, message };
  }
  if (accounts.unknown !== 'assumed') return { state: 'pending', faults: missing };
  return { ...NO_SECRET, state: 'assumed', message: 'The ServiceAccounts are assumed to exist.' };
}

function generatedSecret(object: ObjectIdentity, spec: OAuthClientSpec, references: References): Credentials {
  const { clientSecret } = spec.auth;
  const faults = clientSecret === undefined ? [] : secretTemplateFaults(clientSecret, spec.scopes);
  if (faults.length > 0) return { state: 'pending', faults };
  const name = clientSecretName(object.name, spec);
  const present = references.secret(object.namespace, name);
  if (typeof present === 'object' && !isSecretOf(object.uid, present)) {
    return pendingWith(secretOfAnother(name));
  }
  const verifiers = references.verifiersOf(object.uid);
  const reason = 'SecretGenerated';
  if (verifiers === 'assumed') return { state: 'assumed', reason, message: 'A secret will be generated.', faults };
  if (verifiers.length === 0) return { state: 'toGenerate', faults };
  return { state: 'ready', verifiers, reason, message: 'The generated secret is in place.', faults };
}

/** The credentials of a client that refers to an existing Secret, whether or not the client is accepted. */
export function existingSecret(
  object: ObjectIdentity,
  spec: OAuthClientSpec,
  references: Pick<References, 'secret' | 'verifiersOf'>,
): Credentials {
  const name = clientSecretName(object.name, spec);
  // The field that names the Secret, or its parent where the field is absent.
  const path = spec.auth.clientSecret?.secretName === undefined ? SECRET_PATH : [...SECRET_PATH, 'secretName'];
  const secret = references.secret(object.namespace, name);
  if (secret === undefined) {
    const message = `There is no Secret ${quoted(name)} in this namespace; grantry waits for it and does not create it.`;
    return pendingWith({ path, reason: 'SecretNotFound', message });
  }
  const reason = 'SecretAdopted';
  if (secret === 'assumed') return { state: 'assumed', reason, message: 'The Secret is assumed to exist.', faults: [] };
  if (typeof secret === 'string') return withheldSecret(object, secret, references);
  const keys = clientSecretKeys(spec);
  const current = { key: keys.clientSecret, optional: false };
  const previous = { key: keys.previousClientSecret, optional: true };
  const verifiers: Uint8Array[] = [];
  for (const { key, optional } of [current, previous]) {
    if (key === undefined) continue;
    const found = readSecretValue(secret, key);
    if (found.outcome === 'missing' && optional) continue;
    if (found.outcome !== 'found') {
      const message = unreadable(name, key, found.outcome, secret);
      return pendingWith({ path, reason: 'SecretKeyMissing', message });
    }
    if (Buffer.byteLength(found.value) < MINIMUM_SECRET_BYTES) {
      const message = `The value of ${quoted(key)} in the Secret ${quoted(name)} is shorter than ${MINIMUM_SECRET_BYTES} bytes.`;
      return pendingWith({ path, reason: 'WeakSecret', message });
    }
    verifiers.push(secretVerifier(object.uid, found.value));
  }
  return { state: 'ready', verifiers, reason, message: messageOn(withheldForm(spec, secret)), faults: [] };
}

const UNRESERVED = /^[A-Za-z0-9._~-]*$/;

/** The fact about an existing Secret that is kept in place of its value: whether the client secret needs encoding. */
export function withheldForm(spec: OAuthClientSpec, secret: ReferencedSecret): WithheldSecret {
  const found = readSecretValue(secret, clientSecretKeys(spec).clientSecret);
  return found.outcome === 'found' && !UNRESERVED.test(found.value) ? 'withheld_reserved' : 'withheld';
}

function messageOn(form: WithheldSecret): string {
  if (form === 'withheld') return 'The existing Secret is used.';
  return 'The existing Secret is used. Its client secret has other characters than letters, digits and - . _ ~: a consumer that sends it without encoding it first (RFC 6749 section 2.3.1) is refused.';
}

/**
 * The credentials where this process must not read the Secret: ready as soon as the controller has stored its
 * verifiers.
 */
function withheldSecret(
  { uid }: ObjectIdentity,
  form: WithheldSecret,
  references: Pick<References, 'verifiersOf'>,
): Credentials {
  const verifiers = references.verifiersOf(uid);
  if (verifiers === 'assumed' || verifiers.length === 0) return { state: 'pending', faults: [] };
  return { state: 'ready', verifiers, reason: 'SecretAdopted', message: messageOn(form), faults: [] };
}

/**
 * The fault that the Secret exists and was not written for this client.
 * @param more further sentences, after a space
 */
export function secretOfAnother(name: string, more = ''): Fault<'SecretNotOwned'> {
  return secretNotOwned(
    `The Secret ${quoted(name)} exists and was not written for this client; it is never overwritten.${more} Name another, or use it with source: Existing.`,
  );
}

/** The fault that the Secret which this client names is not its own. */
export function secretNotOwned(message: string): Fault<'SecretNotOwned'> {
  return { path: [...SECRET_PATH, 'secretName'], reason: 'SecretNotOwned', message };
}

function pendingWith(fault: Fault): Credentials {
  return { state: 'pending', faults: [fault] };
}

function unreadable(
  name: string,
  key: string,
  outcome: 'missing' | 'not_text' | 'not_one_line',
  secret: ReferencedSecret,
): string {
  const value = `The value of ${quoted(key)} in the Secret ${quoted(name)}`;
  if (outcome === 'missing') return `The Secret ${quoted(name)} has no key ${quoted(key)}; ${presentKeys(secret)}.`;
  if (outcome === 'not_text') return `${value} is not UTF-8 text; use stringData, or base64 of UTF-8 under data.`;
  return `${value} is not one line of text; a line break at its end is the usual cause.`;
}
