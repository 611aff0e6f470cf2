// The local users of a mounted `users.yaml`. The file is polled: the kubelet updates a mounted Secret by a symbolic
// link, which no file system notification reports reliably. A file with a fault only takes away (`Denials`).

import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { type LocalUser, LocalUsers, UsersFileError } from '../../login/local/local-users.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { StartError } from '../config/start-error.ts';

const POLL_MILLISECONDS = 2000;

export interface UsersFileOptions {
  /** Undefined: there are no users, and every sign-in fails. */
  readonly file: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export class UsersFile {
  readonly users: LocalUsers;
  readonly #options: UsersFileOptions;
  #text: string | undefined;
  #fault: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: UsersFileOptions, text: string | undefined, users: readonly LocalUser[]) {
    this.#options = options;
    this.#text = text;
    this.users = new LocalUsers({ users, clock: options.clock });
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

  /** Why the file as it is now does not count, or not as a whole; undefined while it does, and where there is none. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Polls the file until `stop`. */
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
      this.#fault = undefined;
      log.info({ file }, 'the users were read again');
    } catch (error) {
      if (error instanceof UsersFileError) this.users.restrict(error.denials);
      // The same text counts again once it can be read again.
      else this.#text = undefined;
      const before = this.#fault;
      this.#fault = `the file ${placeOfFault(error)}; only what it takes away from people counts`;
      // A file that cannot be read is tried at every poll; each faulty text is read once.
      if (this.#fault !== before || error instanceof UsersFileError)
        log.error({ file }, `${this.#fault}: it ${faultOf(error)}`);
    }
  }
}

/** For the admin port, which is open to more readers than the log: no text of the file. */
function placeOfFault(error: unknown): string {
  if (!(error instanceof UsersFileError)) return faultOf(error);
  const { path } = error;
  const where = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  return `has a fault at users${where}`;
}

async function usersIn(text: string | undefined): Promise<readonly LocalUser[]> {
  if (text === undefined) return [];
  // Imported only where a users file is configured.
  const { parseUsers } = await import('../../login/local/users-yaml.ts');
  return parseUsers(text);
}

function faultOf(error: unknown): string {
  if (error instanceof UsersFileError) return `cannot be used: ${error.message}`;
  return `cannot be read (${(error as NodeJS.ErrnoException).code})`;
}
