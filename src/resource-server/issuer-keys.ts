// The public keys of the issuer: fetched at first use, kept as fresh as its Cache-Control says, and used on for a day while
// it is unavailable.

import type { Clock } from '../oauth/ports/ports.ts';
import { readJwkSet, type VerificationKey } from '../oauth/values/jwk.ts';
import { KeyCache } from '../oauth/values/key-cache.ts';
import { UnavailableError } from './access-denied.ts';
import { callIssuer, type Fetch } from './issuer-calls.ts';

const BOUNDS = { milliseconds: 5000, bytes: 256 * 1024 };
/** An issuer publishes 16 at most; one of an earlier build may have more, and its tokens are good as well. */
const KEYS_MAX = 64;
const FRESH_SECONDS = { least: 60, most: 900 };
const MEDIA_TYPES = 'application/jwk-set+json, application/json';

interface Published {
  /** The same array as long as the issuer publishes the same text. */
  readonly keys: readonly VerificationKey[];
  readonly freshFor: number;
}

export interface IssuerKeysOptions {
  readonly issuer: string;
  readonly clock: Clock;
  readonly fetch: Fetch;
}

/** The key set at `<issuer>/.well-known/jwks.json`. */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  readonly #cache: KeyCache<Published>;
  #last: { readonly text: string; readonly keys: readonly VerificationKey[] } | undefined;
  #fault: unknown;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
    this.#cache = new KeyCache<Published>({
      clock: options.clock,
      read: () => this.#read(),
      unavailable: () => new UnavailableError('keys_unavailable', this.#fault),
    });
  }

  /**
   * The keys that may be used now. Where they lack `kid` they are fetched again, once per 30 seconds.
   * @throws UnavailableError where none may be used
   */
  async keysFor(kid: string): Promise<readonly VerificationKey[]> {
    return (await this.#cache.find(kid)).keys;
  }

  async #read(): Promise<Published> {
    try {
      const url = `${this.#options.issuer}/.well-known/jwks.json`;
      const init = { headers: { accept: MEDIA_TYPES } };
      const { content, text, cacheControl } = await callIssuer(this.#options.fetch, { url, init, bounds: BOUNDS });
      if (this.#last?.text !== text) {
        const set = readJwkSet(content, KEYS_MAX);
        if (typeof set === 'string') throw new Error(`the key set is ${set}`);
        this.#last = { text, keys: set.keys };
      }
      return { keys: this.#last.keys, freshFor: 1000 * freshSeconds(cacheControl) };
    } catch (error) {
      this.#fault = error;
      throw error;
    }
  }
}

/** By `max-age` (RFC 9111 §5.2.2.1), within bounds. */
function freshSeconds(cacheControl = ''): number {
  const maxAge = /(?:^|,)\s*max-age="?(\d+)"?\s*(?:,|$)/i.exec(cacheControl)?.[1];
  return Math.min(Math.max(Number(maxAge ?? 0), FRESH_SECONDS.least), FRESH_SECONDS.most);
}
