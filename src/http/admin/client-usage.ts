// The usage of clients that a replica reports to the controller: the day of their last token, their refusals and alerts. The
// controller asks for the changes after a cursor. Reporting removes nothing, so a lost answer is asked for again.

import type { ErrorSummary } from '../../oauth/client-auth/client-authentication.ts';
import { isPublic } from '../../oauth/client-auth/index.ts';
import { REPORTED_REFUSALS } from '../../oauth/client-auth/reported-refusals.ts';
import type { Alert, AuditEvent } from '../../oauth/ports/audit.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { Client } from '../../oauth/registry/client.ts';
import type { RegistryRef } from '../../oauth/registry/registry.ts';
import type { Denial, DenialReason, ReportAnswer } from './controller-endpoints.ts';

const DAY = 86_400_000;
/** The most days of use, and the most refusals, in one answer: the controller reads it whole. The next has the rest. */
const MOST_AT_ONCE = 5000;

/** The error codes and the reasons to report: the owner of the client can fix their cause. */
const DENIALS: readonly string[] = [
  'unauthorized_client',
  'invalid_scope',
  ...REPORTED_REFUSALS,
] satisfies DenialReason[];

interface Refusals {
  /** The generation that was refused: another one may have fixed the cause. */
  readonly generation: number | undefined;
  count: number;
  lastTime: number;
  change: number;
}

export interface ClientUsageOptions {
  readonly registry: RegistryRef;
  /** The generation of a client in the registry. */
  readonly generationOf: (uid: string) => number | undefined;
  readonly clock: Clock;
  /** The id of this process; its restart has another. */
  readonly instance: string;
}

export class ClientUsage {
  readonly #options: ClientUsageOptions;
  /** By uid, in the order of the changes. */
  readonly #lastUsed = new Map<string, { readonly day: number; readonly change: number }>();
  readonly #refusals = new Map<string, Map<DenialReason, Refusals>>();
  #changes = 0;

  constructor(options: ClientUsageOptions) {
    this.#options = options;
  }

  /** Observes an audit event. */
  note({ type, clientId, alert }: AuditEvent): void {
    if (alert !== undefined) this.alerted(alert);
    if (clientId === undefined) return;
    if (type === 'token.issued' || type === 'token.refreshed') this.#used(clientId);
  }

  /** This replica has written the audit line of an alert. */
  alerted({ clientUid, type }: Pick<Alert, 'clientUid' | 'type'>): void {
    this.#refused(clientUid, type);
  }

  /** A client was refused. @param client as it was when its request began */
  refused(client: Client, { code, reason }: ErrorSummary): void {
    const denial = [code, reason].find((slug) => DENIALS.includes(slug));
    // A public client does not authenticate: a request that only names it must not be able to change its status.
    if (denial === undefined || isPublic(client)) return;
    // The client changed since the request began: its owner may have fixed the cause.
    if (this.#options.registry.current.findByUid(client.uid) !== client) return;
    this.#refused(client.uid, denial as DenialReason);
  }

  /** A request had the id of a registered client and a redirect URI that is not among its own. */
  redirectMismatch(clientId: string): void {
    const uid = this.#options.registry.current.find(clientId)?.uid;
    if (uid !== undefined) this.#refused(uid, 'redirect_uri_mismatch');
  }

  /** A person's groups were too many for an ID token of a client. */
  groupsOmitted(clientId: string): void {
    const uid = this.#options.registry.current.find(clientId)?.uid;
    if (uid !== undefined) this.#refused(uid, 'groups_omitted');
  }

  /** The changes after a cursor. @param after the cursor of an earlier answer; one of another process means all */
  since(after: string | undefined): Omit<ReportAnswer, 'alerts' | 'providers' | 'users'> {
    const { instance } = this.#options;
    const afterChange = Number(after?.startsWith(`${instance}.`) ? after.split('.')[1] : 0);
    this.#prune(afterChange);
    const used = firstOf(this.#usedSince(afterChange));
    const refused = firstOf(this.#refusedSince(afterChange));
    const lastUsed: Record<string, string> = {};
    for (const { uid, day } of used.first) lastUsed[uid] = new Date(day * DAY).toISOString().slice(0, 10);
    const denied: Record<string, Denial[]> = {};
    for (const { uid, reason, count, lastTime, generation } of refused.first) {
      const denial = { reason, count, lastTime: new Date(lastTime).toISOString() };
      denied[uid] = [...(denied[uid] ?? []), { ...denial, ...(generation !== undefined && { generation }) }];
    }
    // The lower of both ends: one kind may be reported again, and nothing of the other is skipped.
    const cursor = Math.min(used.end ?? this.#changes, refused.end ?? this.#changes);
    return { cursor: `${instance}.${cursor}`, lastUsed, denied };
  }

  #usedSince(afterChange: number) {
    const used: { readonly uid: string; readonly day: number; readonly change: number }[] = [];
    for (const [uid, { day, change }] of this.#lastUsed) if (change > afterChange) used.push({ uid, day, change });
    return used;
  }

  #refusedSince(afterChange: number) {
    const refused: (Refusals & { readonly uid: string; readonly reason: DenialReason })[] = [];
    for (const [uid, byReason] of this.#refusals) {
      for (const [reason, refusals] of byReason) {
        if (refusals.change > afterChange) refused.push({ uid, reason, ...refusals });
      }
    }
    return refused;
  }

  #used(clientId: string): void {
    const { registry, clock } = this.#options;
    const uid = registry.current.find(clientId)?.uid;
    const day = Math.floor(clock.now() / DAY);
    if (uid === undefined || this.#lastUsed.get(uid)?.day === day) return;
    this.#lastUsed.delete(uid);
    this.#changes += 1;
    this.#lastUsed.set(uid, { day, change: this.#changes });
  }

  #refused(uid: string, reason: DenialReason): void {
    const now = this.#options.clock.now();
    const byReason = this.#refusals.get(uid) ?? new Map<DenialReason, Refusals>();
    this.#refusals.set(uid, byReason);
    const generation = this.#options.generationOf(uid);
    const before = byReason.get(reason);
    const goesOn = before !== undefined && before.generation === generation && now - before.lastTime <= DAY;
    this.#changes += 1;
    byReason.set(reason, { generation, count: (goesOn ? before.count : 0) + 1, lastTime: now, change: this.#changes });
  }

  /**
   * Removes refusals older than a day, and what the controller has of clients that are not served. What it has not stays: of a
   * client that a policy refuses for now there may be an alert.
   */
  #prune(reported: number): void {
    const { registry, clock } = this.#options;
    const isOver = (uid: string, change: number) => change <= reported && registry.current.findByUid(uid) === undefined;
    for (const [uid, { change }] of this.#lastUsed) if (isOver(uid, change)) this.#lastUsed.delete(uid);
    for (const [uid, byReason] of this.#refusals) {
      for (const [reason, { lastTime, change }] of byReason) {
        if (clock.now() - lastTime > DAY || isOver(uid, change)) byReason.delete(reason);
      }
      if (byReason.size === 0) this.#refusals.delete(uid);
    }
  }
}

/** The earliest changes, and the last of them if there are more. */
function firstOf<Item extends { readonly change: number }>(items: readonly Item[]) {
  const first = items.toSorted((one, other) => one.change - other.change).slice(0, MOST_AT_ONCE);
  return { first, end: items.length > first.length ? first.at(-1)?.change : undefined };
}
