// Limits failed client authentication in the memory of one replica, so that the limit works without any store. Token
// buckets for (claimed client, address) and for the address alone, refilled evenly over time.

import { hash } from 'node:crypto';
import type { AuthenticationLimiter, Clock } from '../../oauth/ports/ports.ts';
import { TokenBuckets } from '../../oauth/values/token-buckets.ts';
import { countedNetworks } from '../server/client-address.ts';

const FAILURES_PER_CLIENT_AND_ADDRESS = 10;
const FAILURES_PER_ADDRESS = 100;
const REFILL_MILLISECONDS = 60_000;
const BUCKETS_EACH = 25_000;

/** Buckets by the share of their networks: 1 for the smallest. */
const SHARES = [1, 4, 16] as const;

function sized(capacity: number): TokenBuckets {
  return new TokenBuckets({ capacity, refillMilliseconds: REFILL_MILLISECONDS, most: BUCKETS_EACH });
}

function bucketsOf(capacity: number): ReadonlyMap<number, TokenBuckets> {
  return new Map(SHARES.map((share) => [share, sized(capacity * share)]));
}

/** The limiter of a process; at most 150 000 buckets in all. IPv6 addresses count by their /64, /56 and /48. */
export class AuthenticationLimit implements AuthenticationLimiter {
  readonly #clock: Clock;
  readonly #pairs = bucketsOf(FAILURES_PER_CLIENT_AND_ADDRESS);
  readonly #addresses = bucketsOf(FAILURES_PER_ADDRESS);

  constructor(dependencies: { clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  failed(clientId: string | undefined, address: string): number {
    const now = this.#clock.now();
    const networks = countedNetworks(address);
    const ofAddress = networks.map(({ network, share }) => ({ buckets: this.#addresses.get(share), key: network }));
    // First, and alone: an address over its limit makes no bucket for the clients that it names.
    const wait = longestWait(ofAddress, now);
    if (wait > 0 || clientId === undefined) {
      if (wait === 0) take(ofAddress, now);
      return wait;
    }
    const ofPair = networks.map(({ network, share }) => ({
      buckets: this.#pairs.get(share),
      key: pairKey(network, clientId),
    }));
    const waitOfPair = longestWait(ofPair, now);
    if (waitOfPair === 0) take([...ofAddress, ...ofPair], now);
    return waitOfPair;
  }
}

interface Counted {
  readonly buckets: TokenBuckets | undefined;
  readonly key: string;
}

function longestWait(counted: readonly Counted[], now: number): number {
  return Math.max(...counted.map(({ buckets, key }) => buckets?.waitSeconds(key, now) ?? 0));
}

function take(counted: readonly Counted[], now: number): void {
  for (const { buckets, key } of counted) buckets?.take(key, now);
}

/** A digest: the id of an unknown client may be as long as a request. */
function pairKey(network: string, clientId: string): string {
  return hash('sha256', `${network} ${clientId}`, 'base64url');
}

/** Limits nothing (`GRANTRY_RATE_LIMITS=off`). */
export const UNLIMITED_AUTHENTICATION: AuthenticationLimiter = { failed: () => 0 };
