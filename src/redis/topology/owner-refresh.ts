// When it is asked again who has the keys: a Cluster for its map, Sentinels for their primary. Replicas of grantry lose a server
// in the same moment, and must not all ask whoever is left in step: where something is amiss, chance decides when, as it does
// about lost connections.

import { reconnectDelay } from '../link/reconnect-delay.ts';

/** How often it is asked when all is well, give or take half of it; milliseconds. */
const RARELY = 2000;

/** How often it is looked at whether all is well; nobody is asked for that. Milliseconds. */
const LOOK = 200;

export interface OwnerRefreshParts {
  /** Asks. Never throws. */
  readonly ask: () => Promise<void>;
  /** Whether nothing that is known is amiss, where that can be seen without being told. */
  readonly isWell?: () => boolean;
  /** Between two times at least, in milliseconds; 0 unless given. */
  readonly least?: number;
}

export class OwnerRefresh {
  readonly #ask: () => Promise<void>;
  readonly #isWell: () => boolean;
  readonly #least: number;
  readonly #looking: NodeJS.Timeout | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #next: NodeJS.Timeout | undefined;
  /** Whether the next time is far off. */
  #isRare = false;
  #isDoubted = false;
  /** How often it was asked since all was well for a while. */
  #tries = 0;
  #isStopped = false;

  /** Asks for the first time. */
  constructor({ ask, isWell, least = 0 }: OwnerRefreshParts) {
    this.#ask = ask;
    this.#isWell = isWell ?? (() => true);
    this.#least = least;
    if (isWell !== undefined) {
      this.#looking = setInterval(() => {
        if (!isWell()) this.doubt();
      }, LOOK);
    }
    this.#run();
  }

  /** The answer may be old: it is asked soon, or soon again. */
  doubt(): void {
    this.#isDoubted = true;
    if (this.#isRare) this.#soon();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#looking);
    clearTimeout(this.#next);
  }

  async #run(): Promise<void> {
    this.#isDoubted = false;
    this.#askedAt = performance.now();
    await this.#ask();
    if (this.#isDoubted || !this.#isWell()) this.#soon();
    else this.#rarely();
  }

  #soon(): void {
    this.#isRare = false;
    this.#tries += 1;
    this.#schedule(Math.max(reconnectDelay(this.#tries), this.#askedAt + this.#least - performance.now()));
  }

  #rarely(): void {
    this.#isRare = true;
    this.#schedule(RARELY * (0.5 + Math.random()), () => {
      this.#isRare = false;
      this.#tries = 0;
    });
  }

  #schedule(delay: number, first = () => {}): void {
    clearTimeout(this.#next);
    if (this.#isStopped) return;
    this.#next = setTimeout(() => {
      first();
      this.#run();
    }, delay);
  }
}
