// The controller as a sink of alerts: it asks each replica, and a replica answers with the alerts that the controller
// has not acknowledged yet.

import type { ReportedAlert } from '../../http/admin/controller-endpoints.ts';
import type { Alert } from '../../oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { SHARDS } from '../../oauth/values/shard.ts';
import { type AlertOutbox, placeOfAlert } from '../../redis/grants/alert-outbox.ts';

/**
 * The most alerts that a replica remembers. More stay in the outbox, where the next sweep of the replica finds them.
 */
const MOST_PENDING = 1000;
/** How many alerts are looked up at once: the controller does not wait long, and Redis serves others in between. */
const BATCH = 100;

export class AlertReports {
  readonly #outbox: Pick<AlertOutbox['controller'], 'settle' | 'has'>;
  readonly #pending = new Map<string, Alert>();

  /** @param outbox that of the controller */
  constructor(outbox: Pick<AlertOutbox['controller'], 'settle' | 'has'>) {
    this.#outbox = outbox;
  }

  /** Adds an alert that is in the outbox of the controller. */
  note(alert: Alert): void {
    if (this.#pending.size < MOST_PENDING) this.#pending.set(alert.id, alert);
  }

  /**
   * Records acknowledgements of the controller.
   * @param acknowledged ids of the alerts that the controller acknowledges; an id that no outbox can hold is ignored
   * @returns the alerts that it has not acknowledged; none while Redis does not answer
   */
  async exchange(acknowledged: readonly string[]): Promise<readonly ReportedAlert[]> {
    try {
      await inBatches(acknowledged.filter(isInShard), (id) => this.#acknowledge(id));
      const reports = await inBatches([...this.#pending.values()], (alert) => this.#reportOf(alert));
      return reports.flat();
    } catch (error) {
      if (error instanceof StoreUnavailableError) return [];
      throw error;
    }
  }

  async #acknowledge(id: string): Promise<void> {
    await this.#outbox.settle(placeOfAlert(id));
    this.#pending.delete(id);
  }

  async #reportOf(alert: Alert): Promise<readonly ReportedAlert[]> {
    // The controller may have acknowledged the alert to another replica.
    if (await this.#outbox.has(placeOfAlert(alert.id))) return [reported(alert)];
    this.#pending.delete(alert.id);
    return [];
  }
}

/** @throws the first error of a batch; the batches after it are not begun */
async function inBatches<Item, Answer>(items: readonly Item[], work: (item: Item) => Promise<Answer>) {
  const answers: Answer[] = [];
  for (let from = 0; from < items.length; from += BATCH) {
    answers.push(...(await Promise.all(items.slice(from, from + BATCH).map(work))));
  }
  return answers;
}

function isInShard(id: string): boolean {
  return id[3] === '.' && SHARDS.includes(id.slice(0, 3));
}

function reported({ id, type, clientUid, clientId, action, time }: Alert): ReportedAlert {
  return { id, type, clientUid, clientId, action, time: new Date(time).toISOString() };
}
