// The key set of one address: what of it is cached, how stale it may be, and the one fetch that runs for all callers.

import { keySetUnavailable } from '../oauth/ports/key-sets.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { VerificationKey } from '../oauth/values/jwk.ts';
import { FetchFailedError, type FetchFault, type GuardedFetch } from './guarded-fetch.ts';
import { type KeySetDocument, type KeySetFault, readKeySet } from './key-set-document.ts';

const SECOND = 1000;
/** How long after a fetch for an unknown key another such key starts none. */
const SEARCH_PAUSE = 30 * SECOND;
/** How long after a failed fetch none is tried: what `Retry-After` says. */
const FAILURE_PAUSE = 5 * SECOND;
/** How long keys are used while every fetch fails. */
const STALE_MOST = 24 * 3600 * SECOND;

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

interface Kept extends KeySetDocument {
  /** When the fetch began, so that it cannot miss what was published before. */
  readonly since: number;
}

export class PublishedSet {
  readonly #uri: string;
  readonly #options: PublishedSetOptions;
  #kept: Kept | undefined;
  #running: Promise<void> | undefined;
  #lastOutcome: FetchOutcome = 'fetched';
  #failedAt = Number.NEGATIVE_INFINITY;
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(uri: string, options: PublishedSetOptions) {
    this.#uri = uri;
    this.#options = options;
  }

  /** See {@link KeySets.keysAt}. */
  async keysFor(kid: string | undefined): Promise<readonly VerificationKey[]> {
    const calledAt = this.#options.clock.now();
    const kept = await this.#usable();
    return isKnown(kid, kept) ? kept.keys : await this.#search(kid, kept, calledAt);
  }

  async #usable(): Promise<Kept> {
    const kept = this.#kept;
    const age = kept === undefined ? Number.POSITIVE_INFINITY : this.#options.clock.now() - kept.since;
    if (kept !== undefined && age <= kept.freshFor) return kept;
    const refreshed = this.#refresh();
    if (kept !== undefined && age <= 2 * kept.freshFor) return kept;
    await refreshed;
    if (this.#kept === undefined || this.#options.clock.now() - this.#kept.since > STALE_MOST) {
      throw keySetUnavailable(this.#lastOutcome);
    }
    return this.#kept;
  }

  /** The keys after looking for one that the cached set lacks. */
  async #search(kid: string | undefined, found: Kept, calledAt: number): Promise<readonly VerificationKey[]> {
    await this.#running;
    const kept = this.#kept ?? found;
    if (isKnown(kid, kept)) return kept.keys;
    if (kept.since >= calledAt) {
      // This call has just had its fetch.
      this.#searchedAt = kept.since;
      return kept.keys;
    }
    const now = this.#options.clock.now();
    if (now - this.#searchedAt < SEARCH_PAUSE) return kept.keys;
    this.#searchedAt = now;
    await this.#refresh();
    return (this.#kept ?? kept).keys;
  }

  /** Fetches the set, unless a fetch is running or has just failed. Never rejects. */
  #refresh(): Promise<void> {
    if (this.#running === undefined && this.#options.clock.now() - this.#failedAt < FAILURE_PAUSE) {
      return Promise.resolve();
    }
    this.#running ??= this.#fetch().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #fetch(): Promise<void> {
    const { fetch, clock, onFetch } = this.#options;
    const since = clock.now();
    let outcome: FetchOutcome = 'fetched';
    let error: unknown;
    try {
      const read = readKeySet(await fetch.json(this.#uri));
      if (typeof read === 'string') outcome = read;
      else this.#kept = { keys: read.keys, freshFor: read.freshFor, since };
    } catch (thrown) {
      outcome = thrown instanceof FetchFailedError ? thrown.fault : 'unexpected';
      error = thrown;
    }
    if (outcome !== 'fetched') this.#failedAt = clock.now();
    const isNews = outcome !== this.#lastOutcome;
    this.#lastOutcome = outcome;
    onFetch({ host: URL.parse(this.#uri)?.host ?? '', outcome, isNews, error });
  }
}

/** Whether the set has the key that is looked for; without `kid`, whether it has any. */
function isKnown(kid: string | undefined, { keys }: KeySetDocument): boolean {
  return kid === undefined ? keys.length > 0 : keys.some((key) => key.kid === kid);
}
