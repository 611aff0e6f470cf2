// The users of `grantry dev`.

import { createHash } from 'node:crypto';
import { hashPassword, type LocalUser, type LocalUsers } from '../../login/local/local-users.ts';
import { StartError } from '../config/start-error.ts';

/** Users of Secrets and of `--user`, else `demo` if the server is for this machine only. */
export class DevPeople {
  readonly users: LocalUsers;
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

  /** @param ofSecrets undefined when there is no users Secret */
  async replace(ofSecrets: readonly LocalUser[] | undefined): Promise<void> {
    const byName = new Map([...(ofSecrets ?? []), ...this.#given].map((user) => [user.username, user]));
    if (ofSecrets === undefined && this.#given.length === 0 && this.#demoAllowed) {
      this.#demo ??= await userOf('demo:demo');
      byName.set(this.#demo.username, this.#demo);
    }
    this.#present = [...byName.values()];
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
