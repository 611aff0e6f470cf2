// How many fetches run at once, in all and of one sharer (a host, or a tenant): slow hosts of one leave room for those of
// others.

const IN_ALL = 20;
const OF_A_SHARER = 2;

interface Waiting {
  readonly sharer: string;
  readonly enter: () => void;
}

export class FetchSlots {
  readonly #running = new Map<string, number>();
  #inAll = 0;
  /** In the order they came. */
  readonly #waiting = new Set<Waiting>();

  /**
   * Waits for a slot.
   * @param signal ends the waiting
   * @returns what frees the slot, to be called once
   * @throws the reason of the signal
   */
  async enter(sharer: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (!this.#hasRoom(sharer)) await this.#turn(sharer, signal);
    else this.#count(sharer, 1);
    return () => {
      this.#count(sharer, -1);
      this.#admitWaiting();
    };
  }

  #turn(sharer: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const waiting = { sharer, enter };
      this.#waiting.add(waiting);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  #admitWaiting(): void {
    for (const waiting of this.#waiting) {
      if (!this.#hasRoom(waiting.sharer)) continue;
      this.#waiting.delete(waiting);
      this.#count(waiting.sharer, 1);
      waiting.enter();
    }
  }

  #hasRoom(sharer: string): boolean {
    return this.#inAll < IN_ALL && (this.#running.get(sharer) ?? 0) < OF_A_SHARER;
  }

  #count(sharer: string, change: 1 | -1): void {
    this.#inAll += change;
    const ofSharer = (this.#running.get(sharer) ?? 0) + change;
    if (ofSharer === 0) this.#running.delete(sharer);
    else this.#running.set(sharer, ofSharer);
  }
}
