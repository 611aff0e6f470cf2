// Time that only a test moves: `setTimeout`, `setInterval` and `performance.now` of this process, and a clock. Timers fire
// one by one, in the order of their times, and what follows from one is done before the next: equal runs have equal orders.

import { AsyncLocalStorage } from 'node:async_hooks';

const realSetImmediate = setImmediate;

interface Timer {
  readonly callback: () => void;
  readonly delay: number;
  readonly repeats: boolean;
  /** The process that it belongs to. */
  readonly owner: object | undefined;
  at: number;
}

/** What the code under test holds of a timer. */
class TimerHandle {
  readonly #time: VirtualTime;
  readonly timer: Timer;

  constructor(time: VirtualTime, timer: Timer) {
    this.#time = time;
    this.timer = timer;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    this.#time.cancel(this.timer);
    this.#time.schedule(this.timer);
    return this;
  }
}

export class VirtualTime {
  readonly #start: number;
  /** Sorted: the next one is the last. */
  #timers: Timer[] = [];
  #elapsed = 0;
  readonly #processes = new AsyncLocalStorage<object>();
  /** Until when the timers of a process do not fire. */
  readonly #frozen = new Map<object, number>();
  #uninstall: (() => void) | undefined;

  /** @param start epoch milliseconds */
  constructor(start: number) {
    this.#start = start;
  }

  /** Epoch milliseconds. */
  now(): number {
    return this.#start + this.#elapsed;
  }

  /** Milliseconds since it began. */
  get elapsed(): number {
    return this.#elapsed;
  }

  /** Replaces the timers of this process, until `uninstall`. */
  install(): void {
    const real = { setTimeout, clearTimeout, setInterval, clearInterval };
    const set =
      (repeats: boolean) =>
      (callback: (...args: unknown[]) => void, delay?: number, ...args: unknown[]) => {
        const owner = this.#processes.getStore();
        const timer = { callback: () => callback(...args), delay: Math.max(0, delay ?? 0), repeats, owner, at: 0 };
        this.schedule(timer);
        return new TimerHandle(this, timer);
      };
    const clear = (handle: unknown) => {
      if (handle instanceof TimerHandle) this.cancel(handle.timer);
    };
    Object.assign(globalThis, { setTimeout: set(false), setInterval: set(true) });
    Object.assign(globalThis, { clearTimeout: clear, clearInterval: clear });
    Object.defineProperty(performance, 'now', { value: () => this.#elapsed, configurable: true });
    this.#uninstall = () => {
      Object.assign(globalThis, real);
      Reflect.deleteProperty(performance, 'now');
    };
  }

  uninstall(): void {
    this.#uninstall?.();
    this.#timers = [];
  }

  /** Calls back after so many milliseconds. @param owner the process that is called; none: what no process delays */
  after(delay: number, callback: () => void, owner?: object): void {
    this.schedule({ callback, delay, repeats: false, owner, at: 0 });
  }

  /** Starts what belongs to a process: the timers that it sets from then on are the process's. */
  within<Result>(process: object, start: () => Result): Result {
    return this.#processes.run(process, start);
  }

  /** A process stands still: what would call it does so afterwards. */
  freeze(process: object, milliseconds: number): void {
    this.#frozen.set(process, this.#elapsed + milliseconds);
  }

  schedule(timer: Timer): void {
    this.#insert(timer, this.#elapsed + timer.delay);
  }

  #insert(timer: Timer, at: number): void {
    timer.at = at;
    let [low, high] = [0, this.#timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      // Later ones come first; of equal ones the newest does.
      if ((this.#timers[middle] as Timer).at > timer.at) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
  }

  cancel(timer: Timer): void {
    const index = this.#timers.indexOf(timer);
    if (index !== -1) this.#timers.splice(index, 1);
  }

  /** The machine sleeps: no timer fires meanwhile, and those that are due fire afterwards. */
  sleep(milliseconds: number): void {
    this.#elapsed += milliseconds;
  }

  /** Lets the time pass. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.#elapsed + milliseconds;
    await settled();
    for (let next = this.#timers.at(-1); next !== undefined && next.at <= end; next = this.#timers.at(-1)) {
      this.#timers.pop();
      const thaw = next.owner === undefined ? 0 : (this.#frozen.get(next.owner) ?? 0);
      if (thaw > next.at) {
        this.#insert(next, thaw);
        continue;
      }
      this.#elapsed = Math.max(this.#elapsed, next.at);
      if (next.repeats) this.schedule(next);
      next.callback();
      await settled();
    }
    this.#elapsed = Math.max(this.#elapsed, end);
  }
}

/** Fulfilled when no promise is left that can go on by itself. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    realSetImmediate(() => resolve());
  });
}
