// The Secret in the release namespace that holds what a client's credentials are verified by: the verifiers of its
// accepted secrets, the keys of its ConfigMap, or the uids of its ServiceAccounts. This file owns its name, type and
// data, encoded and decoded. It never holds a secret. The controller writes it and plans when verifiers are added and
// dropped; every replica of the token server reads it.

import { z } from 'zod';
import type { ServiceAccountIdentity } from '../../oauth/registry/client.ts';
import { readJwkSet, type VerificationKey } from '../../oauth/values/jwk.ts';
import { fieldsOf } from '../kinds/manifest.ts';
import { readSecretValue } from '../references/references.ts';

/** Only a Secret of exactly this type is read: another one of the namespace is not accepted for its name alone. */
export const VERIFIER_SECRET_TYPE = 'grantry.dev/client-verifier';

const NAME_PREFIX = 'grantry-client-';
const VERIFIER_BYTES = 32;

/**
 * The most secrets of one client that are accepted at a time: a month of daily rotations, each with a month of grace.
 */
export const VERIFIERS_MAX = 32;

/** One secret that is accepted. */
export interface AcceptedVerifier {
  /** The result of `secretVerifier` for the client's uid and the secret. */
  readonly verifier: Uint8Array;
  /** The number of this secret: 1 for the client's first, incremented for each that follows. */
  readonly revision: number;
  /** Epoch milliseconds (whole seconds) from which on it is no longer accepted; undefined: until it is replaced. */
  readonly expiresAt?: number | undefined;
}

/** The credentials of one client as the replicas read them: verifiers, keys or accounts, at least one. */
export interface ClientVerifiers {
  /** Incremented with every change; replicas report the one that they serve (`secretRevision`). */
  readonly revision: number;
  /** Newest first. */
  readonly verifiers: readonly AcceptedVerifier[];
  /** The keys that the controller found in the client's ConfigMap; never empty. */
  readonly jwks?: readonly VerificationKey[] | undefined;
  /** Those of the client's ServiceAccounts that exist; never empty. */
  readonly serviceAccounts?: readonly ServiceAccountIdentity[] | undefined;
}

/** The part of {@link ClientVerifiers} that a client without a secret has. */
export type StoredIdentity = Pick<ClientVerifiers, 'jwks' | 'serviceAccounts'>;

/** The name of the Secret for an OAuthClient. */
export function verifierSecretName(uid: string): string {
  return `${NAME_PREFIX}${uid}`;
}

/** `data` of the Secret in the form of the API server. */
export function verifierSecretData(credentials: ClientVerifiers): Readonly<Record<string, string>> {
  const { revision, verifiers } = credentials;
  const written = verifiers.map((accepted) => ({
    verifier: Buffer.from(accepted.verifier).toString('base64url'),
    revision: accepted.revision,
    ...(accepted.expiresAt !== undefined && { expiresAt: new Date(accepted.expiresAt).toISOString() }),
  }));
  const texts = { ...identityTexts(credentials), ...(written.length > 0 && { verifiers: JSON.stringify(written) }) };
  const data = Object.entries(texts).map(([key, text]) => [key, encoded(text)]);
  return { revision: encoded(String(revision)), ...Object.fromEntries(data) };
}

/** The keys and accounts as they are stored. Equal identities have equal texts. */
export function identityTexts({ jwks, serviceAccounts }: StoredIdentity): Readonly<Record<string, string>> {
  return {
    ...(jwks !== undefined && { jwks: JSON.stringify({ keys: jwks.map(storedJwk) }) }),
    ...(serviceAccounts !== undefined && {
      serviceAccounts: JSON.stringify(serviceAccounts.map(({ name, uid }) => ({ name, uid }))),
    }),
  };
}

/** The JWK of a key: only the members that verification reads. */
function storedJwk({ jwk, kid, algorithms }: VerificationKey): object {
  // Without `alg` an RSA key would fit a second algorithm; a key of another kty fits one only.
  const [alg, ...others] = algorithms;
  return { ...jwk, ...(kid !== undefined && { kid }), ...(others.length === 0 && { alg }) };
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64');
}

const END = z.iso.datetime({ offset: true });

/**
 * The content of a verifier Secret and the uid of its client. Never throws.
 * @param secret a Secret as the API server returns it
 * @returns undefined when it is no Secret of this name and type, or part of its data cannot be read
 */
export function readVerifierSecret(secret: unknown): (ClientVerifiers & { readonly uid: string }) | undefined {
  const { metadata, type, data } = fieldsOf(secret);
  const { name } = fieldsOf(metadata);
  if (type !== VERIFIER_SECRET_TYPE || typeof name !== 'string' || !name.startsWith(NAME_PREFIX)) return undefined;
  const revision = readSecretValue({ data }, 'revision');
  const number = revision.outcome === 'found' ? countOf(Number(revision.value)) : undefined;
  const [verifiers, jwks, serviceAccounts] = [
    part(data, 'verifiers', verifiersOf),
    part(data, 'jwks', keysOf),
    part(data, 'serviceAccounts', accountsOf),
  ];
  const parts = [verifiers, jwks, serviceAccounts];
  if (number === undefined || parts.includes('unreadable') || parts.every((each) => each === undefined)) {
    return undefined;
  }
  return {
    uid: name.slice(NAME_PREFIX.length),
    revision: number,
    verifiers: readable(verifiers) ?? [],
    ...(jwks !== undefined && { jwks: readable(jwks) }),
    ...(serviceAccounts !== undefined && { serviceAccounts: readable(serviceAccounts) }),
  };
}

type Part<Value> = Value | 'unreadable' | undefined;

/** A part of the data; undefined when it is missing, or empty, as the controller writes a part that it removes. */
function part<Value>(data: unknown, key: string, read: (json: unknown) => Value | undefined): Part<Value> {
  // The text of JSON may hold control characters, such as U+0080 in a kid.
  const text = readSecretValue({ data }, key, true);
  if (text.outcome === 'missing' || (text.outcome === 'found' && text.value === '')) return undefined;
  return (text.outcome === 'found' ? read(parsed(text.value)) : undefined) ?? 'unreadable';
}

function readable<Value>(part: Part<Value>): Value | undefined {
  return part === 'unreadable' ? undefined : part;
}

function keysOf(jwks: unknown): readonly VerificationKey[] | undefined {
  const set = readJwkSet(jwks);
  // The controller stores only keys that it read itself.
  return typeof set === 'string' || set.faults.length > 0 || set.keys.length === 0 ? undefined : set.keys;
}

function accountsOf(list: unknown): readonly ServiceAccountIdentity[] | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined;
  const accounts = list.flatMap((entry) => {
    const { name, uid } = fieldsOf(entry);
    return typeof name === 'string' && typeof uid === 'string' && uid !== '' ? { name, uid } : [];
  });
  return accounts.length === list.length ? accounts : undefined;
}

// Without a schema, because there are as many of these lists as clients.
function verifiersOf(list: unknown): readonly AcceptedVerifier[] | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined;
  // The newest are first. A controller of another version may keep more.
  const verifiers = list.slice(0, VERIFIERS_MAX).map(acceptedVerifier);
  return verifiers.every((verifier) => verifier !== undefined) ? verifiers : undefined;
}

function acceptedVerifier(entry: unknown): AcceptedVerifier | undefined {
  const { verifier: text, revision, expiresAt } = fieldsOf(entry);
  const verifier = typeof text === 'string' ? Buffer.from(text, 'base64url') : undefined;
  const number = countOf(revision);
  if (verifier?.length !== VERIFIER_BYTES || number === undefined) return undefined;
  if (expiresAt === undefined) return { verifier, revision: number };
  const end = END.safeParse(expiresAt);
  return end.success ? { verifier, revision: number, expiresAt: Date.parse(end.data) } : undefined;
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 ? value : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The verifiers that are accepted at a time, newest first; the controller removes the expired ones later.
 * @param now epoch milliseconds
 */
export function activeVerifiers({ verifiers }: ClientVerifiers, now: number): readonly Uint8Array[] {
  return verifiers
    .filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now)
    .map(({ verifier }) => verifier);
}
