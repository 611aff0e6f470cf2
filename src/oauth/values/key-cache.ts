// A cache of a document with the public keys of another party: how stale it may be, and the one read that runs for all
// callers. For the key sets of clients and the issuer of the cluster alike.

import type { Clock } from '../ports/ports.ts';

const SECOND = 1000;
/** How long after a read for an unknown key another such key starts none. */
const SEARCH_PAUSE = 30 * SECOND;
/** How long after a failed read none is tried. */
const FAILURE_PAUSE = 5 * SECOND;
/** How long a document is used while every read fails. */
const STALE_MOST = 24 * 3600 * SECOND;

/** A cached value. */
export interface KeyDocument {
  readonly keys: readonly { readonly kid: string | undefined }[];
  /** How long it is used without another read, in milliseconds; as long again while one read runs. */
  readonly freshFor: number;
}

export interface KeyCacheOptions<Document extends KeyDocument> {
  /** Reads the document. Any rejection is a failed read. */
  readonly read: () => Promise<Document>;
  readonly clock: Clock;
  /** The error for a caller that no document is left for. */
  readonly unavailable: () => Error;
}

type Enter = () => () => void;

const UNLIMITED: Enter = () => () => {};

interface Kept<Document> {
  readonly document: Document;
  /** When the read began, so that it cannot miss what was published before. */
  readonly since: number;
}

export class KeyCache<Document extends KeyDocument> {
  readonly #options: KeyCacheOptions<Document>;
  #kept: Kept<Document> | undefined;
  #running: Promise<void> | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(options: KeyCacheOptions<Document>) {
    this.#options = options;
  }

  /** Whether a document may be used now, without a read. */
  get isUsable(): boolean {
    return this.#ageOf(this.#kept) <= STALE_MOST;
  }

  /**
   * The document, fresh or as stale as is allowed. Where it lacks the key it is read again, once per 30 seconds for all
   * callers.
   * @param enter called when this call begins to wait for a read; what it returns is called after the read
   * @throws the error of `unavailable`, or of `enter`
   */
  async find(kid: string | undefined, enter: Enter = UNLIMITED): Promise<Document> {
    const calledAt = this.#options.clock.now();
    const kept = await this.#usable(enter);
    return has(kid, kept.document) ? kept.document : await this.#search(kid, kept, { calledAt, enter });
  }

  async #usable(enter: Enter): Promise<Kept<Document>> {
    const kept = this.#kept;
    const age = this.#ageOf(kept);
    if (kept !== undefined && age <= kept.document.freshFor) return kept;
    this.#refresh();
    if (kept !== undefined && age <= 2 * kept.document.freshFor) return kept;
    await this.#readBy(enter);
    if (this.#kept === undefined || !this.isUsable) throw this.#options.unavailable();
    return this.#kept;
  }

  async #search(
    kid: string | undefined,
    found: Kept<Document>,
    { calledAt, enter }: { readonly calledAt: number; readonly enter: Enter },
  ): Promise<Document> {
    await this.#readBy(enter);
    const kept = this.#kept ?? found;
    if (has(kid, kept.document)) return kept.document;
    if (kept.since >= calledAt) {
      // This call has just had its read.
      this.#searchedAt = kept.since;
      return kept.document;
    }
    const now = this.#options.clock.now();
    if (now - this.#searchedAt >= SEARCH_PAUSE) {
      this.#searchedAt = now;
      this.#refresh();
    }
    // A call beside this one may have begun it.
    await this.#readBy(enter);
    return (this.#kept ?? kept).document;
  }

  /** Begins to read the document, unless a read is running or has just failed. */
  #refresh(): void {
    if (this.#running !== undefined || this.#options.clock.now() - this.#failedAt < FAILURE_PAUSE) return;
    this.#running = this.#read().finally(() => {
      this.#running = undefined;
    });
  }

  /** Resolves after the read that is running, if any. */
  async #readBy(enter: Enter): Promise<void> {
    if (this.#running === undefined) return;
    const leave = enter();
    await this.#running;
    leave();
  }

  async #read(): Promise<void> {
    const since = this.#options.clock.now();
    try {
      this.#kept = { document: await this.#options.read(), since };
    } catch {
      this.#failedAt = this.#options.clock.now();
    }
  }

  #ageOf(kept: Kept<Document> | undefined): number {
    return kept === undefined ? Number.POSITIVE_INFINITY : this.#options.clock.now() - kept.since;
  }
}

/** Whether the document has the key that is looked for; without `kid`, whether it has any. */
function has(kid: string | undefined, { keys }: KeyDocument): boolean {
  return kid === undefined ? keys.length > 0 : keys.some((key) => key.kid === kid);
}
