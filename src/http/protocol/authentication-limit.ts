// Limits failed client authentication in the memory of one replica, so that the limit works without any store. Token
// buckets for (claimed client, address) and for the address alone, refilled evenly over time.

import { hash } from 'node:crypto';
import type { AuthenticationLimiter, Clock } from '../../oauth/ports/ports.ts';
import { TokenBuckets } from '../../oauth/values/token-buckets.ts';
import { addressNetwork } from '../server/client-address.ts';

const FAILURES_PER_CLIENT_AND_ADDRESS = 10;
const FAILURES_PER_ADDRESS = 100;
const REFILL_MILLISECONDS = 60_000;
const BUCKETS_EACH = 25_000;

/** The limiter of a process; at most 50 000 buckets in all. IPv6 addresses count by their /64. */
export class AuthenticationLimit implements AuthenticationLimiter {
  readonly #clock: Clock;
  readonly #pairs = bucketsOf(FAILURES_PER_CLIENT_AND_ADDRESS);
  readonly #addresses = bucketsOf(FAILURES_PER_ADDRESS);

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

function bucketsOf(capacity: number): TokenBuckets {
  return new TokenBuckets({ capacity, refillMilliseconds: REFILL_MILLISECONDS, most: BUCKETS_EACH });
}

/** A digest: the id of an unknown client may be as long as a request. */
function pairKey(network: string, clientId: string): string {
  return hash('sha256', `${network} ${clientId}`, 'base64url');
}

/** Limits nothing (`GRANTRY_RATE_LIMITS=off`). */
export const UNLIMITED_AUTHENTICATION: AuthenticationLimiter = { failed: () => 0 };
