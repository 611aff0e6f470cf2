// Ranks the candidates for names of limited capacity (an id: 1; a namespace: n clients). The first n candidates of a
// ranking hold the name, the others are over capacity. A change is incremental: it reports no candidate ranked before
// the changed one, and few of those that remain over capacity. client-uniqueness.ts defines the claims.

/** Negative when `a` ranks before `b`; never 0 for two candidates of one name. */
export type Order<Candidate> = (a: Candidate, b: Candidate) => number;

export interface RankedClaimsOptions<Candidate> {
  /**
   * The name that a candidate claims, if any. Neither the name nor the order may change while the candidate is ranked.
   */
  readonly nameOf: (candidate: Candidate) => string | undefined;
  /** Whether a candidate is ranked for the name that it claims. */
  readonly isRanked: (candidate: Candidate) => boolean;
  readonly order: Order<Candidate>;
  /** The capacity of the name by the policies of this candidate; it may differ between candidates of one name. */
  readonly capacityFor: (candidate: Candidate) => number;
  /** Receives each candidate whose result may have changed, and whether it is over capacity. */
  readonly report: (candidate: Candidate, overCapacity: boolean) => void;
}

/** Rankings by name. Most names have one candidate, which is stored without a {@link Ranking}. */
export class RankedClaims<Candidate extends object> {
  readonly #options: RankedClaimsOptions<Candidate>;
  readonly #rankings = new Map<string, Candidate | Ranking<Candidate>>();
  readonly #dirty = new Set<string>();

  constructor(options: RankedClaimsOptions<Candidate>) {
    this.#options = options;
  }

  /**
   * Adds a candidate to the ranking of the name that it claims. One that claims no name or is not ranked is removed.
   */
  update(candidate: Candidate): void {
    const { nameOf, isRanked, report } = this.#options;
    const name = nameOf(candidate);
    if (name !== undefined && isRanked(candidate)) this.#add(name, candidate);
    else {
      this.remove(candidate);
      report(candidate, false);
    }
  }

  /** Removes a candidate, if it is ranked. */
  remove(candidate: Candidate): void {
    const name = this.#options.nameOf(candidate);
    const ranking = name === undefined ? undefined : this.#rankings.get(name);
    if (name === undefined || ranking === undefined) return;
    if (ranking === candidate) this.#rankings.delete(name);
    else if (ranking instanceof Ranking && ranking.remove(candidate)) {
      this.#dirty.add(name);
      if (ranking.size === 0) this.#rankings.delete(name);
    }
  }

  /** Reports every candidate whose result may have changed since the last call. */
  recompute(): void {
    const { capacityFor, report } = this.#options;
    for (const name of this.#dirty) {
      const ranking = this.#rankings.get(name);
      if (ranking instanceof Ranking) ranking.recompute();
      else if (ranking !== undefined) report(ranking, capacityFor(ranking) <= 0);
    }
    this.#dirty.clear();
  }

  #add(name: string, candidate: Candidate): void {
    const ranking = this.#rankings.get(name);
    if (ranking === candidate || (ranking instanceof Ranking && ranking.has(candidate))) return;
    if (ranking === undefined) {
      const { capacityFor, report } = this.#options;
      this.#rankings.set(name, candidate);
      report(candidate, capacityFor(candidate) <= 0);
      return;
    }
    this.#dirty.add(name);
    if (ranking instanceof Ranking) ranking.add(candidate);
    else {
      const pair = new Ranking(this.#options);
      pair.add(ranking);
      pair.add(candidate);
      this.#rankings.set(name, pair);
    }
  }
}

class Ranking<Candidate> {
  readonly #options: RankedClaimsOptions<Candidate>;
  readonly #candidates: Candidate[] = [];
  /** Candidates that are not reported yet. */
  readonly #unreported = new Set<Candidate>();
  /** Every candidate before this index has the index of its last report. */
  #firstMoved = 0;
  /** The largest capacity of all candidates so far: a candidate at this index or a later one is over capacity. */
  #maxCapacity = 0;

  constructor(options: RankedClaimsOptions<Candidate>) {
    this.#options = options;
  }

  get size(): number {
    return this.#candidates.length;
  }

  has(candidate: Candidate): boolean {
    return this.#candidates[this.#indexOf(candidate)] === candidate;
  }

  add(candidate: Candidate): void {
    const index = this.#indexOf(candidate);
    this.#candidates.splice(index, 0, candidate);
    this.#unreported.add(candidate);
    this.#firstMoved = Math.min(this.#firstMoved, index);
    this.#maxCapacity = Math.max(this.#maxCapacity, this.#options.capacityFor(candidate));
  }

  remove(candidate: Candidate): boolean {
    const index = this.#indexOf(candidate);
    if (this.#candidates[index] !== candidate) return false;
    this.#candidates.splice(index, 1);
    this.#unreported.delete(candidate);
    this.#firstMoved = Math.min(this.#firstMoved, index);
    return true;
  }

  recompute(): void {
    // A new candidate adds at most 1 to the index of another: a candidate from `end` on was over capacity before, and
    // still is.
    const end = Math.min(this.#candidates.length, this.#maxCapacity + this.#unreported.size);
    for (let index = this.#firstMoved; index < end; index++) this.#report(index);
    for (const candidate of this.#unreported) this.#report(this.#indexOf(candidate));
    this.#unreported.clear();
    this.#firstMoved = Infinity;
  }

  #report(index: number): void {
    const { capacityFor, report } = this.#options;
    const candidate = this.#candidates[index];
    if (candidate !== undefined) report(candidate, index >= capacityFor(candidate));
  }

  /** The index of a candidate, or the index to insert it at. */
  #indexOf(candidate: Candidate): number {
    let [from, to] = [0, this.#candidates.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#options.order(this.#candidates[middle] as Candidate, candidate) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
