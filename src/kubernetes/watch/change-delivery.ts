// One listener told of every change of one kind. What it throws at is told again until it takes it, ever less often and as
// the object is by then: nothing is lost for good, and no other object or listener waits for it.

import type { Logger } from 'pino';
import { exponentialBackoff } from '../../oauth/values/backoff.ts';
import type { KubernetesObject } from '../objects/resources.ts';
import type { ObjectChange } from './object-store.ts';

const RETRY = { first: 500, longest: 5 * 60_000 };

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
interface FailedDelivery {
  /** The last state that it took; undefined: none, or a deletion. */
  delivered: KubernetesObject | undefined;
  /** The state that it threw at, of which it may have taken a part; undefined for a deletion. */
  attempted: KubernetesObject | undefined;
  failures: number;
  timer?: NodeJS.Timeout;
}

export class ChangeDelivery {
  readonly #options: ChangeDeliveryOptions;
  readonly #failed = new Map<string, FailedDelivery>();
  #ended = false;

  constructor(options: ChangeDeliveryOptions) {
    this.#options = options;
  }

  /** To be called when `current` says so already. Never throws. */
  deliver(change: ObjectChange): void {
    if (this.#ended) return;
    const { key, type, object, before } = change;
    const failed = this.#failed.get(key);
    if (failed !== undefined) {
      this.#redeliver(key, failed);
      return;
    }
    try {
      this.#options.listener(change);
    } catch (error) {
      const isGone = type === 'delete';
      const attempted = isGone ? undefined : object;
      this.#recordFailure(key, { delivered: isGone ? object : before, attempted, failures: 0 }, error);
    }
  }

  /** Tells nothing any more, also where it is the listener who ends it. */
  stop(): void {
    this.#ended = true;
    for (const { timer } of this.#failed.values()) clearTimeout(timer);
    this.#failed.clear();
  }

  /** Everything between what the listener took last and what there is. */
  #redeliver(key: string, failed: FailedDelivery): void {
    const { listener, current } = this.#options;
    const object = current(key);
    const old = failed.delivered ?? failed.attempted;
    clearTimeout(failed.timer);
    try {
      if (old !== undefined && old.metadata.uid !== object?.metadata.uid) {
        listener({ type: 'delete', key, object: old });
        failed.delivered = failed.attempted = undefined;
      }
      if (object !== undefined && !this.#ended) {
        const { delivered: before } = failed;
        failed.attempted = object;
        listener({ type: 'put', key, object, ...(before !== undefined && { before, isFromRelist: true }) });
      }
      this.#failed.delete(key);
    } catch (error) {
      this.#recordFailure(key, failed, error);
    }
  }

  #recordFailure(key: string, failed: FailedDelivery, error: unknown): void {
    const { resource, log, onFailure } = this.#options;
    onFailure();
    const suffix = this.#ended ? '' : ' and will be told again';
    log.error({ resource, key, err: error }, `a change could not be handed on${suffix}`);
    if (this.#ended) return;
    this.#failed.set(key, failed);
    const wait = exponentialBackoff(RETRY, failed.failures);
    failed.failures += 1;
    failed.timer = setTimeout(() => this.#redeliver(key, failed), wait);
  }
}
