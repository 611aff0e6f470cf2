// The mounted `users.yaml`, which applies before every other list of users. The file is polled: the kubelet updates a mounted
// Secret by a symbolic link, which no file system notification reports reliably.

import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import { UsersFileError } from '../../login/local/local-users.ts';
import type { UserLists } from '../../login/local/user-lists.ts';
import { StartError } from '../config/start-error.ts';
import { placeOfFault, readList } from './list-reading.ts';

const POLL_MILLISECONDS = 2000;
/** No Secret has this key. */
const KEY = 'GRANTRY_USERS_FILE';
const RANK = { createdAt: Number.NEGATIVE_INFINITY, name: KEY };

export interface UsersFileOptions {
  /** Undefined: there is none. */
  readonly file: string | undefined;
  readonly lists: UserLists;
  readonly log: Logger;
}

export class UsersFile {
  readonly #options: UsersFileOptions;
  #text: string | undefined;
  #fault: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: UsersFileOptions) {
    this.#options = options;
  }

  /** @throws StartError for a file that cannot be read or used */
  static async open(options: UsersFileOptions): Promise<UsersFile> {
    const { file } = options;
    const opened = new UsersFile(options);
    if (file === undefined) return opened;
    try {
      const fault = await opened.#read(file);
      if (fault !== undefined) throw fault;
    } catch (error) {
      throw new StartError(`GRANTRY_USERS_FILE: ${file} ${faultOf(error)}`, 2);
    }
    return opened;
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
    const { file = '', lists, log } = this.#options;
    const [text, before] = [this.#text, this.#fault];
    try {
      const fault = await this.#read(file);
      if (text === this.#text) return;
      this.#fault = fault && faultLine(fault);
      if (fault === undefined) log.info({ file }, 'the users were read again');
      else log.error({ file }, `${this.#fault}: it ${faultOf(fault)}`);
    } catch (error) {
      // The same text applies again once it can be read again.
      this.#text = undefined;
      this.#fault = faultLine(error);
      if (lists.unreadable(KEY)) lists.merge();
      // A file that cannot be read is tried at every poll.
      if (this.#fault !== before) log.error({ file }, `${this.#fault}: it ${faultOf(error)}`);
    }
  }

  /** Serves what the file says, where it says something new. @returns its fault */
  async #read(file: string): Promise<UsersFileError | undefined> {
    const text = readFileSync(file, 'utf8');
    if (text === this.#text) return undefined;
    this.#text = text;
    const reading = await readList(text);
    const { lists } = this.#options;
    lists.put(KEY, RANK, reading);
    lists.merge();
    return reading instanceof UsersFileError ? reading : undefined;
  }
}

/** For the admin port, which is open to more readers than the log: no text of the file. */
function faultLine(error: unknown): string {
  const what = error instanceof UsersFileError ? `has a fault at ${placeOfFault(error)}` : faultOf(error);
  return `the file ${what}; only its denials apply`;
}

function faultOf(error: unknown): string {
  if (error instanceof UsersFileError) return `cannot be used: ${error.message}`;
  return `cannot be read (${(error as NodeJS.ErrnoException).code})`;
}
