// The local users of a mounted `users.yaml`. The file is polled: the kubelet updates a mounted Secret by a symbolic
// link, which no file system notification reports reliably.

import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { type LocalUser, LocalUsers, UsersFileError } from '../../login/local-users.ts';
import { StartError } from '../config/start-error.ts';

const POLL_MILLISECONDS = 2000;

export interface UsersFileOptions {
  /** Undefined: there are no users, and every sign-in fails. */
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

  /** Polls the file until `stop`. An invalid file leaves the users as they are. */
  start(): void {
    if (this.#options.file === undefined) return;
    this.#timer = setInterval(() => void this.#reload(), POLL_MILLISECONDS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #reload(): Promise<void> {
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
  // Imported only where a users file is configured.
  const { parseUsers } = await import('../../login/users-yaml.ts');
  return parseUsers(text);
}

function faultOf(error: unknown): string {
  if (error instanceof UsersFileError) return `cannot be used: ${error.message}`;
  return `cannot be read (${(error as NodeJS.ErrnoException).code})`;
}
