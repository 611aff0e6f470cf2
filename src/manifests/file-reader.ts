// Parses files without blocking the event loop: small ones on the main thread, large ones in a worker thread with a
// time limit. A file of a few kilobytes is always cheap (a property test in test/manifests/documents.test.ts), but some
// of a megabyte would keep the parser busy for a minute.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { type ParsedFile, parseFile } from './documents.ts';

/** The largest file that is parsed on the main thread, and the bytes parsed there before the event loop runs again. */
const INLINE_BYTES = 8 * 1024;
/** A valid file of the largest size takes well below a second. */
const TIME_LIMIT_MILLISECONDS = 5_000;
const MEMORY_LIMIT_MEGABYTES = 512;

// In this folder, with the extension of this file: `.ts` in a checkout, `.js` in a build.
const THREAD = new URL(import.meta.url.replace(/file-reader(\.[jt]s)$/, 'file-thread$1'));

/** Parses one file at a time. Close it after the last file; a later one opens it again. */
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
      await yieldToEventLoop();
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
    // Not removeAllListeners(): that removes those of Node, too, and no further answer arrives.
    thread.off('message', resolve).off('error', giveUp).off('exit', giveUp);
    if (parsed !== undefined) return parsed;
    // The result is decided: a further error of the thread that is being terminated is ignored.
    thread.on('error', () => undefined);
    await this.close();
    const place = { file, document: undefined, line: undefined, field: undefined };
    return { documents: [], faults: [{ place, reason: 'TooLarge', message: 'The file takes too long to be read.' }] };
  }
}

function startThread(): Worker {
  return new Worker(THREAD, { resourceLimits: { maxOldGenerationSizeMb: MEMORY_LIMIT_MEGABYTES } });
}
