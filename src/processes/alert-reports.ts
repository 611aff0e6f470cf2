// The controller as a sink of alerts: it is handed what it has not acknowledged yet, by whichever replica it asks.

import type { ReportedAlert } from '../http/registry-endpoints.ts';
import type { Alert } from '../oauth/audit.ts';
import { StoreUnavailableError } from '../oauth/error.ts';
import type { AlertTurns } from '../redis/alert-turns.ts';
import { SHARDS } from '../redis/keys.ts';

/** Alerts a replica remembers. More are left in the outbox, where its next sweep finds them. */
const MOST_WAITING = 1000;

export class AlertReports {
  readonly #turns: AlertTurns;
  readonly #waiting = new Map<string, Alert>();

  constructor(turns: AlertTurns) {
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
      for (const id of acknowledged.filter(isInShard)) {
        await this.#turns.settle(id, 'controller');
        this.#waiting.delete(id);
      }
      const told: ReportedAlert[] = [];
      for (const alert of this.#waiting.values()) {
        // Another replica may have been told that the controller has it.
        if (await this.#turns.awaits(alert.id, 'controller')) told.push(reported(alert));
        else this.#waiting.delete(alert.id);
      }
      return told;
    } catch (error) {
      if (error instanceof StoreUnavailableError) return [];
      throw error;
    }
  }
}

function isInShard(id: string): boolean {
  return id[3] === '.' && SHARDS.includes(id.slice(0, 3));
}

function reported({ id, type, clientUid, clientId, action, time }: Alert): ReportedAlert {
  return { id, type, clientUid, clientId, action, time: new Date(time).toISOString() };
}
