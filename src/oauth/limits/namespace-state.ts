// Bounds what the clients of a namespace keep in the store without a person: opaque tokens of client_credentials and
// replay marks. A record is counted with its bytes until it expires, so the sum is the most that is stored. In memory of
// one replica.

import { OAuthError, StoreUnavailableError } from '../ports/error.ts';
import type { Clock } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';

/** A record is counted for up to a sixteenth longer than its lifetime: its ends then need few counters. */
const PARTS_OF_A_LIFETIME = 16;

/** Of one record in Redis: its key, its expiry, its MAC, the tables (measured, Redis 7.0). */
const OVERHEAD_BYTES = 240;
/** Memory is allocated in classes of sizes. */
const ALLOCATED_PER_BYTE = 1.15;

/** A record about to be stored. @typeParam Answer of its write */
export interface HeldRecord<Answer = unknown> {
  /** In the memory of the store. */
  readonly bytes: number;
  readonly expiresAtSeconds: number;
  /** Whether the write has stored it; a write without this stores it whenever it succeeds. */
  readonly isKept?: (answer: Answer) => boolean;
}

/** Bounds the state of namespaces. */
export interface NamespaceLimiter {
  /**
   * Counts a record for the namespace of a client while it is written and from then on; no longer if the write fails
   * or keeps nothing.
   * @param write called unless the namespace would store more than `client.maxState`
   * @throws OAuthError rate_limited, and nothing was written; what `write` throws
   */
  hold<Value>(
    client: Pick<Client, 'namespace' | 'maxState'>,
    record: HeldRecord<Value>,
    write: () => Promise<Value>,
  ): Promise<Value>;
}

/** The bytes that a record takes in Redis, by its length as JSON; a few more rather than fewer. */
export function storedBytes(record: object): number {
  return Math.ceil(OVERHEAD_BYTES + ALLOCATED_PER_BYTE * JSON.stringify(record).length);
}

/** {@link NamespaceLimiter}; at most some hundred counters for each namespace that has an active record. */
export class NamespaceState implements NamespaceLimiter {
  readonly #clock: Clock;
  readonly #namespaces = new Map<string, ActiveBytes>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  async hold<Value>(
    { namespace, maxState }: Pick<Client, 'namespace' | 'maxState'>,
    { bytes, expiresAtSeconds, isKept }: HeldRecord<Value>,
    write: () => Promise<Value>,
  ): Promise<Value> {
    const now = Math.floor(this.#clock.now() / 1000);
    const active = this.#activeIn(namespace);
    const waitSeconds = active.waitSeconds(maxState - bytes, now);
    if (waitSeconds > 0) throw full(waitSeconds);
    const end = countedUntil(now, expiresAtSeconds);
    active.add(end, bytes);
    try {
      const answer = await write();
      if (isKept?.(answer) === false) active.add(end, -bytes);
      return answer;
    } catch (error) {
      if (error instanceof StoreUnavailableError) active.add(end, -bytes);
      throw error;
    }
  }

  #activeIn(namespace: string): ActiveBytes {
    let active = this.#namespaces.get(namespace);
    if (active === undefined) {
      active = new ActiveBytes();
      this.#namespaces.set(namespace, active);
    }
    return active;
  }
}

/** The bytes of one namespace, by when they are gone. */
class ActiveBytes {
  #total = 0;
  /** By end, in seconds. */
  readonly #ends = new Map<number, number>();
  #firstEnd = Infinity;

  add(end: number, bytes: number): void {
    this.#total += bytes;
    this.#ends.set(end, (this.#ends.get(end) ?? 0) + bytes);
    this.#firstEnd = Math.min(this.#firstEnd, end);
  }

  /** Whole seconds until at most so many bytes are active; 0 if that is now. */
  waitSeconds(most: number, now: number): number {
    if (now >= this.#firstEnd) this.#forget(now);
    if (this.#total <= most) return 0;
    let left = this.#total;
    let last = now + 1;
    for (const [end, bytes] of [...this.#ends].sort(([one], [other]) => one - other)) {
      left -= bytes;
      last = end;
      if (left <= most) break;
    }
    return last - now;
  }

  #forget(now: number): void {
    this.#firstEnd = Infinity;
    for (const [end, bytes] of this.#ends) {
      if (end > now) {
        this.#firstEnd = Math.min(this.#firstEnd, end);
        continue;
      }
      this.#total -= bytes;
      this.#ends.delete(end);
    }
  }
}

/** The end rounded up to a multiple of a power of two seconds, by the lifetime. */
function countedUntil(now: number, end: number): number {
  const step = 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, end - now) / PARTS_OF_A_LIFETIME)));
  return Math.ceil(end / step) * step;
}

function full(retryAfterSeconds: number): OAuthError {
  return new OAuthError('rate_limited', 'Too many tokens of this namespace are alive.', {
    reason: 'namespace_state_full',
    retryAfterSeconds,
  });
}
