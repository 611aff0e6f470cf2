// One listener told of every change of one kind. What it throws at is told again until it takes it, ever less often and as
// the object is by then: nothing is lost for good, and no other object or listener waits for it.

import type { Logger } from 'pino';
import type { KubernetesObject } from '../objects/resources.ts';
import type { ObjectChange } from './object-store.ts';

const FIRST_RETRY_MILLISECONDS = 500;
const LONGEST_RETRY_MILLISECONDS = 5 * 60_000;

export interface ChangeDeliveryOptions {
  /** The kind, for the log. */
  readonly resource: string;
  /** May be told of one change twice. */
  readonly listener: (change: ObjectChange) => void;
  /** What an object is now; undefined: gone. */
  readonly current: (key: string) => KubernetesObject | undefined;
  /** Called for each time that the listener throws. */
  readonly onFailure: () => void;
  readonly log: Pick<Logger, 'error'>;
}

/** An object that the listener threw at. */
interface Untaken {
  /** The last state that it took; undefined: none, or a deletion. */
  taken: KubernetesObject | undefined;
  /** The state that it threw at, of which it may have taken a part; undefined for a deletion. */
  tried: KubernetesObject | undefined;
  failures: number;
  timer?: NodeJS.Timeout;
}

export class ChangeDelivery {
  readonly #options: ChangeDeliveryOptions;
  readonly #untaken = new Map<string, Untaken>();
  #ended = false;

  constructor(options: ChangeDeliveryOptions) {
    this.#options = options;
  }

  /** To be called when `current` says so already. Never throws. */
  tell(change: ObjectChange): void {
    if (this.#ended) return;
    const { key, type, object, before } = change;
    const untaken = this.#untaken.get(key);
    if (untaken !== undefined) {
      this.#catchUp(key, untaken);
      return;
    }
    try {
      this.#options.listener(change);
    } catch (error) {
      const isGone = type === 'delete';
      const tried = isGone ? undefined : object;
      this.#failed(key, { taken: isGone ? object : before, tried, failures: 0 }, error);
    }
  }

  /** Tells nothing any more, also where it is the listener who ends it. */
  stop(): void {
    this.#ended = true;
    for (const { timer } of this.#untaken.values()) clearTimeout(timer);
    this.#untaken.clear();
  }

  /** Everything between what the listener took last and what there is. */
  #catchUp(key: string, untaken: Untaken): void {
    const { listener, current } = this.#options;
    const object = current(key);
    const old = untaken.taken ?? untaken.tried;
    clearTimeout(untaken.timer);
    try {
      if (old !== undefined && old.metadata.uid !== object?.metadata.uid) {
        listener({ type: 'delete', key, object: old });
        untaken.taken = untaken.tried = undefined;
      }
      if (object !== undefined && !this.#ended) {
        const { taken: before } = untaken;
        untaken.tried = object;
        listener({ type: 'put', key, object, ...(before !== undefined && { before, isFromRelist: true }) });
      }
      this.#untaken.delete(key);
    } catch (error) {
      this.#failed(key, untaken, error);
    }
  }

  #failed(key: string, untaken: Untaken, error: unknown): void {
    const { resource, log, onFailure } = this.#options;
    onFailure();
    const more = this.#ended ? '' : ' and will be told again';
    log.error({ resource, key, err: error }, `a change could not be handed on${more}`);
    if (this.#ended) return;
    this.#untaken.set(key, untaken);
    const wait = Math.min(LONGEST_RETRY_MILLISECONDS, FIRST_RETRY_MILLISECONDS * 2 ** untaken.failures);
    untaken.failures += 1;
    untaken.timer = setTimeout(() => this.#catchUp(key, untaken), wait);
  }
}
