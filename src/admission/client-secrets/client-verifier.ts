// The Secret in the release namespace that tells the token servers which secrets of a client they accept: its name, type and
// data, both ways. It holds verifiers only, never a secret. The controller writes it, every replica reads it. When verifiers
// are made and dropped is planned by the controller.

import { z } from 'zod';
import { fieldsOf } from '../kinds/manifest.ts';
import { readSecretValue } from '../references/references.ts';

/** Only a Secret of exactly this type counts: what else stands in the namespace cannot pass for one by its name. */
export const VERIFIER_SECRET_TYPE = 'grantry.dev/client-verifier';

const NAME_PREFIX = 'grantry-client-';
const VERIFIER_BYTES = 32;

/** So many secrets of one client count at a time: a month of daily rotations, each with a month of grace. */
export const VERIFIERS_MAX = 32;

/** One secret that is accepted. */
export interface AcceptedVerifier {
  /** What `secretVerifier` makes of the client's uid and the secret. */
  readonly verifier: Uint8Array;
  /** Which of the client's secrets this is: 1 for the first, and one more for each that followed. */
  readonly revision: number;
  /** Epoch milliseconds (whole seconds) from which on it is no longer accepted; undefined: until it is replaced. */
  readonly expiresAt?: number | undefined;
}

/** What the replicas are told of one client's credentials. */
export interface ClientVerifiers {
  /** Grows with every change, so that replicas can say which one they serve (`secretRevision`). */
  readonly revision: number;
  /** Newest first; never empty. */
  readonly verifiers: readonly AcceptedVerifier[];
}

/** The name of the Secret for an OAuthClient. */
export function verifierSecretName(uid: string): string {
  return `${NAME_PREFIX}${uid}`;
}

/** The uid of the OAuthClient that a Secret of such a name is for. */
export function clientUidIn(secretName: string): string {
  return secretName.slice(NAME_PREFIX.length);
}

/** `data` of the Secret as the API server takes it. */
export function verifierSecretData({ revision, verifiers }: ClientVerifiers): Readonly<Record<string, string>> {
  const written = verifiers.map((accepted) => ({
    verifier: Buffer.from(accepted.verifier).toString('base64url'),
    revision: accepted.revision,
    ...(accepted.expiresAt !== undefined && { expiresAt: new Date(accepted.expiresAt).toISOString() }),
  }));
  return { revision: encoded(String(revision)), verifiers: encoded(JSON.stringify(written)) };
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64');
}

const END = z.iso.datetime({ offset: true });

/**
 * What such a Secret says, and of which client. Never throws.
 * @param secret a Secret as the API server gives it
 * @returns undefined when it is no Secret of this name and type, or its data cannot be read as a whole
 */
export function readVerifierSecret(secret: unknown): (ClientVerifiers & { readonly uid: string }) | undefined {
  const { metadata, type, data } = fieldsOf(secret);
  const { name } = fieldsOf(metadata);
  if (type !== VERIFIER_SECRET_TYPE || typeof name !== 'string' || !name.startsWith(NAME_PREFIX)) return undefined;
  const revision = readSecretValue({ data }, 'revision');
  const text = readSecretValue({ data }, 'verifiers');
  if (revision.outcome !== 'found' || text.outcome !== 'found') return undefined;
  const number = countOf(Number(revision.value));
  const verifiers = verifiersOf(parsed(text.value));
  if (number === undefined || verifiers === undefined) return undefined;
  return { uid: clientUidIn(name), revision: number, verifiers };
}

/** What most verifier Secrets say: one verifier that does not end. */
export interface SingleVerifier {
  /** That of {@link ClientVerifiers}. */
  readonly revision: number;
  /** As text, a character a byte. */
  readonly verifier: string;
  /** That of {@link AcceptedVerifier}. */
  readonly verifierRevision: number;
}

const PLAIN_REVISION = /^[1-9][0-9]{0,8}$/;
const PLAIN_VERIFIERS = /^\[\{"verifier":"([A-Za-z0-9_-]{43})","revision":([1-9][0-9]{0,8})\}\]$/;

/**
 * The same as {@link readVerifierSecret} in less time, of which there are as many as clients.
 * @returns undefined unless there is but one verifier, without an end, written as {@link verifierSecretData} does
 */
export function readSingleVerifier(secret: unknown): SingleVerifier | undefined {
  const { metadata, type, data } = fieldsOf(secret);
  const { name } = fieldsOf(metadata);
  if (type !== VERIFIER_SECRET_TYPE || typeof name !== 'string' || !name.startsWith(NAME_PREFIX)) return undefined;
  const { revision, verifiers } = fieldsOf(data);
  const number = plainText(revision);
  const found = PLAIN_VERIFIERS.exec(plainText(verifiers) ?? '');
  if (number === undefined || !PLAIN_REVISION.test(number) || found === null) return undefined;
  const [, verifier = '', newest] = found;
  const text = scratch.toString('latin1', 0, scratch.write(verifier, 'base64url'));
  return { revision: Number(number), verifier: text, verifierRevision: Number(newest) };
}

/** Where text is decoded: a buffer for each would cost more than all the rest. */
const scratch = Buffer.allocUnsafeSlow(256);

/** Undefined unless it is base64 as it must be, and short; no text where it is other than ASCII. */
function plainText(encoded: unknown): string | undefined {
  if (typeof encoded !== 'string' || encoded.length > scratch.length) return undefined;
  const length = scratch.write(encoded, 'base64');
  return scratch.toString('base64', 0, length) === encoded ? scratch.toString('latin1', 0, length) : undefined;
}

// By hand, because there are as many of them as clients.
function verifiersOf(list: unknown): readonly AcceptedVerifier[] | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined;
  // The newest are first. A controller of another version may keep more.
  const newest = list.slice(0, VERIFIERS_MAX);
  const verifiers = newest.flatMap((entry) => acceptedVerifier(entry) ?? []);
  return verifiers.length === newest.length ? verifiers : undefined;
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
 * The verifiers that count at a time, newest first; the controller drops the others soon.
 * @param now epoch milliseconds
 */
export function livingVerifiers({ verifiers }: ClientVerifiers, now: number): readonly Uint8Array[] {
  return verifiers
    .filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now)
    .map(({ verifier }) => verifier);
}
