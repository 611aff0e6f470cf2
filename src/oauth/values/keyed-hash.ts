// HMAC-SHA-256 (RFC 2104) with a long-lived key, computed by two one-shot hashes: an object of node:crypto for each MAC
// costs three times as much, and a refresh needs three MACs.

import { hash } from 'node:crypto';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;

/** One key of HMAC-SHA-256. */
export class KeyedHash {
  /** The key with the inner padding, followed by the message; it grows with the longest message. */
  #inner: Buffer;
  /** The key with the outer padding, followed by the inner digest. */
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
    // As hex and back: a hash that returns a buffer takes three times as long.
    this.#outer.write(hash('sha256', this.#inner.subarray(0, length), 'hex'), BLOCK_BYTES, 'hex');
    return hash('sha256', this.#outer, 'base64url');
  }
}
