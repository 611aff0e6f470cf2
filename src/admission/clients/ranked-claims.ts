// Claimants in line for what there is only once, or only so often: those in front get it, the others find it taken. A change
// costs what it touches: where somebody joins or leaves, nobody in front of him is looked at, and nobody far behind.

/** Negative when `a` stands before `b`; never 0 for two that are in one line. */
export type Order<Member> = (a: Member, b: Member) => number;

export interface RankedClaimsOptions<Member> {
  /** What somebody claims, if anything; the same, like its order, as long as it stands in line. */
  readonly claimed: (member: Member) => string | undefined;
  /** Whether somebody stands in line for what it claims. */
  readonly isInLine: (member: Member) => boolean;
  readonly order: Order<Member>;
  /** How many places there are as far as this one is concerned. */
  readonly placesFor: (member: Member) => number;
  /** Told whether somebody finds all places taken, when that may be another answer than before. */
  readonly tell: (member: Member, isLate: boolean) => void;
}

/** Lines by what is claimed. Most have one claimant, who is then kept without a line of its own. */
export class RankedClaims<Member extends object> {
  readonly #options: RankedClaimsOptions<Member>;
  readonly #lines = new Map<string, Member | Line<Member>>();
  readonly #touched = new Set<string>();

  constructor(options: RankedClaimsOptions<Member>) {
    this.#options = options;
  }

  /** Has somebody stand in line, or not, as it should be now. */
  update(member: Member): void {
    const { claimed, isInLine, tell } = this.#options;
    const name = claimed(member);
    if (name !== undefined && isInLine(member)) this.#join(name, member);
    else {
      this.remove(member);
      tell(member, false);
    }
  }

  /** Takes somebody out who may be in line. */
  remove(member: Member): void {
    const name = this.#options.claimed(member);
    const line = name === undefined ? undefined : this.#lines.get(name);
    if (name === undefined || line === undefined) return;
    if (line === member) this.#lines.delete(name);
    else if (line instanceof Line && line.leave(member)) {
      this.#touched.add(name);
      if (line.size === 0) this.#lines.delete(name);
    }
  }

  /** Tells everybody for whom something may have changed since. */
  settle(): void {
    const { placesFor, tell } = this.#options;
    for (const name of this.#touched) {
      const line = this.#lines.get(name);
      if (line instanceof Line) line.settle();
      else if (line !== undefined) tell(line, placesFor(line) <= 0);
    }
    this.#touched.clear();
  }

  #join(name: string, member: Member): void {
    const line = this.#lines.get(name);
    if (line === member || (line instanceof Line && line.has(member))) return;
    if (line === undefined) {
      const { placesFor, tell } = this.#options;
      this.#lines.set(name, member);
      tell(member, placesFor(member) <= 0);
      return;
    }
    this.#touched.add(name);
    if (line instanceof Line) line.join(member);
    else {
      const both = new Line(this.#options);
      both.join(line);
      both.join(member);
      this.#lines.set(name, both);
    }
  }
}

class Line<Member> {
  readonly #options: RankedClaimsOptions<Member>;
  readonly #members: Member[] = [];
  /** Who was told nothing yet. */
  readonly #fresh = new Set<Member>();
  /** Nobody before this index stands elsewhere than when it was told. */
  #from = 0;
  /** The most places that there were for anybody: whoever stands behind them is late. */
  #most = 0;

  constructor(options: RankedClaimsOptions<Member>) {
    this.#options = options;
  }

  get size(): number {
    return this.#members.length;
  }

  has(member: Member): boolean {
    return this.#members[this.#indexOf(member)] === member;
  }

  join(member: Member): void {
    const index = this.#indexOf(member);
    this.#members.splice(index, 0, member);
    this.#fresh.add(member);
    this.#from = Math.min(this.#from, index);
    this.#most = Math.max(this.#most, this.#options.placesFor(member));
  }

  leave(member: Member): boolean {
    const index = this.#indexOf(member);
    if (this.#members[index] !== member) return false;
    this.#members.splice(index, 1);
    this.#fresh.delete(member);
    this.#from = Math.min(this.#from, index);
    return true;
  }

  settle(): void {
    // Whoever had a place was pushed back by no more than those who came.
    const end = Math.min(this.#members.length, this.#most + this.#fresh.size);
    for (let index = this.#from; index < end; index++) this.#tell(index);
    for (const member of this.#fresh) this.#tell(this.#indexOf(member));
    this.#fresh.clear();
    this.#from = Infinity;
  }

  #tell(index: number): void {
    const { placesFor, tell } = this.#options;
    const member = this.#members[index];
    if (member !== undefined) tell(member, index >= placesFor(member));
  }

  /** Where it stands, or would stand. */
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
