// Limits failed and successful sign-ins, counted in the store and so across all replicas. Failures are limited by
// address, then by user and address: an attacker at another address cannot lock a user out.

import type { RateLimitStore } from '../../oauth/ports/ports.ts';
import { addressNetwork } from '../server/client-address.ts';

const FAILURES_PER_USER_AND_ADDRESS = 5;
const FAILURES_PER_ADDRESS = 30;
const WINDOW = 60_000;

/** Each creates a session; without a bound one person could fill the store and lock all others out. */
const SIGN_INS_PER_PERSON = 300;
const SIGN_IN_WINDOW = 600_000;

/** An attempt to sign in. */
export interface LoginAttempt {
  readonly username: string;
  readonly address: string;
}

/** The limits before and after a password is judged. */
export interface LoginLimiter {
  /**
   * Counts an attempt before its password is judged, so that parallel guesses are not free.
   * @returns whole seconds to wait; 0 when the attempt may be judged
   */
  begin(attempt: LoginAttempt): Promise<number>;
  /** Undoes the count: the password was right, or it was not judged. */
  refund(attempt: LoginAttempt): Promise<void>;
  /**
   * Counts a right password, from any address.
   * @returns whole seconds to wait; 0 when this person may have another session
   */
  signedIn(subject: string): Promise<number>;
}

/** Limits nothing (`GRANTRY_RATE_LIMITS=off`). */
export const UNLIMITED_LOGINS: LoginLimiter = {
  begin: async () => 0,
  refund: async () => {},
  signedIn: async () => 0,
};

/** Counts sign-ins. IPv6 addresses count by their /64. */
export class LoginLimit implements LoginLimiter {
  readonly #store: RateLimitStore;

  constructor(store: RateLimitStore) {
    this.#store = store;
  }

  async begin(attempt: LoginAttempt): Promise<number> {
    const { ofAddress, ofUser } = keys(attempt);
    const wait = await this.#store.hit(ofAddress, FAILURES_PER_ADDRESS, WINDOW);
    return wait > 0 ? wait : this.#store.hit(ofUser, FAILURES_PER_USER_AND_ADDRESS, WINDOW);
  }

  async refund(attempt: LoginAttempt): Promise<void> {
    const { ofAddress, ofUser } = keys(attempt);
    await Promise.all([this.#store.refund(ofAddress), this.#store.refund(ofUser)]);
  }

  signedIn(subject: string): Promise<number> {
    return this.#store.hit(`signed in ${subject}`, SIGN_INS_PER_PERSON, SIGN_IN_WINDOW);
  }
}

function keys({ username, address }: LoginAttempt) {
  const network = addressNetwork(address);
  return { ofAddress: `login ${network}`, ofUser: `login ${network} ${username.normalize('NFC')}` };
}
