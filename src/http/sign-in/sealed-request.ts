// The checked authorization request before sign-in: it travels through the login page as one sealed field, so that
// unauthenticated requests leave nothing in any store. AES-256-GCM under a key derived from the pepper for this one
// message.

import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto';
import type { AuthorizationSnapshot } from '../../oauth/ports/login-stores.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';

const LIFETIME = 600_000;
const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface Sealed {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly request: AuthorizationSnapshot;
}

export interface SealedRequestsOptions {
  readonly issuer: string;
  /** The first seals, all open; at least one. */
  readonly peppers: readonly Uint8Array[];
  readonly clock: Clock;
  readonly random: Random;
}

/** Seals and opens requests. */
export class SealedRequests {
  readonly #options: SealedRequestsOptions;

  constructor(options: SealedRequestsOptions) {
    if (options.peppers.length === 0) throw new TypeError('at least one pepper is needed');
    this.#options = options;
  }

  /**
   * The request as one text, good for ten minutes and for one browser.
   * @param browser the value of the cookie that this browser got with the page
   */
  seal(request: AuthorizationSnapshot, browser: string): string {
    const { clock, peppers, random } = this.#options;
    const salt = random.bytes(SALT_BYTES);
    const nonce = random.bytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key(peppers[0] as Uint8Array, salt), nonce);
    cipher.setAAD(bindingTo(browser));
    const sealed: Sealed = { expiresAt: clock.now() + LIFETIME, request };
    const parts = [salt, nonce, cipher.update(JSON.stringify(sealed), 'utf8'), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(parts).toString('base64url');
  }

  /** The request; undefined when the text is forged, changed, expired, or made for another browser. */
  open(text: string, browser: string): AuthorizationSnapshot | undefined {
    const bytes = Buffer.from(text, 'base64url');
    // Base64url has several spellings of the same bytes, and decoding skips unknown characters: only the canonical text
    // is accepted.
    if (bytes.toString('base64url') !== text || bytes.length <= SALT_BYTES + NONCE_BYTES + TAG_BYTES) return undefined;
    for (const pepper of this.#options.peppers) {
      const sealed = this.#openWith(pepper, bytes, browser);
      if (sealed) return sealed.expiresAt > this.#options.clock.now() ? sealed.request : undefined;
    }
    return undefined;
  }

  #openWith(pepper: Uint8Array, bytes: Buffer, browser: string): Sealed | undefined {
    const salt = bytes.subarray(0, SALT_BYTES);
    const nonce = bytes.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#key(pepper, salt), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(bindingTo(browser));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const clear = [decipher.update(bytes.subarray(SALT_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      return JSON.parse(Buffer.concat(clear).toString('utf8')) as Sealed;
    } catch {
      return undefined;
    }
  }

  // A key for each message: any stranger can trigger a seal, and random nonces under one key run out after some
  // billions.
  #key(pepper: Uint8Array, salt: Uint8Array): Buffer {
    return Buffer.from(hkdfSync('sha256', pepper, salt, `grantry sealed request v1\0${this.#options.issuer}`, 32));
  }
}

function bindingTo(browser: string): Buffer {
  return createHash('sha256').update(`grantry browser\0${browser}`).digest();
}
