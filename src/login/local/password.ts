// Hashes and verifies passwords: argon2id in PHC form. Hashing is expensive on purpose, so the number of concurrent
// hashes is limited here: further sign-ins are queued, and refused when the queue is full.

import { hash, verify } from '@node-rs/argon2';
import { OAuthError } from '../../oauth/ports/error.ts';

/** The OWASP parameters for argon2id: 19 MiB, two passes, one lane. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** A hash of no known password: verified for an unknown name when there is no user at all, for equal timing. */
const UNKNOWN_USER_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$Z3JhbnRyeS1ub2JvZHktMQ$VVYLuSTgGzfULLjdglR/WQtPZDjO9Wlf3DPJHqetDk4';

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;
const MEMORY_KIB = { least: 7168, most: 262_144 };
const MOST_PASSES = 10;
const MOST_LANES = 4;

/**
 * argon2id with m=19 MiB, t=2, p=1, as `$argon2id$v=19$…`.
 * @param salt of 16 bytes; random by default
 */
export function hashPassword(password: string, salt?: Uint8Array): Promise<string> {
  return hash(password.normalize('NFC'), salt === undefined ? COST : { ...COST, salt });
}

/**
 * Why a text is not an accepted password hash; undefined when it is one. Verification takes its cost from the hash, so
 * a hash with a cost of gigabytes or minutes is refused when the file is read, not when a user signs in.
 */
export function passwordHashFault(text: string): string | undefined {
  const [, memory, passes, lanes, salt = '', digest = ''] = PHC.exec(text) ?? [];
  if (!memory || !isBase64(salt) || !isBase64(digest))
    return 'is not an argon2id hash in PHC form; `grantry hash-password` prints one';
  if (Number(memory) < MEMORY_KIB.least) return `uses less than ${MEMORY_KIB.least} KiB of memory (m=)`;
  if (Number(memory) > MEMORY_KIB.most) return `uses more than ${MEMORY_KIB.most} KiB of memory (m=)`;
  if (Number(passes) < 1 || Number(passes) > MOST_PASSES) return `needs 1 to ${MOST_PASSES} passes (t=)`;
  if (Number(lanes) < 1 || Number(lanes) > MOST_LANES) return `needs 1 to ${MOST_LANES} lanes (p=)`;
  return undefined;
}

/** Whether a text is canonical base64 without padding. */
function isBase64(text: string): boolean {
  return Buffer.from(text, 'base64').toString('base64').replace(/=+$/, '') === text;
}

/** How many passwords are verified at once, and how many more may be queued. */
export interface HashingLimits {
  readonly concurrent: number;
  readonly waiting: number;
}

/** Verifies passwords, a limited number at a time. */
export class PasswordVerifier {
  readonly #limits: HashingLimits;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limits: HashingLimits) {
    this.#limits = limits;
  }

  /**
   * Whether the password has this hash.
   * @throws OAuthError temporarily_unavailable when the queue is full; the password was not verified.
   */
  async matches(password: string, passwordHash: string): Promise<boolean> {
    await this.#enter();
    try {
      return await verify(passwordHash, password.normalize('NFC'));
    } catch {
      // A hash that the library cannot process matches no password; its error would quote the hash.
      return false;
    } finally {
      this.#leave();
    }
  }

  /** The work of {@link matches} for a user that does not exist, at the cost of `likeHash`. Throws as it does. */
  async wasteWork(password: string, likeHash: string = UNKNOWN_USER_HASH): Promise<void> {
    await this.matches(password, likeHash);
  }

  async #enter(): Promise<void> {
    if (this.#running < this.#limits.concurrent) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.length >= this.#limits.waiting) {
      throw new OAuthError('temporarily_unavailable', 'Too many people are signing in at this moment.', {
        reason: 'login_busy',
        retryAfterSeconds: 5,
      });
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #leave(): void {
    // A queued call takes the slot over, so `running` does not change.
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }
}
