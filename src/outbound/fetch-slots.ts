// How many fetches run at once, in all and of one host: slow hosts of one client leave room for those of others.

const IN_ALL = 20;
const OF_A_HOST = 2;

interface Waiting {
  readonly host: string;
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
  async enter(host: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (!this.#hasRoom(host)) await this.#turn(host, signal);
    else this.#count(host, 1);
    return () => {
      this.#count(host, -1);
      this.#admitWaiting();
    };
  }

  #turn(host: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const waiting = { host, enter };
      this.#waiting.add(waiting);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  #admitWaiting(): void {
    for (const waiting of this.#waiting) {
      if (!this.#hasRoom(waiting.host)) continue;
      this.#waiting.delete(waiting);
      this.#count(waiting.host, 1);
      waiting.enter();
    }
  }

  #hasRoom(host: string): boolean {
    return this.#inAll < IN_ALL && (this.#running.get(host) ?? 0) < OF_A_HOST;
  }

  #count(host: string, change: 1 | -1): void {
    this.#inAll += change;
    const ofHost = (this.#running.get(host) ?? 0) + change;
    if (ofHost === 0) this.#running.delete(host);
    else this.#running.set(host, ofHost);
  }
}
