// Limits failed client authentication in the memory of one replica, so that the limit works without any store. Token
// buckets for (claimed client, address) and for the address alone, refilled evenly over time.

import { hash } from 'node:crypto';
import type { AuthenticationLimiter, Clock } from '../../oauth/ports/ports.ts';
import { addressNetwork } from '../server/client-address.ts';

const FAILURES_PER_CLIENT_AND_ADDRESS = 10;
const FAILURES_PER_ADDRESS = 100;
const REFILL_MILLISECONDS = 60_000;
const BUCKETS_EACH = 25_000;

interface Bucket {
  readonly left: number;
  readonly at: number;
}

/**
 * Buckets of one capacity, refilled completely within {@link REFILL_MILLISECONDS}; the least recently used is evicted
 * first.
 */
class TokenBuckets {
  readonly #buckets = new Map<string, Bucket>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  waitSeconds(key: string, now: number): number {
    const missing = 1 - this.#left(key, now);
    return missing <= 0 ? 0 : Math.ceil((missing * REFILL_MILLISECONDS) / this.#capacity / 1000);
  }

  take(key: string, now: number): void {
    const left = Math.max(0, this.#left(key, now) - 1);
    this.#buckets.delete(key);
    this.#buckets.set(key, { left, at: now });
    if (this.#buckets.size > BUCKETS_EACH) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
  }

  #left(key: string, now: number): number {
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return this.#capacity;
    const refilled = (Math.max(0, now - bucket.at) * this.#capacity) / REFILL_MILLISECONDS;
    return Math.min(this.#capacity, bucket.left + refilled);
  }
}

/** The limiter of a process; at most 50 000 buckets in all. IPv6 addresses count by their /64. */
export class AuthenticationLimit implements AuthenticationLimiter {
  readonly #clock: Clock;
  readonly #pairs = new TokenBuckets(FAILURES_PER_CLIENT_AND_ADDRESS);
  readonly #addresses = new TokenBuckets(FAILURES_PER_ADDRESS);

  constructor(dependencies: { clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  failed(clientId: string | undefined, address: string): number {
    const now = this.#clock.now();
    const network = addressNetwork(address);
    // First, and alone: an address over its limit makes no bucket for the clients that it names.
    const ofAddress = this.#addresses.waitSeconds(network, now);
    if (ofAddress > 0) return ofAddress;
    const pair = clientId === undefined ? undefined : pairKey(network, clientId);
    const ofPair = pair === undefined ? 0 : this.#pairs.waitSeconds(pair, now);
    if (ofPair > 0) return ofPair;
    this.#addresses.take(network, now);
    if (pair !== undefined) this.#pairs.take(pair, now);
    return 0;
  }
}

/** A digest: the id of an unknown client may be as long as a request. */
function pairKey(network: string, clientId: string): string {
  return hash('sha256', `${network} ${clientId}`, 'base64url');
}

/** Limits nothing (`GRANTRY_RATE_LIMITS=off`). */
export const UNLIMITED_AUTHENTICATION: AuthenticationLimiter = { failed: () => 0 };
