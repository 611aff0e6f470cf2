// The controller as a sink of alerts: each replica that it asks answers with the alerts it has not acknowledged yet.

import type { ReportedAlert } from '../../http/admin/controller-endpoints.ts';
import type { Alert } from '../../oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { SHARDS } from '../../oauth/values/shard.ts';
import type { DeliveryLeases } from '../../redis/grants/delivery-leases.ts';

/** Alerts a replica remembers. More are left in the outbox, where its next sweep finds them. */
const MOST_PENDING = 1000;
/** Alerts that are looked up at once: the controller does not wait long, and Redis serves other requests in between. */
const BATCH = 100;

export class AlertReports {
  readonly #leases: Pick<DeliveryLeases, 'acknowledge' | 'isPendingFor'>;
  readonly #pending = new Map<string, Alert>();

  constructor(leases: Pick<DeliveryLeases, 'acknowledge' | 'isPendingFor'>) {
    this.#leases = leases;
  }

  /** Adds an alert that is in the outbox. */
  note(alert: Alert): void {
    if (this.#pending.size < MOST_PENDING) this.#pending.set(alert.id, alert);
  }

  /**
   * Records acknowledgements and returns the alerts that still lack one; none while Redis does not answer.
   * @param acknowledged ids of alerts that the controller has reported; an id that no outbox can hold is ignored
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
    await this.#leases.acknowledge(id, 'controller');
    this.#pending.delete(id);
  }

  async #reportOf(alert: Alert): Promise<readonly ReportedAlert[]> {
    // The controller may have acknowledged it to another replica.
    if (await this.#leases.isPendingFor(alert.id, 'controller')) return [reported(alert)];
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
