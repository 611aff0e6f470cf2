// Decides when requests to a server that stopped answering are refused at once, instead of each waiting for its
// time-out.

import type { Clock } from '../../oauth/ports/ports.ts';

/** After this many unanswered requests in a row the circuit opens. */
const OPENS_AT = 3;

/** Milliseconds from the last unanswered request to the next probe of an open circuit. */
const PROBE_INTERVAL = 200;

/**
 * Closed: every request is admitted. Open: requests are refused, except for a probe, which is admitted
 * {@link PROBE_INTERVAL} after the last unanswered request. There is one probe at a time, unless a request that was
 * admitted before the circuit opened ends during a probe. Any answer closes the circuit.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  #unanswered = 0;
  #nextProbe = 0;
  #isProbing = false;

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  get isOpen(): boolean {
    return this.#unanswered >= OPENS_AT;
  }

  /**
   * Whether a request may be sent now. The caller reports the outcome of an admitted request: `answered`, `unanswered`
   * or `notSent`.
   */
  admits(): boolean {
    if (!this.isOpen) return true;
    if (this.#isProbing || this.#clock.now() < this.#nextProbe) return false;
    this.#isProbing = true;
    return true;
  }

  /** Any answer closes the circuit, even an error, because the server is reachable. */
  answered(): void {
    this.#unanswered = 0;
    this.#isProbing = false;
  }

  unanswered(): void {
    this.#unanswered += 1;
    this.#isProbing = false;
    this.#nextProbe = this.#clock.now() + PROBE_INTERVAL;
  }

  /**
   * The admitted request was never sent, or was sent so late that a missing answer proves nothing. The next probe may
   * start at once.
   */
  notSent(): void {
    this.#isProbing = false;
  }
}
