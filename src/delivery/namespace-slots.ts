// Work in the order it came: of one namespace two at a time, so that slow hosts of one tenant hold up no other.

const AT_ONCE = 2;
/** More work of one namespace is refused. */
const MOST_WAITING = 1000;

interface Slots {
  running: number;
  readonly waiting: (() => Promise<void>)[];
}

/** Work that runs or waits, by namespace. */
export class NamespaceSlots {
  readonly #slots = new Map<string, Slots>();
  readonly #running = new Set<Promise<void>>();

  /** Begins work now, or once less of its namespace runs. @param work must not throw @returns whether it is taken */
  add(namespace: string, work: () => Promise<void>): boolean {
    const slots = this.#slots.get(namespace) ?? { running: 0, waiting: [] };
    if (slots.waiting.length >= MOST_WAITING) return false;
    this.#slots.set(namespace, slots);
    slots.waiting.push(work);
    this.#next(namespace, slots);
    return true;
  }

  /** Forgets what waits, and resolves after what runs. */
  async stop(): Promise<void> {
    for (const { waiting } of this.#slots.values()) waiting.length = 0;
    await Promise.all(this.#running);
  }

  #next(namespace: string, slots: Slots): void {
    const work = slots.running < AT_ONCE ? slots.waiting.shift() : undefined;
    if (work === undefined) {
      if (slots.running === 0) this.#slots.delete(namespace);
      return;
    }
    slots.running += 1;
    const done = work().finally(() => {
      this.#running.delete(done);
      slots.running -= 1;
      this.#next(namespace, slots);
    });
    this.#running.add(done);
    this.#next(namespace, slots);
  }
}
