// Limits guesses at passwords, and sign-ins. Of one name at one network, of one network, and of one name over all
// networks; a browser where the person has signed in before has limits of its own (`known-browsers.ts`). The store
// counts what must hold over all replicas, and only what is bounded or ends within a minute.

import { createHmac, hkdfSync } from 'node:crypto';
import type { Clock, RateLimitStore } from '../../oauth/ports/ports.ts';
import { countedNetworks } from '../server/client-address.ts';
import { RecentGuesses } from './recent-guesses.ts';

const MINUTE = 60_000;
const HOUR = 3_600_000;

const GUESSES_PER_NAME_AND_NETWORK = 5;
const GUESSES_PER_NAME_AND_NETWORK_IN_AN_HOUR = 20;
const GUESSES_PER_NETWORK = 30;
/** Above it only the passwords of known browsers are verified. */
const GUESSES_PER_NAME_IN_AN_HOUR = 100;
/** The most of these that one network may use up at one replica, however large it is. */
const MOST_OF_A_NETWORK = 80;
/** Names and networks counted over the hour in this process: up to 200 bytes each. */
const MOST_PAIRS = 100_000;

/** Answers of identity providers that cannot be believed, or were not got, in a minute. */
const CALLBACKS_PER_NETWORK = 30;

/** Each creates a session; without a bound one person could fill the store and lock all others out. */
const SIGN_INS_PER_PERSON = 300;
const SIGN_IN_WINDOW = 600_000;

/** An attempt to sign in. */
export interface LoginAttempt {
  readonly username: string;
  readonly address: string;
  /** This browser for this person ({@link KnownPerson}); undefined where the person has not signed in there. */
  readonly knownBrowser: { readonly id: string; readonly subject: string } | undefined;
}

/** The limits before and after a password is verified. */
export interface LoginLimiter {
  /**
   * Counts an attempt before its password is verified, so that parallel guesses are not free.
   * @returns whole seconds to wait; 0 when the password may be verified
   */
  begin(attempt: LoginAttempt): Promise<number>;
  /** Undoes the count: the password was right, or it was not verified. */
  refund(attempt: LoginAttempt): Promise<void>;
  /**
   * Counts a right password, from any address.
   * @returns whole seconds to wait; 0 when this person may have another session
   */
  signedIn(subject: string): Promise<number>;
  /**
   * Counts the return of a browser from an identity provider before the answer is verified: a made-up one costs a call.
   * @returns whole seconds to wait; 0 when the answer may be verified
   */
  beginCallback(address: string): Promise<number>;
  /** Undoes the count: the answer was the provider's. */
  refundCallback(address: string): Promise<void>;
}

/** Limits nothing (`GRANTRY_RATE_LIMITS=off`). */
export const UNLIMITED_LOGINS: LoginLimiter = {
  begin: async () => 0,
  refund: async () => {},
  signedIn: async () => 0,
  beginCallback: async () => 0,
  refundCallback: async () => {},
};

export interface LoginLimitOptions {
  readonly issuer: string;
  /** Makes the numbers of names; every replica has the same. */
  readonly pepper: Uint8Array;
  readonly store: RateLimitStore;
  readonly clock: Clock;
}

/** A counter, and how many times the limit of the smallest network it has. */
interface Counter {
  readonly key: string;
  readonly share: number;
}

/** The counters of one attempt; an undefined one does not count it. */
interface Counters {
  /** Of the name at its networks, or of the known browser. */
  readonly pairs: readonly Counter[];
  readonly ofName: string | undefined;
  /** Of the networks; of a known browser, of its person at all known browsers. */
  readonly ofNetworks: readonly Counter[];
}

/** Counts sign-ins. IPv6 addresses count by their /64, /56 and /48. */
export class LoginLimit implements LoginLimiter {
  readonly #store: RateLimitStore;
  readonly #clock: Clock;
  readonly #nameKey: Buffer;
  readonly #lastHour = new RecentGuesses({ windowMilliseconds: HOUR, most: MOST_PAIRS });

  constructor({ issuer, pepper, store, clock }: LoginLimitOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#nameKey = Buffer.from(hkdfSync('sha256', pepper, issuer, 'grantry login name v1', 32));
  }

  async begin(attempt: LoginAttempt): Promise<number> {
    const counters = this.#countersOf(attempt);
    // In memory first: the guesses of one network beyond its share cost the store nothing.
    const wait = this.#countInMemory(counters.pairs);
    if (wait > 0) return wait;
    let isCounted = false;
    try {
      const waitOfStore = await this.#countInStore(counters);
      isCounted = waitOfStore === 0;
      return waitOfStore;
    } finally {
      if (!isCounted) this.#refundInMemory(counters.pairs);
    }
  }

  async refund(attempt: LoginAttempt): Promise<void> {
    const counters = this.#countersOf(attempt);
    const { pairs, ofName, ofNetworks } = counters;
    this.#refundInMemory(pairs);
    const stored = [...pairs, ...ofNetworks].map(({ key }) => key).concat(ofName ?? []);
    await Promise.all(stored.map((key) => this.#store.refund(key)));
  }

  signedIn(subject: string): Promise<number> {
    return this.#store.hit(`signed in ${subject}`, SIGN_INS_PER_PERSON, SIGN_IN_WINDOW);
  }

  beginCallback(address: string): Promise<number> {
    return this.#hitEach(callbackCounters(address), CALLBACKS_PER_NETWORK);
  }

  async refundCallback(address: string): Promise<void> {
    await Promise.all(callbackCounters(address).map(({ key }) => this.#store.refund(key)));
  }

  /** Counts in all of them, or in none. */
  #countInMemory(pairs: readonly Counter[]): number {
    const now = this.#clock.now();
    for (const [index, { key, share }] of pairs.entries()) {
      const limit = Math.min(MOST_OF_A_NETWORK, share * GUESSES_PER_NAME_AND_NETWORK_IN_AN_HOUR);
      const wait = this.#lastHour.count(key, { limit, now });
      if (wait === 0) continue;
      this.#refundInMemory(pairs.slice(0, index));
      return wait;
    }
    return 0;
  }

  #refundInMemory(pairs: readonly Counter[]): void {
    for (const { key } of pairs) this.#lastHour.refund(key);
  }

  /** The name first: once it is closed, further networks make no counter in the store. */
  async #countInStore({ pairs, ofName, ofNetworks }: Counters): Promise<number> {
    const ofAll = ofName === undefined ? 0 : await this.#store.hit(ofName, GUESSES_PER_NAME_IN_AN_HOUR, HOUR);
    if (ofAll > 0) return ofAll;
    let isCounted = false;
    try {
      const wait =
        (await this.#hitEach(ofNetworks, GUESSES_PER_NETWORK)) ||
        (await this.#hitEach(pairs, GUESSES_PER_NAME_AND_NETWORK));
      isCounted = wait === 0;
      return wait;
    } finally {
      // A password that is not verified is no guess: a network above its share must not use up the name's, nor a store that fails.
      if (!isCounted && ofName !== undefined) await this.#store.refund(ofName).catch(() => undefined);
    }
  }

  /** @param limit of the smallest network, within a minute */
  async #hitEach(counters: readonly Counter[], limit: number): Promise<number> {
    for (const { key, share } of counters) {
      const wait = await this.#store.hit(key, share * limit, MINUTE);
      if (wait > 0) return wait;
    }
    return 0;
  }

  #countersOf({ username, address, knownBrowser }: LoginAttempt): Counters {
    if (knownBrowser !== undefined) {
      // Each sign-in makes one more known browser: together they have no more guesses than a network.
      const { id, subject } = knownBrowser;
      return {
        pairs: [{ key: `login known ${id}`, share: 1 }],
        ofName: undefined,
        ofNetworks: [{ key: `login known of ${subject}`, share: 1 }],
      };
    }
    const name = username.normalize('NFC');
    const networks = countedNetworks(address);
    return {
      pairs: networks.map(({ network, share }) => ({ key: `login ${network} ${name}`, share })),
      ofName: `login name ${this.#numberOf(name)}`,
      ofNetworks: networks.map(({ network, share }) => ({ key: `login ${network}`, share })),
    };
  }

  /**
   * One of 65 536 numbers for every name, whether a person has it or not: invented names make no further counter.
   * Keyed, so that no stranger can choose a name that shares the number of another one.
   */
  #numberOf(name: string): number {
    return createHmac('sha256', this.#nameKey).update(name).digest().readUInt16BE(0);
  }
}

function callbackCounters(address: string): readonly Counter[] {
  return countedNetworks(address).map(({ network, share }) => ({ key: `login callback ${network}`, share }));
}
