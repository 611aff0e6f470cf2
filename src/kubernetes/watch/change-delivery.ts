// Delivers the changes of one kind to one listener. A change whose delivery throws is retried with exponential backoff,
// with the current state of the object, until it succeeds. A failed delivery delays no other object and no other
// listener.

import type { Logger } from 'pino';
import { exponentialBackoff } from '../../oauth/values/backoff.ts';
import type { KubernetesObject } from '../objects/resources.ts';
import type { ObjectChange } from './object-store.ts';

const RETRY = { first: 500, longest: 5 * 60_000 };

export interface ChangeDeliveryOptions {
  /** The kind, for the log. */
  readonly resource: string;
  /**
   * Called at least once for each change or, after a failure, for the merged difference; either may be delivered twice.
   */
  readonly listener: (change: ObjectChange) => void;
  /** The current state of an object; undefined when it is deleted. */
  readonly current: (key: string) => KubernetesObject | undefined;
  /** Called each time that the listener throws. */
  readonly onFailure: () => void;
  readonly log: Pick<Logger, 'error'>;
}

/** An object with a failed delivery. */
interface FailedDelivery {
  /** The last state that was delivered; undefined when none was, or when it was a deletion. */
  delivered: KubernetesObject | undefined;
  /** The state of the failed attempt, which the listener may have processed in part; undefined for a deletion. */
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

  /** To be called when `current` already returns the new state. Never throws. */
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

  /** Ends the delivery. The listener itself may call this method. */
  stop(): void {
    this.#ended = true;
    for (const { timer } of this.#failed.values()) clearTimeout(timer);
    this.#failed.clear();
  }

  /** Delivers the difference between the last delivered state and the current one. */
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
        // The states between the last delivered one and the current one were not delivered.
        listener({ type: 'put', key, object, ...(before !== undefined && { before, mayHaveSkippedStates: true }) });
      }
      this.#failed.delete(key);
    } catch (error) {
      this.#recordFailure(key, failed, error);
    }
  }

  #recordFailure(key: string, failed: FailedDelivery, error: unknown): void {
    const { resource, log, onFailure } = this.#options;
    onFailure();
    const suffix = this.#ended ? '' : ' and will be retried';
    log.error({ resource, key, err: error }, `a change could not be delivered${suffix}`);
    if (this.#ended) return;
    this.#failed.set(key, failed);
    const wait = exponentialBackoff(RETRY, failed.failures);
    failed.failures += 1;
    failed.timer = setTimeout(() => this.#redeliver(key, failed), wait);
  }
}
