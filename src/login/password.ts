// Passwords as argon2id in PHC form. Hashing is expensive on purpose, so how much of it runs at once is bounded here:
// a flood of sign-ins waits, and beyond that is turned away, instead of eating the machine.

import { hash, verify } from '@node-rs/argon2';
import { OAuthError } from '../oauth/ports/error.ts';

/** What OWASP gives for argon2id: 19 MiB, two passes, one lane. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** A hash that no known password has: the work for somebody unknown when there is no user at all. */
const NOBODY = '$argon2id$v=19$m=19456,t=2,p=1$Z3JhbnRyeS1ub2JvZHktMQ$VVYLuSTgGzfULLjdglR/WQtPZDjO9Wlf3DPJHqetDk4';

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;
const MEMORY_KIB = { least: 7168, most: 262_144 };
const MOST_PASSES = 10;
const MOST_LANES = 4;

/** argon2id with m=19 MiB, t=2, p=1 and a random salt, as `$argon2id$v=19$…`. */
export function hashPassword(password: string): Promise<string> {
  return hash(password.normalize('NFC'), COST);
}

/**
 * Why a text is not a password hash we verify; undefined when it is one. The cost is read from the hash when a password
 * is judged, so a hash that asks for gigabytes or for minutes is a fault of the file and not of the person signing in.
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

/** Whether bytes are written so, without padding; some lengths and last letters stand for none. */
function isBase64(text: string): boolean {
  return Buffer.from(text, 'base64').toString('base64').replace(/=+$/, '') === text;
}

/** How many passwords are judged at once, and how many more may wait for it. */
export interface HashingLimits {
  readonly concurrent: number;
  readonly waiting: number;
}

/** Judges passwords, a few at a time. */
export class PasswordJudge {
  readonly #limits: HashingLimits;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limits: HashingLimits) {
    this.#limits = limits;
  }

  /**
   * Whether the password has this hash.
   * @throws OAuthError temporarily_unavailable when too many others wait; nothing was judged.
   */
  async matches(password: string, passwordHash: string): Promise<boolean> {
    await this.#enter();
    try {
      return await verify(passwordHash, password.normalize('NFC'));
    } catch {
      // A hash that the library cannot judge is nobody's password; its error would quote the hash.
      return false;
    } finally {
      this.#leave();
    }
  }

  /** The work of {@link matches} for somebody who does not exist, at the cost of `likeHash`. Throws as it does. */
  async wasteWork(password: string, likeHash: string = NOBODY): Promise<void> {
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
    // The place is handed on, so `running` stays as it is while somebody waits.
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }
}
