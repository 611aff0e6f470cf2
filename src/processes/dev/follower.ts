// Handles the states of a watched folder sequentially. Of the states that arrive while one is being handled, only the
// newest is handled next.

import type { FolderContents } from '../../manifests/folder.ts';
import type { Clock } from '../../oauth/ports/ports.ts';

/** The bounds of a timer, in milliseconds: a step that is due later is asked for again. */
const LONGEST_TIMER = 86_400_000;
const SHORTEST_TIMER = 100;

/** Handles a state. @returns when it is to be handled again, in epoch milliseconds; undefined: never. Must not reject */
type Handle = (contents: FolderContents) => Promise<number | undefined>;

/** Passes states from the watch to one handler; the newest state from before it is set is kept for it. */
export class Follower {
  readonly #clock: Clock;
  #newest: FolderContents | undefined;
  #isDue = false;
  #timer: NodeJS.Timeout | undefined;
  #handle: Handle | undefined;
  #running = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  take(contents: FolderContents): void {
    this.#newest = contents;
    this.again();
  }

  /** Handles the newest state again. */
  again(): void {
    this.#isDue = true;
    void this.#run();
  }

  /**
   * @param first the state that is handled already
   * @param dueAt when it is to be handled again, in epoch milliseconds; undefined: never
   */
  follow(handle: Handle, first: FolderContents, dueAt: number | undefined): void {
    this.#newest ??= first;
    this.#handle = handle;
    this.#schedule(dueAt);
    void this.#run();
  }

  async #run(): Promise<void> {
    if (this.#running || this.#handle === undefined) return;
    this.#running = true;
    try {
      while (this.#isDue && this.#newest !== undefined) {
        this.#isDue = false;
        this.#schedule(await this.#handle(this.#newest));
      }
    } finally {
      this.#running = false;
    }
  }

  #schedule(dueAt: number | undefined): void {
    clearTimeout(this.#timer);
    if (dueAt === undefined) return;
    const milliseconds = Math.min(Math.max(dueAt - this.#clock.now(), SHORTEST_TIMER), LONGEST_TIMER);
    this.#timer = setTimeout(() => this.again(), milliseconds);
    this.#timer.unref();
  }
}
