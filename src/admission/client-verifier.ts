// The Secret in the release namespace that tells the token servers which secrets of a client they accept: its name, type and
// data, both ways. It holds verifiers only, never a secret. The controller writes it, every replica reads it. When verifiers
// are made and dropped is planned by the controller.

import { z } from 'zod';
import { fieldsOf } from './manifest.ts';
import { readSecretValue } from './references.ts';

/** Only a Secret of exactly this type counts: what else stands in the namespace cannot pass for one by its name. */
export const VERIFIER_SECRET_TYPE = 'grantry.dev/client-verifier';

const NAME_PREFIX = 'grantry-client-';
const VERIFIER_BYTES = 32;
const VERIFIERS_MAX = 8;

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

const count = z.int().min(1);

const VERIFIERS = z
  .array(
    z.object({
      verifier: z
        .string()
        .transform((text) => Buffer.from(text, 'base64url') as Uint8Array)
        .refine(({ length }) => length === VERIFIER_BYTES),
      revision: count,
      expiresAt: z.iso
        .datetime({ offset: true })
        .transform((text) => Date.parse(text))
        .optional(),
    }),
  )
  .min(1)
  .max(VERIFIERS_MAX);

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
  const verifiers = VERIFIERS.safeParse(parsed(text.value));
  const number = count.safeParse(Number(revision.value));
  if (!verifiers.success || !number.success) return undefined;
  return { uid: name.slice(NAME_PREFIX.length), revision: number.data, verifiers: verifiers.data };
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
