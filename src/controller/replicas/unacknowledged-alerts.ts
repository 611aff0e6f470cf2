// The alerts that replicas reported and Redis must keep: an alert is acknowledged when the status at the API server
// shows it, not when the leader read it. If the leader fails before, the replicas report the alert to the next leader.

import type { ReplicaReport } from './replica-report.ts';

/** The most ids in one request: of any length they fit into the body that a replica reads. */
const IDS_PER_REQUEST = 400;
/** The most ids that are remembered: every replica reports an alert until one of them received its acknowledgement. */
const MAX_REMEMBERED = 10_000;
/** The most pending alerts of one client: its condition shows one, and those of other clients must not be displaced. */
const PENDING_PER_CLIENT = 10;

type ReportedAlert = ReplicaReport['alerts'][number];

export class UnacknowledgedAlerts {
  /** Alerts that status does not show yet, by uid of the client, in the order of arrival. */
  readonly #pending = new Map<string, readonly ReportedAlert[]>();
  readonly #seen = new Set<string>();
  /** Ids to be acknowledged, oldest first. */
  readonly #due = new Set<string>();

  /** Adds an alert that the status of its client is to show. @returns whether it is new */
  add(alert: ReportedAlert): boolean {
    const { id, clientUid } = alert;
    const pending = this.#pending.get(clientUid) ?? [];
    if (pending.some((each) => each.id === id)) return false;
    if (this.#seen.has(id)) {
      this.acknowledge(id);
      return false;
    }
    this.#remember(id);
    const excess = Math.max(0, pending.length + 1 - PENDING_PER_CLIENT);
    for (const each of pending.slice(0, excess)) this.acknowledge(each.id);
    this.#pending.set(clientUid, [...pending.slice(excess), alert]);
    return true;
  }

  /** Acknowledges all alerts up to the one that the status of a client shows. @param lastTime epoch milliseconds */
  markReported(uid: string, lastTime: number): void {
    const pending = this.#pending.get(uid) ?? [];
    for (const { id, time } of pending) if (time <= lastTime) this.acknowledge(id);
    const left = pending.filter(({ time }) => time > lastTime);
    if (left.length > 0) this.#pending.set(uid, left);
    else this.#pending.delete(uid);
  }

  /** Acknowledges all alerts of a client that was deleted: no status can show them. */
  forget(uid: string): void {
    this.markReported(uid, Number.POSITIVE_INFINITY);
  }

  /** The clients whose status does not show all alerts yet. */
  uids(): Iterable<string> {
    return this.#pending.keys();
  }

  /** Queues an id for acknowledgement. */
  acknowledge(id: string): void {
    // The excess comes again with the next report.
    if (this.#due.size < MAX_REMEMBERED) this.#due.add(id);
  }

  /** The ids to be acknowledged next. */
  due(): readonly string[] {
    return [...this.#due].slice(0, IDS_PER_REQUEST);
  }

  /** A replica received these acknowledgements. */
  acknowledged(ids: readonly string[]): void {
    for (const id of ids) this.#due.delete(id);
  }

  #remember(id: string): void {
    this.#seen.add(id);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= MAX_REMEMBERED) break;
      this.#seen.delete(oldest);
    }
  }
}
