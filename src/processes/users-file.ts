// The people of a mounted `users.yaml`. It is looked at again and again: a Secret that is mounted changes by a link, of which
// no file system tells reliably.

import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { type LocalUser, LocalUsers, parseUsers, UsersFileError } from '../login/local-users.ts';
import { StartError } from './start-error.ts';

const LOOK_MILLISECONDS = 2000;

export interface UsersFileOptions {
  /** Undefined: nobody can sign in. */
  readonly file: string | undefined;
  readonly log: Logger;
}

export class UsersFile {
  readonly users: LocalUsers;
  readonly #options: UsersFileOptions;
  #text: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @throws StartError for a file that cannot be read or used */
  constructor(options: UsersFileOptions) {
    this.#options = options;
    const { file } = options;
    try {
      this.#text = file && readFileSync(file, 'utf8');
      this.users = new LocalUsers({ users: usersIn(this.#text) });
    } catch (error) {
      throw new StartError(`GRANTRY_USERS_FILE: ${file} ${faultOf(error)}`, 2);
    }
  }

  /** Follows the file, until `stop`. A file that cannot be used changes nobody. */
  start(): void {
    if (this.#options.file !== undefined) this.#timer = setInterval(() => this.#look(), LOOK_MILLISECONDS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { file = '', log } = this.#options;
    try {
      const text = readFileSync(file, 'utf8');
      if (text === this.#text) return;
      this.#text = text;
      this.users.replace(usersIn(text));
      log.info({ file }, 'the users were read again');
    } catch (error) {
      log.error({ file }, `the users stay as they were: the file ${faultOf(error)}`);
    }
  }
}

function usersIn(text: string | undefined): readonly LocalUser[] {
  return text === undefined ? [] : parseUsers(text);
}

function faultOf(error: unknown): string {
  if (error instanceof UsersFileError) return `cannot be used: ${error.message}`;
  return `cannot be read (${(error as NodeJS.ErrnoException).code})`;
}
