// Standard output as the log writes to it: lines gathered into pieces, written asynchronously one after the other and bounded,
// so that neither a line nor a slow reader of the output costs a request anything. What does not fit is dropped and counted.

import { write, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const STANDARD_OUTPUT = 1;
/** What waits for a slow reader. */
const BUFFER_BYTES = 4 * 1024 * 1024;
/** What is written at a time. */
const PIECE = 32 * 1024;
const FLUSH_MILLISECONDS = 200;
/** Until a reader that has no room is tried again. */
const FULL_MILLISECONDS = 20;
/** An end waits no longer for a reader that takes nothing. */
const STALLED_MILLISECONDS = 2000;
/** What a piece that another thread is writing gets to arrive before the exit of the process overtakes it. */
const ON_ITS_WAY_MILLISECONDS = 100;

/** Whole lines, or what is left of them. */
interface Piece {
  readonly bytes: Buffer;
  readonly lines: number;
}

export class LogOutput {
  #gathered = '';
  #lines = 0;
  #dropped = 0;
  /** The first one is being written. */
  #pieces: Piece[] = [];
  #bytes = 0;
  /** Whether another thread has the first piece at this moment. */
  #isOnItsWay = false;
  #writing: Promise<void> | undefined;
  #taken = 0;

  constructor() {
    process.on('beforeExit', () => this.#writeSoon());
    process.on('exit', () => this.#writeNow());
    setInterval(() => this.#writeSoon(), FLUSH_MILLISECONDS).unref();
  }

  /** How many lines were dropped since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a line with its end. It is written 200 ms later at the latest. */
  write(line: string): void {
    this.#gathered += line;
    this.#lines += 1;
    if (this.#gathered.length >= PIECE) this.#writeSoon();
  }

  /**
   * Writes out everything, for an end that can wait. Without it the exit of the process writes what is left, but cannot know
   * how much of a piece that is on its way has arrived. What a reader does not take for 2 s is dropped.
   */
  async flush(): Promise<void> {
    this.#writeSoon();
    for (let taken = -1; this.#writing !== undefined && taken !== this.#taken; ) {
      taken = this.#taken;
      await Promise.race([this.#writing, pause(STALLED_MILLISECONDS, undefined, { ref: false })]);
    }
    this.#dropAll();
  }

  #writeSoon(): void {
    this.#gather();
    if (this.#pieces.length > 0) this.#writing ??= this.#writeAll();
  }

  #gather(): void {
    if (this.#gathered === '') return;
    const piece = { bytes: Buffer.from(this.#gathered), lines: this.#lines };
    this.#gathered = '';
    this.#lines = 0;
    if (this.#bytes + piece.bytes.length > BUFFER_BYTES) {
      this.#dropped += piece.lines;
      return;
    }
    this.#pieces.push(piece);
    this.#bytes += piece.bytes.length;
  }

  async #writeAll(): Promise<void> {
    for (let [piece] = this.#pieces; piece !== undefined; [piece] = this.#pieces) {
      this.#isOnItsWay = true;
      const { error, taken } = await written(piece.bytes);
      this.#isOnItsWay = false;
      if (error === undefined) this.#took(taken);
      else if (isFull(error)) await pause(FULL_MILLISECONDS);
      else this.#dropAll();
    }
    this.#writing = undefined;
  }

  /** At the exit of the process: nothing that is on its way is written twice, and what is left comes after it. */
  #writeNow(): void {
    this.#gather();
    if (this.#isOnItsWay) {
      // Nothing says when that thread is done until the event loop goes on, and now it does not.
      sleep(ON_ITS_WAY_MILLISECONDS);
      this.#took(this.#pieces[0]?.bytes.length ?? 0);
    }
    for (let stalled = 0; this.#pieces[0] !== undefined && stalled < STALLED_MILLISECONDS; ) {
      try {
        this.#took(writeSync(STANDARD_OUTPUT, this.#pieces[0].bytes));
        stalled = 0;
      } catch (error) {
        if (!isFull(error as NodeJS.ErrnoException)) return;
        sleep(FULL_MILLISECONDS);
        stalled += FULL_MILLISECONDS;
      }
    }
  }

  /** So many bytes of the first piece are out. */
  #took(bytes: number): void {
    const [piece, ...others] = this.#pieces;
    if (piece === undefined) return;
    const rest = { bytes: piece.bytes.subarray(bytes), lines: piece.lines };
    this.#pieces = rest.bytes.length === 0 ? others : [rest, ...others];
    this.#bytes -= bytes;
    this.#taken += bytes;
  }

  /** Nobody takes it. Of what is on its way nobody knows. */
  #dropAll(): void {
    const kept = this.#isOnItsWay ? 1 : 0;
    for (const { bytes, lines } of this.#pieces.splice(kept)) {
      this.#dropped += lines;
      this.#bytes -= bytes.length;
    }
  }
}

interface Written {
  readonly error: NodeJS.ErrnoException | undefined;
  readonly taken: number;
}

/** Writes as much of it as there is room for. */
function written(bytes: Buffer): Promise<Written> {
  return new Promise((resolve) => {
    write(STANDARD_OUTPUT, bytes, (error, taken) => resolve({ error: error ?? undefined, taken }));
  });
}

function isFull({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EAGAIN' || code === 'EBUSY';
}

function sleep(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
