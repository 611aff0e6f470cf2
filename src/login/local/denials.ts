// The valid part of a list of users with a fault: the denials that can be read of it.

import { type Document, isMap, isScalar, isSeq } from 'yaml';
import type { Block } from '../blocks.ts';
import type { Denials } from './local-users.ts';
import { BLOCK_FIELDS, isOfBlock, localUser } from './user-entry.ts';
import { usernameSchema } from './username.ts';

/** The denials of a list with a fault, by the entries that can be read: each is read by itself, and as little as possible. */
export function denialsOf({ contents }: Document): Denials {
  if (!isSeq(contents)) return {};
  const disabled = new Set<string>();
  const revoked = new Map<string, number>();
  const named = new Set<string>();
  const ids = new Set<string>();
  const blocks: Block[] = [];
  let areAllNamed = true;
  for (const entry of contents.items) {
    const isDisabled = valuesOf(entry, 'disabled').some(isDenial);
    const times = valuesOf(entry, 'revokeTokensBefore').map(revocationTime);
    if (isOfBlock(fieldsOf(entry))) {
      blocks.push(...blocksIn(entry, { disabled: isDisabled, revokeTokensBefore: Math.max(0, ...times) }));
      continue;
    }
    const id = nameIn(entry, 'id');
    if (id !== undefined) ids.add(id);
    const username = nameIn(entry, 'username');
    if (username === undefined) {
      areAllNamed = false;
      continue;
    }
    named.add(username);
    if (isDisabled) disabled.add(username);
    if (times.length > 0) revoked.set(username, Math.max(...times, revoked.get(username) ?? 0));
  }
  return { disabled, revoked, named: areAllNamed ? named : undefined, reserved: { usernames: named, ids }, blocks };
}

type How = Pick<Block, 'disabled' | 'revokeTokensBefore'>;

/** One for each name of the person: it may be wrong that there are two, and which of them is. */
function blocksIn(entry: unknown, how: How): readonly Block[] {
  const { disabled, revokeTokensBefore = 0 } = how;
  const provider = nameIn(entry, 'provider');
  // A provider that cannot be read is not any provider.
  const isReadable = provider !== undefined || valuesOf(entry, 'provider').length === 0;
  if (!isReadable || (!disabled && revokeTokensBefore === 0)) return [];
  const names = ['sub', ...(provider === undefined ? [] : (['email', 'username'] as const))] as const;
  return names.flatMap((field) => {
    const name = nameIn(entry, field);
    return name === undefined ? [] : [{ provider, [field]: name, disabled, revokeTokensBefore }];
  });
}

/** The only value of a field, without the white space around it; undefined for one that cannot be read. */
function nameIn(entry: unknown, field: keyof typeof BLOCK_FIELDS | 'id'): string | undefined {
  const schema = field === 'id' ? usernameSchema : BLOCK_FIELDS[field];
  const values = valuesOf(entry, field);
  const [value] = values.length === 1 ? values : [];
  return schema.safeParse(typeof value === 'string' ? value.trim() : value).data;
}

/** Whether a value of `disabled` denies: every one does that says no `false` in some spelling, an alias too. */
function isDenial(value: unknown): boolean {
  return value !== false && !['false', 'no', 'off'].includes(String(value).toLowerCase());
}

/** A time that cannot be read revokes all: the person holds nothing until the entry is mended. */
function revocationTime(value: unknown): number {
  return localUser.shape.revokeTokensBefore.safeParse(value).data ?? Number.POSITIVE_INFINITY;
}

/** The values of a key in an entry, which may repeat it. */
function valuesOf(entry: unknown, name: string): readonly unknown[] {
  if (!isMap(entry)) return [];
  const pairs = entry.items.filter(({ key }) => isScalar(key) && key.value === name);
  return pairs.map(({ value }) => (isScalar(value) ? value.value : undefined));
}

/** The keys of an entry that are plain words. */
function fieldsOf(entry: unknown): readonly string[] {
  return isMap(entry) ? entry.items.flatMap(({ key }) => (isScalar(key) ? [String(key.value)] : [])) : [];
}
