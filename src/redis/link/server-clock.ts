// What time it is at a server, by what it answers to TIME. Nobody knows how long a reply was under way, so the distance of
// two clocks is known within bounds only.

import type { Clock } from '../../oauth/ports/ports.ts';

/** How old bounds are when newer ones are asked for, and when newer ones are waited for; milliseconds. */
const FRESH = 1000;
const USABLE = 10_000;

/** By what part of the time two clocks may drift apart that are both being adjusted. */
const DRIFT = 0.001;

/** The server's time less ours, at least and at most, at a moment of ours; milliseconds. */
interface Bounds {
  readonly least: number;
  readonly most: number;
  readonly seen: number;
}

/** The clock of the server behind one connection. */
export class ServerClock {
  readonly #clock: Clock;
  readonly #ask: () => Promise<number>;
  #bounds: Bounds | undefined;
  #asking: Promise<void> | undefined;

  /** @param clock ours, monotonic @param ask answers the server's time in milliseconds */
  constructor({ clock, ask }: { clock: Clock; ask: () => Promise<number> }) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /**
   * What the server's clock shows at that moment of ours, or a little less: by as much as its last answers were under way.
   * It is asked first where nothing is known of it.
   * @throws what it answers, or that no answer came
   */
  at(moment: number): number | Promise<number> {
    if (this.#bounds === undefined || this.#age() > USABLE) return this.#measured().then(() => this.at(moment));
    return moment + widened(this.#bounds, moment).least;
  }

  /** Asks the server, unless it was asked just now. Nobody waits for it. */
  refresh(): void {
    if (this.#age() > FRESH) this.#measured().catch(() => {});
  }

  /** Its clock was set, or another server answers from now on. */
  forget(): void {
    this.#bounds = undefined;
  }

  #age(): number {
    return this.#clock.now() - (this.#bounds?.seen ?? Number.NEGATIVE_INFINITY);
  }

  #measured(): Promise<void> {
    this.#asking ??= this.#measure().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #measure(): Promise<void> {
    const sent = this.#clock.now();
    const time = await this.#ask();
    const seen = this.#clock.now();
    const newer = { least: time - seen, most: time - sent, seen };
    const older = this.#bounds === undefined ? newer : widened(this.#bounds, seen);
    const both = { least: Math.max(newer.least, older.least), most: Math.min(newer.most, older.most), seen };
    // Where they contradict each other a clock was set.
    this.#bounds = both.least <= both.most ? both : newer;
  }
}

function widened({ least, most, seen }: Bounds, moment: number): Bounds {
  const drift = DRIFT * Math.abs(moment - seen);
  return { least: least - drift, most: most + drift, seen: moment };
}
