// The users of `grantry dev`.

import { createHash } from 'node:crypto';
import type { ManifestVerdicts } from '../../folder-registry/manifest-verdicts.ts';
import type { Blocks } from '../../login/blocks.ts';
import { hashPassword, type LocalUser, type LocalUsers } from '../../login/local/local-users.ts';
import { UserLists } from '../../login/local/user-lists.ts';
import { StartError } from '../config/start-error.ts';

/** Users of Secrets and of `--user`, else `demo` if the server is for this machine only. */
export class DevPeople {
  readonly #lists: UserLists;
  /** The keys of the Secrets that were there last. */
  #keys: readonly string[] = [];
  readonly #demoAllowed: boolean;
  readonly #isGiven: boolean;
  #demo: LocalUser | undefined;
  #present: readonly LocalUser[] = [];

  constructor(users: LocalUsers, given: readonly LocalUser[], demoAllowed: boolean) {
    this.#lists = new UserLists({ users });
    this.#lists.put(OPTIONS, BEFORE_SECRETS, given);
    this.#isGiven = given.length > 0;
    this.#demoAllowed = demoAllowed;
  }

  get users(): LocalUsers {
    return this.#lists.users;
  }

  get blocks(): Blocks {
    return this.#lists.blocks;
  }

  get names(): readonly string[] {
    return this.#present.map(({ username }) => username);
  }

  get hasDemo(): boolean {
    return this.#demo !== undefined && this.#present.includes(this.#demo);
  }

  /** Serves the lists of Secrets; of one with a fault, its last valid users, less its denials. */
  async replace({ userLists }: Pick<ManifestVerdicts, 'userLists'>): Promise<void> {
    const keys = userLists.map(({ key }) => key);
    for (const key of this.#keys) if (!keys.includes(key)) this.#lists.delete(key);
    this.#keys = keys;
    for (const { key, rank, reading } of userLists) this.#lists.put(key, rank, reading);
    if (!this.#isGiven) this.#lists.put(OPTIONS, BEFORE_SECRETS, await this.#demoFor(userLists));
    this.#present = this.#lists.merge();
  }

  async #demoFor(userLists: ManifestVerdicts['userLists']): Promise<readonly LocalUser[]> {
    if (userLists.length > 0 || !this.#demoAllowed) return [];
    this.#demo ??= await userOf('demo:demo');
    return [this.#demo];
  }
}

/** The list of the command line. A Secret has a uid, which is not empty. */
const OPTIONS = '';
const BEFORE_SECRETS = { createdAt: Number.NEGATIVE_INFINITY, name: '' };

/** A user from `name:password`. @throws StartError when one of the two is missing */
export async function userOf(text: string): Promise<LocalUser> {
  const colon = text.indexOf(':');
  const username = text.slice(0, colon).trim().normalize('NFC');
  const password = text.slice(colon + 1);
  if (colon < 0 || username === '' || password === '') {
    throw new StartError('--user is written as name:password, both not empty', 2);
  }
  // The same hash at every start and in every replica: another one would count as a new password.
  const salt = createHash('sha256').update(`grantry dev user\0${username}`).digest().subarray(0, 16);
  return { username, passwordHash: await hashPassword(password, salt) };
}
