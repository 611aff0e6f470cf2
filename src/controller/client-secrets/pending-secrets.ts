// New secrets that are not published yet, by uid of the client. They are only in the memory of the leader and are lost
// with its lease.

import type { Clock } from '../../oauth/ports/ports.ts';

/** The interval at which a rotation polls whether the replicas serve the new secret: first and longest. */
const FIRST_POLL_MILLISECONDS = 250;
const LONGEST_POLL_MILLISECONDS = 30_000;

interface PendingSecret {
  readonly secret: string;
  /** Pending since. Epoch milliseconds. */
  readonly since: number;
}

export class PendingSecrets {
  readonly #clock: Clock;
  readonly #secrets = new Map<string, PendingSecret>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The pending secret of a client; undefined when all are published. */
  get(uid: string): PendingSecret | undefined {
    return this.#secrets.get(uid);
  }

  /** To be called before the secret or its verifier is written: a write without a response may have succeeded. */
  remember(uid: string, secret: string): void {
    if (this.#secrets.get(uid)?.secret !== secret) this.#secrets.set(uid, { secret, since: this.#clock.now() });
  }

  /** To be called when the secret is published, or the client is deleted. */
  forget(uid: string): void {
    this.#secrets.delete(uid);
  }

  /** Milliseconds until the replicas are to be polled again; the longer the secret is pending, the less often. */
  untilNextPoll(uid: string): number {
    const now = this.#clock.now();
    const waited = now - (this.#secrets.get(uid)?.since ?? now);
    return Math.min(LONGEST_POLL_MILLISECONDS, Math.max(FIRST_POLL_MILLISECONDS, waited / 4));
  }
}
