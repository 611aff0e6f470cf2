// Whether a server that stopped answering is asked at all. Without it every request would find out by itself, and wait.

import type { Clock } from '../../oauth/ports/ports.ts';

/** How many answers have to stay out in a row before nothing more is sent. */
const TOLERATED = 3;

/** How long nothing is sent before one request is let through again, in milliseconds. */
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

  /** Whether a request may be sent now. Who is told so reports what became of it. */
  admits(): boolean {
    if (!this.isOpen) return true;
    if (this.#isProbing || this.#clock.now() < this.#nextProbe) return false;
    this.#isProbing = true;
    return true;
  }

  /** Any answer will do, an error too: the server is there. */
  answered(): void {
    this.#unanswered = 0;
    this.#isProbing = false;
  }

  unanswered(): void {
    this.#unanswered += 1;
    this.#isProbing = false;
    this.#nextProbe = this.#clock.now() + PAUSE;
  }

  /** Nothing was sent after all, or too late to be answered. */
  notSent(): void {
    this.#isProbing = false;
  }
}
