// Local users in a folder of manifests: Secrets of type `grantry.dev/users` with the key `users.yaml`, and bare files.

import { REVOKED_UNTIL } from '../admission/clients/revoked-until.ts';
import { readSecretValue } from '../admission/references/references.ts';
import { USERS_SECRET } from '../admission/references/secret-parts.ts';
import { UsersFileError } from '../login/local/local-users.ts';
import { isUser, type UserEntry } from '../login/local/user-entry.ts';
import {
  byRank,
  type ListContent,
  type ListRank,
  type ListReading,
  merged,
  WHY_LEFT_OUT,
} from '../login/local/user-lists.ts';
import { parseUsers } from '../login/local/users-yaml.ts';
import type { UserFile } from '../manifests/manifest-folder.ts';
import type { ManifestObject } from '../manifests/objects.ts';
import type { ManifestFault } from '../manifests/place.ts';
import { LOCAL_USERS } from '../oauth/registry/identity-provider.ts';

const { type: USERS_TYPE, key: USERS_KEY } = USERS_SECRET;
const FIELD = 'revokeTokensBefore';
/** Of people in one message. */
const MAX_NAMED = 3;

/** What the validation of lists in Secrets needs besides them. */
export interface UsersContext {
  /** Epoch milliseconds. */
  readonly now: number;
  /** The names of all IdentityProviders; where there are none, they are assumed to be elsewhere. */
  readonly providers: ReadonlySet<string>;
}

/** What a Secret in the folder says of people. */
export interface UsersList {
  /** The uid of the Secret. */
  readonly key: string;
  readonly rank: ListRank;
  readonly reading: ListReading;
}

const NO_TEXT = new UsersFileError(`The Secret has no text under ${USERS_KEY}.`);

/** The lists in these Secrets, and how many users they have together. */
export function usersIn(
  secrets: readonly ManifestObject[],
  { now, providers }: UsersContext,
): {
  readonly lists: readonly UsersList[];
  readonly count: number;
  readonly faults: readonly ManifestFault[];
  /** One for each Secret that shuts people out by a time that is ahead, and for each with a block of no provider. */
  readonly advisories: readonly ManifestFault[];
} {
  const faults: ManifestFault[] = [];
  const advisories: ManifestFault[] = [];
  const lists = secrets
    .filter(({ manifest }) => manifest.type === USERS_TYPE)
    .map((secret) => ({ secret, key: secret.uid, rank: secret, reading: readingOf(secret) }))
    .sort((a, b) => byRank(a.rank, b.rank));
  const { users, leftOut } = merged(lists.map(({ reading }) => contentOf(reading)));
  for (const [position, { secret, reading }] of lists.entries()) {
    const place = secret.locate(placeOf(secret));
    const refuse = (message: string) => faults.push({ place, reason: 'InvalidUsers', message });
    const left = leftOut[position];
    if (left !== undefined) {
      refuse(`users[${left.index}] does not count, nor others like it: ${WHY_LEFT_OUT[left.reason]}.`);
    }
    if (reading instanceof UsersFileError) {
      refuse(reading.message);
      continue;
    }
    const named = shutOut(reading, now).slice(0, MAX_NAMED);
    const message = named.map((one) => `users[${one.index}].${FIELD}: ${one.message}`).join(' ');
    if (message !== '') advisories.push({ place, reason: REVOKED_UNTIL, message });
    const unknown = blocksOfNone(reading, providers).slice(0, MAX_NAMED).join(' ');
    if (unknown !== '') advisories.push({ place, reason: 'IdentityProviderNotFound', message: unknown });
  }
  return { lists, count: users.length, faults, advisories };
}

function readingOf({ manifest }: ManifestObject): ListReading {
  const value = readSecretValue(manifest, USERS_KEY, true);
  if (value.outcome !== 'found') return NO_TEXT;
  try {
    return parseUsers(value.value);
  } catch (error) {
    if (error instanceof UsersFileError) return error;
    throw error;
  }
}

/** The content of a list; of one with a fault only the denials, as its former state is unknown. */
function contentOf(reading: ListReading): ListContent {
  if (!(reading instanceof UsersFileError)) return { entries: reading };
  return { entries: reading.denials.blocks ?? [], reserved: reading.denials.reserved };
}

/**
 * The first fault of each file, and how many users the others have: nothing is served from them.
 * @param now epoch milliseconds
 */
export function usersInFiles(
  files: readonly UserFile[],
  now: number,
): {
  readonly count: number;
  readonly faults: readonly ManifestFault[];
  /** One for each person with a `revokeTokensBefore` that is ahead. */
  readonly advisories: readonly ManifestFault[];
} {
  const faults: ManifestFault[] = [];
  const advisories: ManifestFault[] = [];
  let count = 0;
  for (const { text, locate } of files) {
    try {
      const entries = parseUsers(text);
      count += entries.filter(isUser).length;
      for (const { index, message } of shutOut(entries, now))
        advisories.push({ place: locate([index, FIELD]), reason: REVOKED_UNTIL, message });
    } catch (error) {
      if (!(error instanceof UsersFileError)) throw error;
      const path = error.path.filter((step) => typeof step !== 'symbol');
      faults.push({ place: locate(path), reason: 'InvalidUsers', message: error.message });
    }
  }
  return { count, faults, advisories };
}

/** The faults of files where only Secrets are read. */
export function unreadUserFiles(files: readonly UserFile[]): readonly ManifestFault[] {
  const message = `Users are read from Secrets only: give this list to one of the type ${USERS_TYPE}, as ${USERS_KEY}.`;
  return files.map(({ locate }) => ({ place: locate([]), reason: 'InvalidUsers', message }));
}

/** The people with a `revokeTokensBefore` that is ahead: {@link LocalUsers} lets none of them sign in. */
function shutOut(
  entries: readonly UserEntry[],
  now: number,
): readonly { readonly index: number; readonly message: string }[] {
  return entries.flatMap(({ revokeTokensBefore = 0 }, index) => {
    if (revokeTokensBefore <= now) return [];
    const until = new Date(revokeTokensBefore).toISOString();
    return [{ index, message: `This time is in the future: until ${until} the person cannot sign in.` }];
  });
}

/** The blocks of a provider that there is not: they shut out none of its people. */
function blocksOfNone(entries: readonly UserEntry[], providers: ReadonlySet<string>): readonly string[] {
  if (providers.size === 0) return [];
  return entries.flatMap((entry, index) => {
    if (isUser(entry) || entry.provider === undefined || entry.provider === LOCAL_USERS) return [];
    if (providers.has(entry.provider)) return [];
    return [`users[${index}].provider: No IdentityProvider has this name: the entry shuts out no person.`];
  });
}

function placeOf({ manifest }: ManifestObject): readonly string[] {
  for (const field of ['stringData', 'data']) {
    const values = manifest[field];
    if (typeof values === 'object' && values !== null && Object.hasOwn(values, USERS_KEY)) return [field, USERS_KEY];
  }
  return [];
}
