// Local users in a folder of manifests: Secrets of type `grantry.dev/users` with the key `users.yaml`, and bare files.

import { REVOKED_UNTIL } from '../../admission/clients/revoked-until.ts';
import { readSecretValue } from '../../admission/references/references.ts';
import { USERS_SECRET } from '../../admission/references/secret-parts.ts';
import type { Block } from '../../login/blocks.ts';
import { type LocalUser, UsersFileError } from '../../login/local/local-users.ts';
import { isUser, type UserEntry } from '../../login/local/user-entry.ts';
import { type ListContent, merged, WHY_LEFT_OUT } from '../../login/local/user-lists.ts';
import { parseUsers } from '../../login/local/users-yaml.ts';
import type { UserFile } from '../../manifests/manifest-folder.ts';
import type { ManifestObject } from '../../manifests/objects.ts';
import type { ManifestFault } from '../../manifests/place.ts';
import { LOCAL_USERS } from '../../oauth/registry/identity-provider.ts';

const { type: USERS_TYPE, key: USERS_KEY } = USERS_SECRET;
const FIELD = 'revokeTokensBefore';
/** Of people in one message. */
const MAX_NAMED = 3;

/** What the judgement of lists in Secrets needs besides them. */
export interface UsersContext {
  /** Epoch milliseconds. */
  readonly now: number;
  /** The names of all IdentityProviders; where there are none, they are assumed to be elsewhere. */
  readonly providers: ReadonlySet<string>;
}

/**
 * The users and blocks of these Secrets, in order: of two with one name the first counts. Of a Secret with a fault only the
 * blocks that can be read count.
 */
export function usersIn(
  secrets: readonly ManifestObject[],
  { now, providers }: UsersContext,
): {
  readonly users: readonly LocalUser[];
  readonly blocks: readonly Block[];
  readonly faults: readonly ManifestFault[];
  /** One for each Secret that shuts people out by a time that is ahead, and for each with a block of no provider. */
  readonly advisories: readonly ManifestFault[];
  /** Whether there is a users Secret at all, valid or not. */
  readonly given: boolean;
} {
  const faults: ManifestFault[] = [];
  const advisories: ManifestFault[] = [];
  const found = secrets.filter(({ manifest }) => manifest.type === USERS_TYPE);
  const lists: (ListContent & { readonly secret: ManifestObject })[] = [];
  for (const secret of found) {
    const refuse = (message: string) =>
      faults.push({ place: secret.locate(placeOf(secret)), reason: 'InvalidUsers', message });
    const value = readSecretValue(secret.manifest, USERS_KEY, true);
    if (value.outcome !== 'found') {
      refuse(`The Secret has no text under ${USERS_KEY}.`);
      continue;
    }
    try {
      const parsed = parseUsers(value.value);
      lists.push({ secret, entries: parsed });
      const named = shutOut(parsed, now).slice(0, MAX_NAMED);
      const message = named.map((one) => `users[${one.index}].${FIELD}: ${one.message}`).join(' ');
      const place = secret.locate(placeOf(secret));
      if (message !== '') advisories.push({ place, reason: REVOKED_UNTIL, message });
      const unknown = blocksOfNone(parsed, providers).slice(0, MAX_NAMED).join(' ');
      if (unknown !== '') advisories.push({ place, reason: 'IdentityProviderNotFound', message: unknown });
    } catch (error) {
      if (!(error instanceof UsersFileError)) throw error;
      const { blocks = [], reserved } = error.denials;
      lists.push({ secret, entries: blocks, reserved });
      refuse(error.message);
    }
  }
  const { users, blocks, leftOut } = merged(lists);
  for (const [position, { secret }] of lists.entries()) {
    const left = leftOut[position];
    if (left === undefined) continue;
    const message = `users[${left.index}] does not count, nor others like it: ${WHY_LEFT_OUT[left.reason]}.`;
    faults.push({ place: secret.locate(placeOf(secret)), reason: 'InvalidUsers', message });
  }
  return { users, blocks, faults, advisories, given: found.length > 0 };
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
