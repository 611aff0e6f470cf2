// The key set of one address, for the clients of one namespace: its fetches, and their cache.

import { keySetUnavailable } from '../oauth/ports/key-sets.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { VerificationKey } from '../oauth/values/jwk.ts';
import { KeyCache } from '../oauth/values/key-cache.ts';
import { FetchFailedError, type FetchFault, type GuardedFetch } from './guarded-fetch.ts';
import { type KeySetDocument, type KeySetFault, readKeySet } from './key-set-document.ts';

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
