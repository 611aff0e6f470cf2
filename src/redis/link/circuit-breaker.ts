// Sends nothing to a server that stopped answering. Without it each request would wait for its own time-out.

import type { Clock } from '../../oauth/ports/ports.ts';

/** Unanswered requests in a row that open the circuit. */
const TOLERATED = 3;

/** How long an open circuit admits nothing before the next probe, in milliseconds. */
const PAUSE = 200;

/**
 * Closed: everything is admitted. Open after three unanswered requests in a row: one request at a time is admitted as a
 * probe, 200 ms after the last; the first answer closes it.
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
    return this.#unanswered >= TOLERATED;
  }

  /** Whether a request may be sent now. The caller reports the outcome of one that is admitted. */
  admits(): boolean {
    if (!this.isOpen) return true;
    if (this.#isProbing || this.#clock.now() < this.#nextProbe) return false;
    this.#isProbing = true;
    return true;
  }

  /** Any answer closes the circuit, an error too: the server is reachable. */
  answered(): void {
    this.#unanswered = 0;
    this.#isProbing = false;
  }

  unanswered(): void {
    this.#unanswered += 1;
    this.#isProbing = false;
    this.#nextProbe = this.#clock.now() + PAUSE;
  }

  /** The admitted request was not sent, or too late to be answered. */
  notSent(): void {
    this.#isProbing = false;
  }
}
