// New secrets that their owners do not have yet. They are nowhere else: who does not lead any more forgets them.

import type { Clock } from '../../oauth/ports/ports.ts';

/** How often a rotation asks whether the replicas are there: at first, and the longer it takes the less often. */
const WAITING_MILLISECONDS = 250;
const LONGEST_WAITING_MILLISECONDS = 30_000;

interface Undelivered {
  readonly secret: string;
  /** Since when. Epoch milliseconds. */
  readonly since: number;
}

export class PendingSecrets {
  readonly #clock: Clock;
  readonly #secrets = new Map<string, Undelivered>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** That of a client; undefined when its owner has all there are. */
  get(uid: string): Undelivered | undefined {
    return this.#secrets.get(uid);
  }

  /** To be called before anything of it is written: what no answer comes of may have happened. */
  remember(uid: string, secret: string): void {
    if (this.#secrets.get(uid)?.secret !== secret) this.#secrets.set(uid, { secret, since: this.#clock.now() });
  }

  /** To be called when its owner has it, or is gone. */
  forget(uid: string): void {
    this.#secrets.delete(uid);
  }

  /** Milliseconds until the replicas are to be asked again. */
  untilServed(uid: string): number {
    const now = this.#clock.now();
    const waited = now - (this.#secrets.get(uid)?.since ?? now);
    return Math.min(LONGEST_WAITING_MILLISECONDS, Math.max(WAITING_MILLISECONDS, waited / 4));
  }
}
