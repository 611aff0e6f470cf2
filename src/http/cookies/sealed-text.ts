// Seals texts that a browser carries and must neither read nor change: AES-256-GCM under a key derived from the pepper
// for this one message. The sealed contents are in `sealed-request.ts`, `pending-sign-ins.ts` and `known-browsers.ts`.

import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto';
import type { Random } from '../../oauth/ports/ports.ts';

const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface SealedTextsOptions {
  /** What the texts are for: a text sealed for one purpose does not open for another. */
  readonly purpose: string;
  /** The first seals, all open; at least one. */
  readonly peppers: readonly Uint8Array[];
  readonly random: Random;
}

/** Seals and opens texts of one purpose. */
export class SealedTexts {
  readonly #options: SealedTextsOptions;

  constructor(options: SealedTextsOptions) {
    if (options.peppers.length === 0) throw new TypeError('at least one pepper is needed');
    this.#options = options;
  }

  /**
   * The text, sealed, as base64url.
   * @param binding must be the same when the text is opened
   */
  seal(text: string, binding: Uint8Array): string {
    return this.sealBytes(Buffer.from(text), binding);
  }

  /** As {@link seal}. */
  sealBytes(bytes: Uint8Array, binding: Uint8Array): string {
    const { peppers, random } = this.#options;
    const salt = random.bytes(SALT_BYTES);
    const nonce = random.bytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key(peppers[0] as Uint8Array, salt), nonce);
    cipher.setAAD(binding);
    const parts = [salt, nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(parts).toString('base64url');
  }

  /** The text; undefined when what came is forged, changed, or sealed with another binding or for another purpose. */
  open(sealed: string, binding: Uint8Array): string | undefined {
    return this.openBytes(sealed, binding)?.toString('utf8');
  }

  /** As {@link open}. */
  openBytes(sealed: string, binding: Uint8Array): Buffer | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    // Base64url has several spellings of the same bytes, and decoding skips unknown characters: only the canonical text
    // is accepted.
    if (bytes.toString('base64url') !== sealed) return undefined;
    if (bytes.length <= SALT_BYTES + NONCE_BYTES + TAG_BYTES) return undefined;
    for (const pepper of this.#options.peppers) {
      const opened = this.#openWith(pepper, bytes, binding);
      if (opened !== undefined) return opened;
    }
    return undefined;
  }

  #openWith(pepper: Uint8Array, bytes: Buffer, binding: Uint8Array): Buffer | undefined {
    const salt = bytes.subarray(0, SALT_BYTES);
    const nonce = bytes.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#key(pepper, salt), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(binding);
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const clear = [decipher.update(bytes.subarray(SALT_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      return Buffer.concat(clear);
    } catch {
      return undefined;
    }
  }

  // A key for each message: any stranger can trigger a seal, and random nonces under one key run out after some
  // billions.
  #key(pepper: Uint8Array, salt: Uint8Array): Buffer {
    return Buffer.from(hkdfSync('sha256', pepper, salt, this.#options.purpose, 32));
  }
}

/** The binding of a text to one browser. @param browser the value of the cookie that identifies it */
export function bindingTo(browser: string): Buffer {
  return createHash('sha256').update(`grantry browser\0${browser}`).digest();
}
