// The users of `grantry dev`.

import { createHash } from 'node:crypto';
import { Blocks } from '../../login/blocks.ts';
import { hashPassword, type LocalUser, type LocalUsers } from '../../login/local/local-users.ts';
import { merged } from '../../login/local/user-lists.ts';
import type { ManifestVerdicts } from '../check/manifest-verdicts.ts';
import { StartError } from '../config/start-error.ts';

/** Users of Secrets and of `--user`, else `demo` if the server is for this machine only. */
export class DevPeople {
  readonly users: LocalUsers;
  readonly blocks = new Blocks();
  readonly #given: readonly LocalUser[];
  readonly #demoAllowed: boolean;
  #demo: LocalUser | undefined;
  #present: readonly LocalUser[] = [];

  constructor(users: LocalUsers, given: readonly LocalUser[], demoAllowed: boolean) {
    this.users = users;
    this.#given = given;
    this.#demoAllowed = demoAllowed;
  }

  get names(): readonly string[] {
    return this.#present.map(({ username }) => username);
  }

  get hasDemo(): boolean {
    return this.#demo !== undefined && this.#present.includes(this.#demo);
  }

  /** Serves the users and blocks of Secrets; the users are undefined when there is no users Secret. */
  async replace({ users: ofSecrets, blocks }: Pick<ManifestVerdicts, 'users' | 'blocks'>): Promise<void> {
    const { users } = merged([{ entries: this.#given }, { entries: [...(ofSecrets ?? []), ...blocks] }]);
    this.#present = users;
    if (ofSecrets === undefined && this.#given.length === 0 && this.#demoAllowed) {
      this.#demo ??= await userOf('demo:demo');
      this.#present = [this.#demo];
    }
    this.blocks.replace(blocks);
    this.users.replace(this.#present);
  }
}

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
