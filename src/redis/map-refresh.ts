// When the map of a Cluster is asked for again. Replicas of grantry lose a Cluster in the same moment, and must not all ask
// whoever is left in step: where something is amiss, chance decides when, as it does about lost connections.

import { reconnectDelay } from './reconnect-delay.ts';

/** How often it is asked for when all is well, give or take half of it; milliseconds. */
const RARELY = 2000;

/** How often it is looked at whether all is well; nobody is asked for that. Milliseconds. */
const LOOK = 200;

export interface MapRefreshParts {
  /** Asks for the map. Never throws. */
  readonly ask: () => Promise<void>;
  /** Whether every primary of the map takes requests. */
  readonly isWell: () => boolean;
}

export class MapRefresh {
  readonly #ask: () => Promise<void>;
  readonly #isWell: () => boolean;
  readonly #looking: NodeJS.Timeout;
  #next: NodeJS.Timeout | undefined;
  /** Whether the next time is far off. */
  #isRare = false;
  #isDoubted = false;
  /** How often it was asked for since all was well for a while. */
  #tries = 0;
  #isStopped = false;

  /** Asks for the first time. */
  constructor({ ask, isWell }: MapRefreshParts) {
    this.#ask = ask;
    this.#isWell = isWell;
    this.#looking = setInterval(() => {
      if (!isWell()) this.doubt();
    }, LOOK);
    this.#run();
  }

  /** The map may be old: it is asked for soon, or soon again. */
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
    await this.#ask();
    if (this.#isDoubted || !this.#isWell()) this.#soon();
    else this.#rarely();
  }

  #soon(): void {
    this.#isRare = false;
    this.#tries += 1;
    this.#schedule(reconnectDelay(this.#tries));
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
