// The people of a mounted `users.yaml`. It is looked at again and again: a Secret that is mounted changes by a link, of which
// no file system tells reliably.

import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { type LocalUser, LocalUsers, UsersFileError } from '../../login/local-users.ts';
import { StartError } from '../config/start-error.ts';

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

  private constructor(options: UsersFileOptions, text: string | undefined, users: readonly LocalUser[]) {
    this.#options = options;
    this.#text = text;
    this.users = new LocalUsers({ users });
  }

  /** @throws StartError for a file that cannot be read or used */
  static async open(options: UsersFileOptions): Promise<UsersFile> {
    const { file } = options;
    try {
      const text = file && readFileSync(file, 'utf8');
      return new UsersFile(options, text, await usersIn(text));
    } catch (error) {
      throw new StartError(`GRANTRY_USERS_FILE: ${file} ${faultOf(error)}`, 2);
    }
  }

  /** Follows the file, until `stop`. A file that cannot be used changes nobody. */
  start(): void {
    if (this.#options.file === undefined) return;
    this.#timer = setInterval(() => void this.#look(), LOOK_MILLISECONDS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const { file = '', log } = this.#options;
    try {
      const text = readFileSync(file, 'utf8');
      if (text === this.#text) return;
      this.#text = text;
      this.users.replace(await usersIn(text));
      log.info({ file }, 'the users were read again');
    } catch (error) {
      log.error({ file }, `the users stay as they were: the file ${faultOf(error)}`);
    }
  }
}

async function usersIn(text: string | undefined): Promise<readonly LocalUser[]> {
  if (text === undefined) return [];
  // Loaded only where there is such a file.
  const { parseUsers } = await import('../../login/users-yaml.ts');
  return parseUsers(text);
}

function faultOf(error: unknown): string {
  if (error instanceof UsersFileError) return `cannot be used: ${error.message}`;
  return `cannot be read (${(error as NodeJS.ErrnoException).code})`;
}
