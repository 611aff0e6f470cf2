// People of identity providers that a list of users blocks. What a block meets it ends for good: what ended stays ended when
// the block is gone.

import type { Clock, Person } from '../oauth/ports/ports.ts';
import type { Blocks } from './blocks.ts';

/** People are forgotten beyond these, and ended once more when they are met again. */
const REMEMBERED = 10_000;

export interface BlockedPeopleOptions {
  readonly blocks: Blocks;
  readonly clock: Clock;
  /**
   * Ends what the person holds.
   * @param before epoch milliseconds: what came at or before it; undefined: everything
   */
  readonly end: (subject: string, before: number | undefined) => Promise<void>;
  /** Called with what kept a person's things from being ended; the next request of the person tries again. */
  readonly onFault: (error: unknown) => void;
}

export class BlockedPeople {
  readonly #options: BlockedPeopleOptions;
  /** By subject, up to when this process has ended what the person holds. */
  readonly #ended = new Map<string, number>();
  #revision = 0;

  constructor(options: BlockedPeopleOptions) {
    this.#options = options;
  }

  /**
   * All that the person holds from at or before this time is blocked, epoch milliseconds: 0 where nothing is, Infinity
   * where the person may hold nothing now. It ends without being awaited.
   */
  revokedBefore(person: Person): number {
    const { blocks, clock } = this.#options;
    const time = blocks.strictest(person);
    if (time === 0) return 0;
    const before = time > clock.now() ? Number.POSITIVE_INFINITY : time;
    // A person who was blocked, was not for a while, and is again may have got something meanwhile.
    if (this.#revision !== blocks.revision) this.#ended.clear();
    this.#revision = blocks.revision;
    if (before > (this.#ended.get(person.subject) ?? 0)) void this.#end(person.subject, before);
    return before;
  }

  async #end(subject: string, before: number): Promise<void> {
    const { end, onFault } = this.#options;
    const [oldest] = this.#ended.keys();
    if (this.#ended.size >= REMEMBERED && oldest !== undefined) this.#ended.delete(oldest);
    this.#ended.set(subject, before);
    try {
      await end(subject, before === Number.POSITIVE_INFINITY ? undefined : before);
    } catch (error) {
      if (this.#ended.get(subject) === before) this.#ended.delete(subject);
      onFault(error);
    }
  }
}
