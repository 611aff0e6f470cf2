// How many fetches run at once, in all and of one tenant: the slow hosts of one, or of many, leave room for those of others.

const IN_ALL = 20;
const OF_A_TENANT = 2;
/** The last places are for tenants without a fetch in flight. */
const KEPT_FREE = 5;

interface Waiting {
  readonly tenant: string;
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
  async enter(tenant: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (!this.#hasRoom(tenant)) await this.#turn(tenant, signal);
    else this.#count(tenant, 1);
    return () => {
      this.#count(tenant, -1);
      this.#admitWaiting();
    };
  }

  #turn(tenant: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const waiting = { tenant, enter };
      this.#waiting.add(waiting);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  #admitWaiting(): void {
    for (const waiting of this.#waiting) {
      if (!this.#hasRoom(waiting.tenant)) continue;
      this.#waiting.delete(waiting);
      this.#count(waiting.tenant, 1);
      waiting.enter();
    }
  }

  #hasRoom(tenant: string): boolean {
    const ofTenant = this.#running.get(tenant) ?? 0;
    return this.#inAll < (ofTenant === 0 ? IN_ALL : IN_ALL - KEPT_FREE) && ofTenant < OF_A_TENANT;
  }

  #count(tenant: string, change: 1 | -1): void {
    this.#inAll += change;
    const ofTenant = (this.#running.get(tenant) ?? 0) + change;
    if (ofTenant === 0) this.#running.delete(tenant);
    else this.#running.set(tenant, ofTenant);
  }
}
