// Which DPoP proofs were used: each can be used once. In memory of one process unless the API hands in a store that its replicas
// share.

import type { Clock } from '../oauth/ports/ports.ts';
import { UnavailableError } from './access-denied.ts';

/** Records of used proofs. */
export interface ReplayStore {
  /**
   * True the first time until `expiresAt`, false after that. Rejects where the store cannot say so: the request is answered
   * 503. One atomic action.
   * @param id 43 characters of base64url
   * @param expiresAt epoch milliseconds
   */
  claim(id: string, expiresAt: number): boolean | Promise<boolean>;
}

const RECORDS_MAX = 1_000_000;
/** How long after a sweep of all records the next one is made, in milliseconds. */
const SWEEP_PAUSE = 1000;

/** {@link ReplayStore} in this process. Full, it refuses: no record is forgotten before its time. */
export class MemoryReplays implements ReplayStore {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #expiries = new Map<string, number>();
  #sweepAt = 0;

  /** @param capacity records; default 1 000 000 */
  constructor({ clock, capacity = RECORDS_MAX }: { readonly clock: Clock; readonly capacity?: number }) {
    this.#clock = clock;
    this.#most = capacity;
  }

  /** @throws UnavailableError when full */
  claim(id: string, expiresAt: number): boolean {
    const now = this.#clock.now();
    const known = this.#expiries.get(id);
    if (known !== undefined && known > now) return false;
    this.#makeRoom(now);
    this.#expiries.set(id, expiresAt);
    return true;
  }

  #makeRoom(now: number): void {
    this.#dropOldest(now);
    if (this.#expiries.size < this.#most) return;
    if (now >= this.#sweepAt) {
      this.#sweepAt = now + SWEEP_PAUSE;
      for (const [id, expiresAt] of this.#expiries) if (expiresAt <= now) this.#expiries.delete(id);
    }
    if (this.#expiries.size >= this.#most) throw new UnavailableError('replays_full');
  }

  /** Records expire about in the order they came: the first ones go as they do, without a timer. */
  #dropOldest(now: number): void {
    for (const [id, expiresAt] of this.#expiries) {
      if (expiresAt > now) return;
      this.#expiries.delete(id);
    }
  }
}
