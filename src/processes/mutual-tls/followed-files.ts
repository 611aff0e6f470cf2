// PEM files that are read again every minute: certificates are renewed while a process runs. A change that cannot be used
// is reported, and what was read before stays. Polled: the kubelet updates a mounted Secret by a symbolic link, which no
// file system notification reports reliably.

import { readFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import { StartError } from '../config/start-error.ts';

/** Files that are used together. */
export interface FollowedFilesOptions {
  /** Path by the variable that names it. */
  readonly files: Readonly<Record<string, string>>;
  /** Uses the texts of the files, in their order. @throws Error, without any of the text, when they cannot be used */
  readonly use: (texts: readonly string[]) => void;
  readonly log: Pick<Logger, 'info' | 'error'>;
}

export class FollowedFiles {
  readonly #options: FollowedFilesOptions;
  /** The texts of the latest attempt, or the fault of reading them. */
  #latest: string | undefined;

  private constructor(options: FollowedFilesOptions) {
    this.#options = options;
  }

  /** Reads and uses the files. @throws StartError */
  static async open(options: FollowedFilesOptions): Promise<FollowedFiles> {
    const followed = new FollowedFiles(options);
    const fault = await followed.#take();
    if (fault !== undefined) throw new StartError(`${Object.keys(options.files).join(' and ')}: ${fault}`, 2);
    return followed;
  }

  /** Reads the files again, and uses them if they differ. Reports each fault once. */
  async refresh(): Promise<void> {
    const before = this.#latest;
    const fault = await this.#take();
    if (this.#latest === before) return;
    const { log, files } = this.#options;
    const paths = Object.values(files);
    if (fault === undefined) log.info({ files: paths }, 'the certificates were read again');
    else log.error({ files: paths }, `what was read before stays in use: the file ${fault}`);
  }

  /** @returns why the files cannot be used; undefined when they are, or are the same as before */
  async #take(): Promise<string | undefined> {
    const { files, use } = this.#options;
    let texts: readonly string[];
    try {
      texts = await Promise.all(Object.values(files).map((path) => readFile(path, 'utf8')));
    } catch (error) {
      const { code, path } = error as NodeJS.ErrnoException;
      this.#latest = `${code} ${path}`;
      return `${path} cannot be read (${code})`;
    }
    const latest = texts.join('\0');
    if (latest === this.#latest) return undefined;
    this.#latest = latest;
    try {
      use(texts);
      return undefined;
    } catch (error) {
      return `cannot be used: ${error instanceof Error ? error.message : error}`;
    }
  }
}
