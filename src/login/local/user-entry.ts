// One entry of a `users.yaml`: a local user with a password hash, or a block without one. The schemas, and their words.

import { z } from 'zod';
import { LOCAL_USERS } from '../../oauth/registry/identity-provider.ts';
import type { Block } from '../blocks.ts';
import type { LocalUser } from './local-users.ts';
import { passwordHashFault } from './password.ts';
import { usernameSchema } from './username.ts';

/** What an entry of a list is. */
export type UserEntry = LocalUser | Block;

export function isUser(entry: UserEntry): entry is LocalUser {
  return 'passwordHash' in entry;
}

const text = (length: number) => z.string().min(1).max(length);

function hashMissing({ input }: { readonly input?: unknown }): string | undefined {
  if (input !== undefined) return undefined;
  return 'is missing; grantry hash-password makes one (an entry that only blocks names a provider or a sub)';
}

const disabled = z.boolean().optional();
const revokeTokensBefore = z.iso
  .datetime({ offset: true, error: 'is not an RFC 3339 time such as 2026-01-31T12:00:00Z' })
  .transform((value) => Date.parse(value))
  .optional();

/** The schema of a local user. */
export const localUser = z.strictObject({
  username: usernameSchema,
  id: usernameSchema.optional(),
  passwordHash: z.string({ error: hashMissing }).superRefine((value, context) => {
    const message = passwordHashFault(value);
    if (message) context.addIssue({ code: 'custom', message });
  }),
  displayName: text(254).optional(),
  email: text(254).optional(),
  groups: z.array(text(254)).max(200).optional(),
  disabled,
  revokeTokensBefore,
}) satisfies z.ZodType<LocalUser>;

/** The fields of a block by themselves: each can be read though others are faulty. */
export const BLOCK_FIELDS = {
  provider: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, `is neither the name of an identity provider nor ${LOCAL_USERS}`),
  sub: z.string().regex(/^usr_[\w-]{22}$/, 'is not the `sub` of a person, which begins with usr_'),
  email: usernameSchema,
  username: usernameSchema,
} as const;

const block = z
  .strictObject({
    provider: BLOCK_FIELDS.provider.optional(),
    sub: BLOCK_FIELDS.sub.optional(),
    email: BLOCK_FIELDS.email.optional(),
    username: BLOCK_FIELDS.username.optional(),
    disabled,
    revokeTokensBefore,
  })
  .superRefine(({ provider, sub, email, username, ...how }, context) => {
    const refuse = (message: string) => void context.addIssue({ code: 'custom', message });
    if ([sub, email, username].filter((name) => name !== undefined).length !== 1)
      refuse('names the person it blocks by one of sub, email and username');
    if (provider === undefined && sub === undefined) refuse('names a person without a provider by sub only');
    if (!how.disabled && how.revokeTokensBefore === undefined)
      refuse('blocks nothing without disabled: true or revokeTokensBefore');
  }) satisfies z.ZodType<Block>;

/** The schema of an entry, by its fields. @param fields as they are in the list */
export function schemaOf(fields: readonly string[]): z.ZodType<UserEntry> {
  return isOfBlock(fields) ? block : localUser;
}

/** Whether an entry with these fields is meant as a block: one whose hash alone is forgotten is none. */
export function isOfBlock(fields: readonly string[]): boolean {
  return !fields.includes('passwordHash') && (fields.includes('provider') || fields.includes('sub'));
}
