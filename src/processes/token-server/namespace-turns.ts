// Work in the order it came: of one namespace two at a time, so that slow hosts of one tenant hold up no other.

const AT_ONCE = 2;
/** More work of one namespace is refused. */
const MOST_WAITING = 1000;

interface Turns {
  running: number;
  readonly waiting: (() => Promise<void>)[];
}

/** Work that runs or waits, by namespace. */
export class NamespaceTurns {
  readonly #turns = new Map<string, Turns>();
  readonly #running = new Set<Promise<void>>();

  /** Begins work now, or once less of its namespace runs. @param work must not throw @returns whether it is taken */
  add(namespace: string, work: () => Promise<void>): boolean {
    const turns = this.#turns.get(namespace) ?? { running: 0, waiting: [] };
    if (turns.waiting.length >= MOST_WAITING) return false;
    this.#turns.set(namespace, turns);
    turns.waiting.push(work);
    this.#next(namespace, turns);
    return true;
  }

  /** Forgets what waits, and resolves after what runs. */
  async stop(): Promise<void> {
    for (const { waiting } of this.#turns.values()) waiting.length = 0;
    await Promise.all(this.#running);
  }

  #next(namespace: string, turns: Turns): void {
    const work = turns.running < AT_ONCE ? turns.waiting.shift() : undefined;
    if (work === undefined) {
      if (turns.running === 0) this.#turns.delete(namespace);
      return;
    }
    turns.running += 1;
    const done = work().finally(() => {
      this.#running.delete(done);
      turns.running -= 1;
      this.#next(namespace, turns);
    });
    this.#running.add(done);
    this.#next(namespace, turns);
  }
}
