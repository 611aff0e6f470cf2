// Ranks contenders for names of limited capacity (an id: 1; a namespace: n clients). The first n of a ranking hold the
// name, the others are over capacity. A change is incremental: it reports on no contender ranked before the changed
// one, nor on one far behind the capacity. client-uniqueness.ts says what is claimed.

/** Negative when `a` ranks before `b`; never 0 for two contenders of one name. */
export type Order<Member> = (a: Member, b: Member) => number;

export interface RankedClaimsOptions<Member> {
  /** The name that a member claims, if any. It must not change while the member is ranked, nor may its order. */
  readonly nameOf: (member: Member) => string | undefined;
  /** Whether a member is ranked for the name it claims. */
  readonly isRanked: (member: Member) => boolean;
  readonly order: Order<Member>;
  /** The capacity of the name, as this member's policies set it. */
  readonly capacityFor: (member: Member) => number;
  /** Called for each member whose result may have changed, with whether it ranks behind the capacity. */
  readonly report: (member: Member, overCapacity: boolean) => void;
}

/** Rankings by name. Most names have one contender, which is then stored without a {@link Ranking}. */
export class RankedClaims<Member extends object> {
  readonly #options: RankedClaimsOptions<Member>;
  readonly #rankings = new Map<string, Member | Ranking<Member>>();
  readonly #dirty = new Set<string>();

  constructor(options: RankedClaimsOptions<Member>) {
    this.#options = options;
  }

  /** Adds a member to the ranking of its name, or removes it, by its present claim. */
  update(member: Member): void {
    const { nameOf, isRanked, report } = this.#options;
    const name = nameOf(member);
    if (name !== undefined && isRanked(member)) this.#add(name, member);
    else {
      this.remove(member);
      report(member, false);
    }
  }

  /** Removes a member, if it is ranked. */
  remove(member: Member): void {
    const name = this.#options.nameOf(member);
    const ranking = name === undefined ? undefined : this.#rankings.get(name);
    if (name === undefined || ranking === undefined) return;
    if (ranking === member) this.#rankings.delete(name);
    else if (ranking instanceof Ranking && ranking.remove(member)) {
      this.#dirty.add(name);
      if (ranking.size === 0) this.#rankings.delete(name);
    }
  }

  /** Reports on every member whose result may have changed since the last call. */
  settle(): void {
    const { capacityFor, report } = this.#options;
    for (const name of this.#dirty) {
      const ranking = this.#rankings.get(name);
      if (ranking instanceof Ranking) ranking.settle();
      else if (ranking !== undefined) report(ranking, capacityFor(ranking) <= 0);
    }
    this.#dirty.clear();
  }

  #add(name: string, member: Member): void {
    const ranking = this.#rankings.get(name);
    if (ranking === member || (ranking instanceof Ranking && ranking.has(member))) return;
    if (ranking === undefined) {
      const { capacityFor, report } = this.#options;
      this.#rankings.set(name, member);
      report(member, capacityFor(member) <= 0);
      return;
    }
    this.#dirty.add(name);
    if (ranking instanceof Ranking) ranking.add(member);
    else {
      const pair = new Ranking(this.#options);
      pair.add(ranking);
      pair.add(member);
      this.#rankings.set(name, pair);
    }
  }
}

class Ranking<Member> {
  readonly #options: RankedClaimsOptions<Member>;
  readonly #members: Member[] = [];
  /** Members that no report was made for yet. */
  readonly #unreported = new Set<Member>();
  /** Members before this index have the same index as at their last report. */
  #firstMoved = 0;
  /** The largest capacity of any member so far: every member ranked behind it is over capacity. */
  #maxCapacity = 0;

  constructor(options: RankedClaimsOptions<Member>) {
    this.#options = options;
  }

  get size(): number {
    return this.#members.length;
  }

  has(member: Member): boolean {
    return this.#members[this.#indexOf(member)] === member;
  }

  add(member: Member): void {
    const index = this.#indexOf(member);
    this.#members.splice(index, 0, member);
    this.#unreported.add(member);
    this.#firstMoved = Math.min(this.#firstMoved, index);
    this.#maxCapacity = Math.max(this.#maxCapacity, this.#options.capacityFor(member));
  }

  remove(member: Member): boolean {
    const index = this.#indexOf(member);
    if (this.#members[index] !== member) return false;
    this.#members.splice(index, 1);
    this.#unreported.delete(member);
    this.#firstMoved = Math.min(this.#firstMoved, index);
    return true;
  }

  settle(): void {
    // A member within capacity moved back by at most the number of new members.
    const end = Math.min(this.#members.length, this.#maxCapacity + this.#unreported.size);
    for (let index = this.#firstMoved; index < end; index++) this.#report(index);
    for (const member of this.#unreported) this.#report(this.#indexOf(member));
    this.#unreported.clear();
    this.#firstMoved = Infinity;
  }

  #report(index: number): void {
    const { capacityFor, report } = this.#options;
    const member = this.#members[index];
    if (member !== undefined) report(member, index >= capacityFor(member));
  }

  /** The index of a member, or the one at which it would be inserted. */
  #indexOf(member: Member): number {
    let [from, to] = [0, this.#members.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#options.order(this.#members[middle] as Member, member) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
