// Writes the log to standard output: lines are batched, and the batches written asynchronously one after the other from
// a bounded buffer, so that neither a line nor a slow reader delays a request. Lines that do not fit are dropped and
// counted.

import { write, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const STANDARD_OUTPUT = 1;
/** The size of the buffer for a slow reader. */
const BUFFER_BYTES = 4 * 1024 * 1024;
/** The size of a batch. */
const PIECE = 32 * 1024;
const FLUSH_MILLISECONDS = 200;
/** The retry interval while the output is full. */
const FULL_MILLISECONDS = 20;
/** The longest that the end of the process waits for a reader that reads nothing. */
const STALLED_MILLISECONDS = 2000;
/** The time that a batch in flight on another thread gets before the exit of the process writes the next one. */
const IN_FLIGHT_MILLISECONDS = 100;

/** A batch of lines, or the unwritten rest of one. */
interface Piece {
  readonly bytes: Buffer;
  readonly lines: number;
}

export class LogOutput {
  #gathered = '';
  #lines = 0;
  #dropped = 0;
  /** In order; the first one is being written. */
  #pieces: Piece[] = [];
  #bytes = 0;
  /** Whether another thread is writing the first piece. */
  #isInFlight = false;
  #writing: Promise<void> | undefined;
  #bytesWritten = 0;

  constructor() {
    process.on('beforeExit', () => this.#writeSoon());
    process.on('exit', () => this.#writeNow());
    setInterval(() => this.#writeSoon(), FLUSH_MILLISECONDS).unref();
  }

  /** The number of lines dropped since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Appends a line, with its line break. The output is written 200 ms later at the latest. */
  write(line: string): void {
    this.#gathered += line;
    this.#lines += 1;
    if (this.#gathered.length >= PIECE) this.#writeSoon();
  }

  /**
   * Writes everything, for an end of the process that can wait. Without it the exit of the process writes the rest, but
   * cannot know how much of a piece in flight was written. Lines are dropped when the reader reads nothing for 2 s.
   */
  async flush(): Promise<void> {
    this.#writeSoon();
    for (let bytesWritten = -1; this.#writing !== undefined && bytesWritten !== this.#bytesWritten; ) {
      bytesWritten = this.#bytesWritten;
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
      this.#isInFlight = true;
      const { error, bytesWritten } = await written(piece.bytes);
      this.#isInFlight = false;
      if (error === undefined) this.#removeWritten(bytesWritten);
      else if (isFull(error)) await pause(FULL_MILLISECONDS);
      else this.#dropAll();
    }
    this.#writing = undefined;
  }

  /** At the exit of the process: waits for the piece in flight without writing it again, then writes the rest. */
  #writeNow(): void {
    this.#gather();
    if (this.#isInFlight) {
      // The completion of that thread is reported by the event loop, which runs no more at exit.
      sleep(IN_FLIGHT_MILLISECONDS);
      this.#removeWritten(this.#pieces[0]?.bytes.length ?? 0);
    }
    for (let stalled = 0; this.#pieces[0] !== undefined && stalled < STALLED_MILLISECONDS; ) {
      try {
        this.#removeWritten(writeSync(STANDARD_OUTPUT, this.#pieces[0].bytes));
        stalled = 0;
      } catch (error) {
        if (!isFull(error as NodeJS.ErrnoException)) return;
        sleep(FULL_MILLISECONDS);
        stalled += FULL_MILLISECONDS;
      }
    }
  }

  /** Removes so many written bytes from the first piece. */
  #removeWritten(bytes: number): void {
    const [piece, ...others] = this.#pieces;
    if (piece === undefined) return;
    const rest = { bytes: piece.bytes.subarray(bytes), lines: piece.lines };
    this.#pieces = rest.bytes.length === 0 ? others : [rest, ...others];
    this.#bytes -= bytes;
    this.#bytesWritten += bytes;
  }

  /** Drops everything but a piece in flight, whose fate is unknown. */
  #dropAll(): void {
    const kept = this.#isInFlight ? 1 : 0;
    for (const { bytes, lines } of this.#pieces.splice(kept)) {
      this.#dropped += lines;
      this.#bytes -= bytes.length;
    }
  }
}

interface Written {
  readonly error: NodeJS.ErrnoException | undefined;
  readonly bytesWritten: number;
}

/** Writes as many bytes as the output accepts. */
function written(bytes: Buffer): Promise<Written> {
  return new Promise((resolve) => {
    write(STANDARD_OUTPUT, bytes, (error, bytesWritten) => resolve({ error: error ?? undefined, bytesWritten }));
  });
}

function isFull({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EAGAIN' || code === 'EBUSY';
}

function sleep(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
