// The alerts that replicas told, until Redis may forget them: one is acknowledged when the status at the API server tells of
// it, and not when it was read. Whoever leads until then may fail at the API server or end, and the next leader hears again.

import type { ReplicaReport } from './replica-report.ts';

/** So many ids are acknowledged in one request: however long they are, they fit into what a replica reads. */
const IDS_PER_REQUEST = 400;
/** Alerts are told by every replica until one was told that they arrived. */
const REMEMBERED = 10_000;
/** So many of one client are kept waiting: its condition has room for one, and others must be heard of too. */
const WAITING_PER_CLIENT = 10;

type ReportedAlert = ReplicaReport['alerts'][number];

export class UnacknowledgedAlerts {
  /** Those that status does not tell of yet, by uid of the client, in the order in which they came. */
  readonly #waiting = new Map<string, readonly ReportedAlert[]>();
  readonly #seen = new Set<string>();
  /** Ids to be acknowledged, oldest first. */
  readonly #due = new Set<string>();

  /** Takes in one that its client's status is to tell of. @returns whether it is told for the first time */
  take(alert: ReportedAlert): boolean {
    const { id, clientUid } = alert;
    const waiting = this.#waiting.get(clientUid) ?? [];
    if (waiting.some((each) => each.id === id)) return false;
    if (this.#seen.has(id)) {
      this.settle(id);
      return false;
    }
    this.#remember(id);
    const excess = Math.max(0, waiting.length + 1 - WAITING_PER_CLIENT);
    for (const each of waiting.slice(0, excess)) this.settle(each.id);
    this.#waiting.set(clientUid, [...waiting.slice(excess), alert]);
    return true;
  }

  /** The status of a client tells of an alert of this time, and so of all before. @param lastTime epoch milliseconds */
  told(uid: string, lastTime: number): void {
    const waiting = this.#waiting.get(uid) ?? [];
    for (const { id, time } of waiting) if (time <= lastTime) this.settle(id);
    const left = waiting.filter(({ time }) => time > lastTime);
    if (left.length > 0) this.#waiting.set(uid, left);
    else this.#waiting.delete(uid);
  }

  /** A client is gone: there is nobody whom they could be told. */
  forget(uid: string): void {
    this.told(uid, Number.POSITIVE_INFINITY);
  }

  /** The clients whose status does not tell of all yet. */
  uids(): Iterable<string> {
    return this.#waiting.keys();
  }

  /** Has one acknowledged. */
  settle(id: string): void {
    // More come again with the next report.
    if (this.#due.size < REMEMBERED) this.#due.add(id);
  }

  /** The ids to be acknowledged next. */
  due(): readonly string[] {
    return [...this.#due].slice(0, IDS_PER_REQUEST);
  }

  /** A replica heard of these. */
  acknowledged(ids: readonly string[]): void {
    for (const id of ids) this.#due.delete(id);
  }

  #remember(id: string): void {
    this.#seen.add(id);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= REMEMBERED) break;
      this.#seen.delete(oldest);
    }
  }
}
