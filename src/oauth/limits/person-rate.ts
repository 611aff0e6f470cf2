// Limits how often one person gets a code or a refresh at one client: each stores something. In memory of one replica; the
// people of a client share nothing, so no number of them meets the limit together.

import type { Clock } from '../ports/ports.ts';
import { TokenBuckets } from '../values/token-buckets.ts';

const BURST = 50;
const PER_SECOND = 5;
/** People at clients that are counted at a time; one that is evicted begins with a full burst. */
const MOST_BUCKETS = 65_536;

/** Limits the codes and refreshes of one person at one client. */
export interface PersonLimiter {
  /** Counts one, unless the person is above the limit. @returns whole seconds to wait if so, else 0 */
  take(clientUid: string, subject: string): number;
}

/** {@link PersonLimiter}: 5 a second, 50 at once. */
export class PersonRate implements PersonLimiter {
  readonly #clock: Clock;
  readonly #buckets = new TokenBuckets({
    capacity: BURST,
    refillMilliseconds: (1000 * BURST) / PER_SECOND,
    most: MOST_BUCKETS,
  });

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  take(clientUid: string, subject: string): number {
    const now = this.#clock.now();
    const name = `${subject} ${clientUid}`;
    const wait = this.#buckets.waitSeconds(name, now);
    if (wait === 0) this.#buckets.take(name, now);
    return wait;
  }
}
