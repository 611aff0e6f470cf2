// The key set of one address, for the clients of one namespace: its fetches, and their cache.

import { keySetUnavailable } from '../oauth/ports/key-sets.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import { type JwkSetFault, readJwkSet, type VerificationKey } from '../oauth/values/jwk.ts';
import { KeyCache } from '../oauth/values/key-cache.ts';
import { type FetchedDocument, FetchFailedError, type FetchFault, type GuardedFetch } from './guarded-fetch.ts';

const MINUTE = 60_000;
const FRESH_LEAST = 5 * MINUTE;
const FRESH_MOST = 60 * MINUTE;

/** Why a document is no key set: a slug. */
type KeySetFault = 'not_a_key_set' | Exclude<JwkSetFault, 'malformed'>;

/** The outcome of one fetch: a label of metrics. */
export type FetchOutcome = 'fetched' | FetchFault | KeySetFault | 'unexpected';

/** One fetch, as metrics and logs see it. */
export interface FetchReport {
  readonly host: string;
  readonly outcome: FetchOutcome;
  /** Whether the fetch before it had another outcome; before the first, `fetched` is assumed. */
  readonly isNews: boolean;
  /** What a failed fetch threw. */
  readonly error: unknown;
}

export interface PublishedSetOptions {
  readonly fetch: Pick<GuardedFetch, 'json'>;
  readonly clock: Clock;
  /** Called after each fetch. */
  readonly onFetch: (report: FetchReport) => void;
}

/** A key set, and how long it may be used without a fetch. */
interface KeySetDocument {
  /** The keys that can verify a signature; the others are left out (RFC 7517 §5). */
  readonly keys: readonly VerificationKey[];
  /** How long they are fresh, in milliseconds: 5 minutes to 1 hour. */
  readonly freshFor: number;
}

/** What a host answered is no key set. */
class KeySetError extends Error {
  readonly fault: KeySetFault;

  constructor(fault: KeySetFault) {
    super(fault);
    this.name = 'KeySetError';
    this.fault = fault;
  }
}

export class PublishedSet {
  readonly #namespace: string;
  readonly #uri: string;
  readonly #options: PublishedSetOptions;
  readonly #cache: KeyCache<KeySetDocument>;
  #lastOutcome: FetchOutcome = 'fetched';

  constructor(namespace: string, uri: string, options: PublishedSetOptions) {
    this.#namespace = namespace;
    this.#uri = uri;
    this.#options = options;
    const unavailable = () => keySetUnavailable(this.#lastOutcome);
    this.#cache = new KeyCache({ clock: options.clock, read: () => this.#fetch(), unavailable });
  }

  /** See {@link KeySets.keysAt}. @param enter see {@link KeyCache.find} */
  async keysFor(kid: string | undefined, enter: () => () => void): Promise<readonly VerificationKey[]> {
    return (await this.#cache.find(kid, enter)).keys;
  }

  async #fetch(): Promise<KeySetDocument> {
    try {
      const read = readKeySet(await this.#options.fetch.json(this.#uri, this.#namespace));
      if (typeof read === 'string') throw new KeySetError(read);
      this.#report('fetched', undefined);
      return read;
    } catch (error) {
      const hasFault = error instanceof FetchFailedError || error instanceof KeySetError;
      this.#report(hasFault ? error.fault : 'unexpected', error);
      throw error;
    }
  }

  #report(outcome: FetchOutcome, error: unknown): void {
    const isNews = outcome !== this.#lastOutcome;
    this.#lastOutcome = outcome;
    this.#options.onFetch({ host: URL.parse(this.#uri)?.host ?? '', outcome, isNews, error });
  }
}

/** The key set in a document, or why there is none. */
function readKeySet({ content, cacheControl }: FetchedDocument): KeySetDocument | KeySetFault {
  const set = readJwkSet(content);
  if (typeof set === 'string') return set === 'malformed' ? 'not_a_key_set' : set;
  return { keys: set.keys, freshFor: Math.min(Math.max(maxAge(cacheControl) ?? 0, FRESH_LEAST), FRESH_MOST) };
}

/** The `max-age` of a Cache-Control header (RFC 9111 §5.2.2.1) in milliseconds; undefined without a readable one. */
function maxAge(cacheControl = ''): number | undefined {
  const seconds = /(?:^|,)\s*max-age="?(\d+)"?\s*(?:,|$)/i.exec(cacheControl)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
