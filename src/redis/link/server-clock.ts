// The clock of a server, estimated from its replies to TIME. The transit time of a reply is unknown, so the offset of
// the two clocks is known within bounds only.

import type { Clock } from '../../oauth/ports/ports.ts';

/** The age of bounds that are renewed in the background, and of those that are renewed before use; milliseconds. */
const FRESH = 1000;
const USABLE = 10_000;

/** The rate at which two clocks may drift apart that are both being adjusted. */
const DRIFT = 0.001;

/** The server's time minus the local time, at least and at most, at a moment of the local clock; milliseconds. */
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

  /** @param clock local, monotonic @param ask reads the server's time in milliseconds */
  constructor({ clock, ask }: { clock: Clock; ask: () => Promise<number> }) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /**
   * What the server's clock shows at a moment of the local clock, or a little less: by the transit time of its last
   * replies. The server is asked first where its clock is not known, or not recently.
   * @throws the error of that request
   */
  at(moment: number): number | Promise<number> {
    if (this.#bounds === undefined || this.#age() > USABLE) return this.#measured().then(() => this.at(moment));
    return moment + widened(this.#bounds, moment).least;
  }

  /** Asks the server in the background, unless it was asked just now. */
  refresh(): void {
    if (this.#age() > FRESH) this.#measured().catch(() => {});
  }

  /** Drops what is known: the server's clock was set, or another server answers from now on. */
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
