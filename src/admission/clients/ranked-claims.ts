// Ranks contenders for names of limited capacity (an id: 1; a namespace: n clients). The first n contenders of a
// ranking hold the name, the others are over capacity. A change is incremental: it reports on no contender ranked
// before the changed one, nor on most of those that were and stay over capacity. client-uniqueness.ts says what is
// claimed.

/** Negative when `a` ranks before `b`; never 0 for two contenders of one name. */
export type Order<Contender> = (a: Contender, b: Contender) => number;

export interface RankedClaimsOptions<Contender> {
  /**
   * The name that a contender claims, if any. Neither the name nor the order may change while the contender is ranked.
   */
  readonly nameOf: (contender: Contender) => string | undefined;
  /** Whether a contender is ranked for the name that it claims. */
  readonly isRanked: (contender: Contender) => boolean;
  readonly order: Order<Contender>;
  /** The capacity of the name by the policies of this contender; it may differ between contenders of one name. */
  readonly capacityFor: (contender: Contender) => number;
  /** Called for each contender whose result may have changed, with whether it is over capacity. */
  readonly report: (contender: Contender, overCapacity: boolean) => void;
}

/** Rankings by name. Most names have one contender, which is then stored without a {@link Ranking}. */
export class RankedClaims<Contender extends object> {
  readonly #options: RankedClaimsOptions<Contender>;
  readonly #rankings = new Map<string, Contender | Ranking<Contender>>();
  readonly #dirty = new Set<string>();

  constructor(options: RankedClaimsOptions<Contender>) {
    this.#options = options;
  }

  /**
   * Adds a contender to the ranking of the name that it claims. One that claims no name or is not ranked is removed.
   */
  update(contender: Contender): void {
    const { nameOf, isRanked, report } = this.#options;
    const name = nameOf(contender);
    if (name !== undefined && isRanked(contender)) this.#add(name, contender);
    else {
      this.remove(contender);
      report(contender, false);
    }
  }

  /** Removes a contender, if it is ranked. */
  remove(contender: Contender): void {
    const name = this.#options.nameOf(contender);
    const ranking = name === undefined ? undefined : this.#rankings.get(name);
    if (name === undefined || ranking === undefined) return;
    if (ranking === contender) this.#rankings.delete(name);
    else if (ranking instanceof Ranking && ranking.remove(contender)) {
      this.#dirty.add(name);
      if (ranking.size === 0) this.#rankings.delete(name);
    }
  }

  /** Reports on every contender whose result may have changed since the last call. */
  settle(): void {
    const { capacityFor, report } = this.#options;
    for (const name of this.#dirty) {
      const ranking = this.#rankings.get(name);
      if (ranking instanceof Ranking) ranking.settle();
      else if (ranking !== undefined) report(ranking, capacityFor(ranking) <= 0);
    }
    this.#dirty.clear();
  }

  #add(name: string, contender: Contender): void {
    const ranking = this.#rankings.get(name);
    if (ranking === contender || (ranking instanceof Ranking && ranking.has(contender))) return;
    if (ranking === undefined) {
      const { capacityFor, report } = this.#options;
      this.#rankings.set(name, contender);
      report(contender, capacityFor(contender) <= 0);
      return;
    }
    this.#dirty.add(name);
    if (ranking instanceof Ranking) ranking.add(contender);
    else {
      const pair = new Ranking(this.#options);
      pair.add(ranking);
      pair.add(contender);
      this.#rankings.set(name, pair);
    }
  }
}

class Ranking<Contender> {
  readonly #options: RankedClaimsOptions<Contender>;
  readonly #contenders: Contender[] = [];
  /** Contenders without a report so far. */
  readonly #unreported = new Set<Contender>();
  /** Contenders before this index have the same index as at their last report. */
  #firstMoved = 0;
  /** The largest capacity of any contender so far: a contender at this index or a later one is over capacity. */
  #maxCapacity = 0;

  constructor(options: RankedClaimsOptions<Contender>) {
    this.#options = options;
  }

  get size(): number {
    return this.#contenders.length;
  }

  has(contender: Contender): boolean {
    return this.#contenders[this.#indexOf(contender)] === contender;
  }

  add(contender: Contender): void {
    const index = this.#indexOf(contender);
    this.#contenders.splice(index, 0, contender);
    this.#unreported.add(contender);
    this.#firstMoved = Math.min(this.#firstMoved, index);
    this.#maxCapacity = Math.max(this.#maxCapacity, this.#options.capacityFor(contender));
  }

  remove(contender: Contender): boolean {
    const index = this.#indexOf(contender);
    if (this.#contenders[index] !== contender) return false;
    this.#contenders.splice(index, 1);
    this.#unreported.delete(contender);
    this.#firstMoved = Math.min(this.#firstMoved, index);
    return true;
  }

  settle(): void {
    // A contender that was within capacity has moved back by at most the number of new contenders. Those from
    // `end` on were over capacity and still are.
    const end = Math.min(this.#contenders.length, this.#maxCapacity + this.#unreported.size);
    for (let index = this.#firstMoved; index < end; index++) this.#report(index);
    for (const contender of this.#unreported) this.#report(this.#indexOf(contender));
    this.#unreported.clear();
    this.#firstMoved = Infinity;
  }

  #report(index: number): void {
    const { capacityFor, report } = this.#options;
    const contender = this.#contenders[index];
    if (contender !== undefined) report(contender, index >= capacityFor(contender));
  }

  /** The index of a contender, or the one at which it would be inserted. */
  #indexOf(contender: Contender): number {
    let [from, to] = [0, this.#contenders.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#options.order(this.#contenders[middle] as Contender, contender) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
