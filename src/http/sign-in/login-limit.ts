// How often sign-in may fail, and how often it may succeed: counted in the store, so it holds over all replicas. The
// address is counted first, so that nobody can lock somebody else out from elsewhere: failures are limited by user and
// address.

import type { RateLimitStore } from '../../oauth/ports/ports.ts';
import { addressNetwork } from '../server/client-address.ts';

const FAILURES_PER_USER_AND_ADDRESS = 5;
const FAILURES_PER_ADDRESS = 30;
const WINDOW = 60_000;

/** Each leaves a session behind; without a bound one person could fill the store and lock all others out. */
const SIGN_INS_PER_PERSON = 300;
const SIGN_IN_WINDOW = 600_000;

/** Who tries to sign in from where. */
export interface LoginAttempt {
  readonly username: string;
  readonly address: string;
}

/** What a sign-in asks before and after its password is judged. */
export interface LoginLimiter {
  /**
   * Counts an attempt before its password is judged, so that parallel guesses are not free.
   * @returns whole seconds to wait; 0 when the attempt may be judged
   */
  begin(attempt: LoginAttempt): Promise<number>;
  /** Takes the count back: the password was right, or it was not judged. */
  refund(attempt: LoginAttempt): Promise<void>;
  /**
   * Counts a right password, from wherever it came.
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
