// Parses files without holding up the process: small ones at once, large ones in a thread that is ended when it takes too
// long. No text of a few kilobytes costs much, but some of a megabyte would keep the parser busy for a minute.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { type ParsedFile, parseFile } from './documents.ts';

/** The largest file that is parsed where requests are answered, and how much of such files before these have a turn. */
const INLINE_BYTES = 8 * 1024;
/** A file of manifests at its largest takes well below a second. */
const TIME_LIMIT_MILLISECONDS = 5_000;
const MEMORY_LIMIT_MEGABYTES = 512;

// Beside this file under the same ending: `.ts` in a checkout, `.js` in a build.
const THREAD = new URL(import.meta.url.replace(/file-reader(\.[jt]s)$/, 'file-thread$1'));

/** Reads one file after the other; close it when there are no more for now. */
export class FileReader {
  readonly #timeLimit: number;
  #thread: Worker | undefined;
  #inlineBytes = 0;

  constructor({ timeLimitMilliseconds = TIME_LIMIT_MILLISECONDS }: { readonly timeLimitMilliseconds?: number } = {}) {
    this.#timeLimit = timeLimitMilliseconds;
  }

  /** The documents and faults of a file; one that takes too long or too much memory is a fault. Never rejects. */
  async read(file: string, bytes: Uint8Array): Promise<ParsedFile> {
    if (bytes.length > INLINE_BYTES) return await this.#readInThread(file, bytes);
    this.#inlineBytes += bytes.length;
    if (this.#inlineBytes > INLINE_BYTES) {
      this.#inlineBytes = bytes.length;
      await nextTurn();
    }
    return parseFile(file, bytes);
  }

  /** Ends the thread, if there is one; the next large file begins another. */
  async close(): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.terminate();
  }

  async #readInThread(file: string, bytes: Uint8Array): Promise<ParsedFile> {
    this.#thread ??= startThread();
    const thread = this.#thread;
    const { promise, resolve } = Promise.withResolvers<ParsedFile | undefined>();
    const giveUp = () => resolve(undefined);
    const timer = setTimeout(giveUp, this.#timeLimit);
    thread.once('message', resolve).once('error', giveUp).once('exit', giveUp);
    thread.postMessage({ file, bytes });
    const parsed = await promise;
    clearTimeout(timer);
    thread.removeAllListeners();
    if (parsed !== undefined) return parsed;
    // An error of a thread that is being ended is nobody's: it was answered already.
    thread.on('error', () => undefined);
    await this.close();
    const place = { file, document: undefined, line: undefined, field: undefined };
    return { documents: [], faults: [{ place, reason: 'TooLarge', message: 'The file takes too long to be read.' }] };
  }
}

function startThread(): Worker {
  return new Worker(THREAD, { resourceLimits: { maxOldGenerationSizeMb: MEMORY_LIMIT_MEGABYTES } });
}
