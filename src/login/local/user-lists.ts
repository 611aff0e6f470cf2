// Merges the lists that people come from into the local users and the blocks of now. A list with a fault keeps its last
// valid users, less the denials that can be read of it.

import { type Block, Blocks } from '../blocks.ts';
import {
  type Denials,
  type LocalUser,
  type LocalUsers,
  type Reserved,
  subjectOf,
  UsersFileError,
} from './local-users.ts';
import { isUser, type UserEntry } from './user-entry.ts';

/** So many local users are served in all, of the lists that come first. Blocks always apply. */
const USERS_MAX = 10_000;

/** Which list applies of two that name one user: the older one, then the one whose name comes first. */
export interface ListRank {
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly name: string;
}

/** The reading of a list: its entries, or its fault. */
export type ListReading = readonly UserEntry[] | UsersFileError;

/** A user of a list that is not served. */
export interface LeftOut {
  /** The place in the list. */
  readonly index: number;
  readonly reason: 'named_before' | 'too_many';
}

/** In words, to come after a colon. */
export const WHY_LEFT_OUT: Readonly<Record<LeftOut['reason'], string>> = {
  named_before: 'an older list has that username or id',
  too_many: `there are more than ${USERS_MAX} users in all`,
};

/** The valid part of a list. */
export interface ListContent {
  readonly entries: readonly UserEntry[];
  /** Of a list with a fault, the names and ids that lists after it may not have. */
  readonly reserved?: Reserved | undefined;
}

interface KeptList extends ListContent {
  readonly rank: ListRank;
  /** Whether it has been read without a fault: until then it may name users that are not known. */
  readonly isKnown: boolean;
  /** Whether it could be read, without a fault, the last time. */
  readonly isCurrent: boolean;
}

export interface UserListsOptions {
  readonly users: LocalUsers;
  readonly blocks?: Blocks;
}

export class UserLists {
  readonly users: LocalUsers;
  /** Of people of identity providers, too. */
  readonly blocks: Blocks;
  readonly #lists = new Map<string, KeptList>();
  #leftOut: ReadonlyMap<string, LeftOut> = new Map();

  constructor({ users, blocks = new Blocks() }: UserListsOptions) {
    this.users = users;
    this.blocks = blocks;
  }

  /** Takes a new reading of a list. It applies from the next {@link merge} on. @param key of the list: another one is another list */
  put(key: string, rank: ListRank, reading: ListReading): void {
    const { entries = [], isKnown = false } = this.#lists.get(key) ?? {};
    const isFaulty = reading instanceof UsersFileError;
    this.#lists.set(key, {
      rank,
      entries: isFaulty ? restricted(entries, reading.denials) : reading,
      reserved: isFaulty ? reading.denials.reserved : undefined,
      isKnown: isKnown || !isFaulty,
      isCurrent: !isFaulty,
    });
  }

  /** Keeps what a list had that cannot be read now. It applies from the next {@link merge} on. @returns whether that is new */
  unreadable(key: string): boolean {
    const list = this.#lists.get(key);
    if (list === undefined || !list.isCurrent) return false;
    this.#lists.set(key, { ...list, isCurrent: false });
    return true;
  }

  /** Forgets a list from the next {@link merge} on. */
  delete(key: string): void {
    this.#lists.delete(key);
  }

  /** Serves the lists as they are now, all at once. @returns the users that are served */
  merge(): readonly LocalUser[] {
    const lists = [...this.#lists].sort(([, a], [, b]) => byRank(a.rank, b.rank));
    const { users, blocks, leftOut, isWhole: isMergedWhole } = merged(lists.map(([, list]) => list));
    const isWhole = isMergedWhole && lists.every(([, { isKnown }]) => isKnown);
    this.#leftOut = new Map(lists.flatMap(([key], index) => (leftOut[index] ? [[key, leftOut[index]]] : [])));
    this.blocks.replace(blocks);
    const outdated = lists.flatMap(([, { isCurrent, entries }]) => (isCurrent ? [] : entries.filter(isUser)));
    this.users.replace(users, { isWhole, outdated: new Set(outdated.map(subjectOf)) });
    return users;
  }

  /** By key, the first user of a list that is not served, as of the last {@link merge}. */
  get leftOut(): ReadonlyMap<string, LeftOut> {
    return this.#leftOut;
  }
}

/** What lists say together. */
export interface MergedLists {
  /** Of two with one name or one `id` the first; a block of a local user is in the user. */
  readonly users: readonly LocalUser[];
  readonly blocks: readonly Block[];
  /** By list, the first user of it that is not served while a user of the same name is. */
  readonly leftOut: readonly (LeftOut | undefined)[];
  /** Whether no user is left out for a name in a list with a fault: that one may be gone from it as well. */
  readonly isWhole: boolean;
}

/** Merges lists. @param lists those that come first apply before others */
export function merged(lists: readonly ListContent[]): MergedLists {
  const list = lists.flatMap(({ entries }) => entries).filter((entry) => !isUser(entry));
  const blocks = new Blocks(list);
  const users: LocalUser[] = [];
  const [subjects, usernames] = [new Map<string, LocalUser>(), new Map<string, LocalUser>()];
  const [reservedNames, reservedIds] = [new Set<string>(), new Set<string>()];
  let isWhole = true;
  const leftOut = lists.map(({ entries, reserved }): LeftOut | undefined => {
    let first: LeftOut | undefined;
    for (const [index, entry] of entries.entries()) {
      if (!isUser(entry)) continue;
      const subject = subjectOf(entry);
      const counted = subjects.get(subject) ?? usernames.get(entry.username);
      const isReserved = reservedNames.has(entry.username) || (entry.id !== undefined && reservedIds.has(entry.id));
      if (counted === undefined && isReserved) {
        isWhole = false;
        first ??= { index, reason: 'named_before' };
      } else if (counted === undefined && users.length < USERS_MAX) {
        users.push(blockedBy(blocks, entry, subject));
        subjects.set(subject, entry);
        usernames.set(entry.username, entry);
      } else if (counted === undefined) first ??= { index, reason: 'too_many' };
      // One list may come in two ways: as a file, and as a Secret.
      else if (JSON.stringify(counted) !== JSON.stringify(entry)) first ??= { index, reason: 'named_before' };
    }
    for (const name of reserved?.usernames ?? []) reservedNames.add(name);
    for (const id of reserved?.ids ?? []) reservedIds.add(id);
    return first;
  });
  return { users, blocks: list, leftOut, isWhole };
}

/** Orders lists: those that apply before others come first. */
export function byRank(a: ListRank, b: ListRank): number {
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.name < b.name ? -1 : 1;
}

/** Disables, removes and revokes users, and adds blocks; no other user changes, and none is added. */
function restricted(entries: readonly UserEntry[], denials: Denials): readonly UserEntry[] {
  const { disabled, revoked, named, blocks = [] } = denials;
  const kept = entries.filter((entry) => !isUser(entry) || (named?.has(entry.username) ?? true));
  const restrictedUsers = kept.map((entry) => {
    if (!isUser(entry)) return entry;
    const { username, revokeTokensBefore = 0 } = entry;
    return {
      ...entry,
      disabled: entry.disabled || disabled?.has(username),
      revokeTokensBefore: Math.max(revokeTokensBefore, revoked?.get(username) ?? 0),
    };
  });
  // A list that stays faulty for long must not grow with each of its texts.
  const blocked = new Set(kept.filter((entry) => !isUser(entry)).map((block) => JSON.stringify(block)));
  return [...restrictedUsers, ...blocks.filter((block) => !blocked.has(JSON.stringify(block)))];
}

/** The user, and what blocks say of the person. A user that is blocked is as one that its own entry disables. */
function blockedBy(blocks: Blocks, user: LocalUser, subject: string): LocalUser {
  const { username, email } = user;
  const time = blocks.strictest({ subject, username, email });
  if (time === 0) return user;
  if (time === Number.POSITIVE_INFINITY) return { ...user, disabled: true };
  return { ...user, revokeTokensBefore: Math.max(user.revokeTokensBefore ?? 0, time) };
}
