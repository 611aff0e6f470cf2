// HMAC-SHA-256 (RFC 2104) with a key that is used again and again, by two one-shot hashes: an object of node:crypto for each
// MAC costs three times as much, and a refresh needs three of them.

import { hash } from 'node:crypto';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;

/** One key of HMAC-SHA-256. */
export class KeyedHash {
  /** The padded key, and behind it what is hashed: the message, which grows, and the inner digest. */
  #inner: Buffer;
  readonly #outer: Buffer;

  /** @param key of any length */
  constructor(key: Uint8Array) {
    const block = Buffer.alloc(BLOCK_BYTES);
    block.set(key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key);
    this.#inner = Buffer.from(block.map((byte) => byte ^ 0x36));
    this.#outer = Buffer.concat([block.map((byte) => byte ^ 0x5c)], BLOCK_BYTES + DIGEST_BYTES);
  }

  /** The MAC of a text in UTF-8, as base64url: 43 characters. */
  of(message: string): string {
    // A character of JavaScript is three bytes of UTF-8 at most.
    const most = BLOCK_BYTES + 3 * message.length;
    if (most > this.#inner.length) this.#inner = Buffer.concat([this.#inner.subarray(0, BLOCK_BYTES)], most);
    const length = BLOCK_BYTES + this.#inner.write(message, BLOCK_BYTES);
    // As text and back: asked for a buffer, the hash takes three times as long.
    this.#outer.write(hash('sha256', this.#inner.subarray(0, length), 'hex'), BLOCK_BYTES, 'hex');
    return hash('sha256', this.#outer, 'base64url');
  }
}
