// Standard output as the log writes to it: lines gathered into pieces, written asynchronously and bounded, so that neither
// a line nor a slow reader of the output costs a request anything. What does not fit is dropped and counted.

import { destination } from 'pino';

/** What waits for a slow reader. */
const BUFFER_BYTES = 4 * 1024 * 1024;
/** What is written at a time. */
const PIECE = 32 * 1024;
const FLUSH_MILLISECONDS = 200;
/** What a piece that another thread is writing gets to arrive before a flush overtakes it. */
const ON_ITS_WAY_MILLISECONDS = 100;

export class LogOutput {
  // By itself the stream looks through all that it has gathered at every line: that took 5 % of a token request.
  #piece = '';
  #lines = 0;
  #dropped = 0;
  readonly #stream;

  constructor() {
    // Before the stream is made, which writes out what it has at these events and nothing after them.
    for (const end of ['beforeExit', 'exit']) process.on(end, () => this.#handOver());
    this.#stream = destination({
      ...{ dest: 1, sync: false, contentMode: 'buffer' },
      ...{ minLength: PIECE, maxWrite: 2 * PIECE, maxLength: BUFFER_BYTES },
    });
    this.#stream.on('drop', () => {
      this.#dropped += this.#lines;
    });
    setInterval(() => this.#writeSoon(), FLUSH_MILLISECONDS).unref();
  }

  /** How many lines were dropped since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a line with its end. It is written 200 ms later at the latest. */
  write(line: string): void {
    this.#piece += line;
    this.#lines += 1;
    if (this.#piece.length >= PIECE) this.#handOver();
  }

  /** Writes out everything before it returns; for the end of the process. */
  flush(): void {
    this.#handOver();
    // Nothing says when that thread is done until the event loop goes on, and at the end of the process it does not.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ON_ITS_WAY_MILLISECONDS);
    this.#stream.flushSync();
  }

  #writeSoon(): void {
    if (this.#piece === '') return;
    this.#handOver();
    this.#stream.flush();
  }

  #handOver(): void {
    if (this.#piece === '') return;
    // The type of the stream knows text only; `contentMode` says otherwise.
    this.#stream.write(Buffer.from(this.#piece) as unknown as string);
    this.#piece = '';
    this.#lines = 0;
  }
}
