// The controller as a sink of alerts: it is handed what it has not acknowledged yet, by whichever replica it asks.

import type { ReportedAlert } from '../../http/admin/controller-endpoints.ts';
import type { Alert } from '../../oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { SHARDS } from '../../oauth/values/shard.ts';
import type { DeliveryLeases } from '../../redis/grants/delivery-leases.ts';

/** Alerts a replica remembers. More are left in the outbox, where its next sweep finds them. */
const MOST_WAITING = 1000;
/** So many are asked about at once: the controller does not wait long, and Redis has other things to do. */
const BATCH = 100;

export class AlertReports {
  readonly #turns: Pick<DeliveryLeases, 'settle' | 'awaits'>;
  readonly #waiting = new Map<string, Alert>();

  constructor(turns: Pick<DeliveryLeases, 'settle' | 'awaits'>) {
    this.#turns = turns;
  }

  /** Takes an alert that is in the outbox. */
  note(alert: Alert): void {
    if (this.#waiting.size < MOST_WAITING) this.#waiting.set(alert.id, alert);
  }

  /**
   * Takes acknowledgements and answers what still waits for one; while Redis does not answer, nothing.
   * @param acknowledged ids of alerts that the controller has told of; one that no outbox can hold says nothing
   */
  async exchange(acknowledged: readonly string[]): Promise<readonly ReportedAlert[]> {
    try {
      await inBatches(acknowledged.filter(isInShard), (id) => this.#settle(id));
      const told = await inBatches([...this.#waiting.values()], (alert) => this.#toldOf(alert));
      return told.flat();
    } catch (error) {
      if (error instanceof StoreUnavailableError) return [];
      throw error;
    }
  }

  async #settle(id: string): Promise<void> {
    await this.#turns.settle(id, 'controller');
    this.#waiting.delete(id);
  }

  async #toldOf(alert: Alert): Promise<readonly ReportedAlert[]> {
    // Another replica may have been told that the controller has it.
    if (await this.#turns.awaits(alert.id, 'controller')) return [reported(alert)];
    this.#waiting.delete(alert.id);
    return [];
  }
}

/** @throws what the first of a batch throws; those after it are left alone */
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
