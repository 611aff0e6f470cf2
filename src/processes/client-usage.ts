// When clients last got a token and why they were refused, as a replica remembers it for its controller. The controller asks
// for what is new since its last answer; nothing is forgotten by being told, so an answer that is lost costs nothing.

import type { Denial, DenialReason, ReportAnswer } from '../http/registry-endpoints.ts';
import type { AuditEvent } from '../oauth/audit.ts';
import { isPublic } from '../oauth/client-auth/index.ts';
import type { Clock } from '../oauth/ports.ts';
import type { RegistryRef } from '../oauth/registry.ts';

const DAY = 86_400_000;
/** Days of use told in one answer; the rest in the next. */
const MOST_AT_ONCE = 5000;

/** The owner of a client can mend these, so they are told. */
const DENIALS: readonly string[] = ['unauthorized_client', 'invalid_scope'] satisfies DenialReason[];

interface Refusals {
  count: number;
  lastTime: number;
  change: number;
}

export interface ClientUsageOptions {
  readonly registry: RegistryRef;
  readonly clock: Clock;
  /** Tells this process from the one before it. */
  readonly instance: string;
}

export class ClientUsage {
  readonly #options: ClientUsageOptions;
  /** By uid, the latest change last. */
  readonly #lastUsed = new Map<string, { readonly day: number; readonly change: number }>();
  readonly #refusals = new Map<string, Map<DenialReason, Refusals>>();
  #changes = 0;

  constructor(options: ClientUsageOptions) {
    this.#options = options;
  }

  /** Takes what the audit stream is told. */
  note({ type, clientId, error }: AuditEvent): void {
    if (clientId === undefined) return;
    if (type === 'token.issued' || type === 'token.refreshed') this.#used(clientId);
    // Whoever only names a public client has proven nothing: it must not be able to write into its status.
    if (type !== 'token.refused' || error === undefined || !DENIALS.includes(error)) return;
    const client = this.#options.registry.current.find(clientId);
    if (client !== undefined && !isPublic(client)) this.#refused(client.uid, error as DenialReason);
  }

  /** Somebody sent a registered client's id with an address that is not among its own. */
  redirectMismatch(clientId: string): void {
    const uid = this.#options.registry.current.find(clientId)?.uid;
    if (uid !== undefined) this.#refused(uid, 'redirect_uri_mismatch');
  }

  /** What is new. @param after the cursor of an earlier answer; one of another process means everything */
  since(after: string | undefined): Omit<ReportAnswer, 'alerts'> {
    this.#forget();
    const { instance } = this.#options;
    const [, told = '0'] = after?.startsWith(`${instance}.`) ? after.split('.') : [];
    const lastUsed: Record<string, string> = {};
    let cursor = this.#changes;
    let count = 0;
    for (const [uid, { day, change }] of this.#lastUsed) {
      if (change <= Number(told)) continue;
      lastUsed[uid] = new Date(day * DAY).toISOString().slice(0, 10);
      count += 1;
      if (count < MOST_AT_ONCE) continue;
      cursor = change;
      break;
    }
    return { cursor: `${instance}.${cursor}`, lastUsed, denied: this.#deniedSince(Number(told)) };
  }

  #deniedSince(told: number): Record<string, readonly Denial[]> {
    const denied: Record<string, readonly Denial[]> = {};
    for (const [uid, byReason] of this.#refusals) {
      const fresh = [...byReason].filter(([, { change }]) => change > told);
      if (fresh.length === 0) continue;
      denied[uid] = fresh.map(([reason, { count, lastTime }]) => ({
        ...{ reason, count },
        lastTime: new Date(lastTime).toISOString(),
      }));
    }
    return denied;
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
    const before = byReason.get(reason);
    const count = before === undefined || now - before.lastTime > DAY ? 0 : before.count;
    this.#changes += 1;
    byReason.set(reason, { count: count + 1, lastTime: now, change: this.#changes });
  }

  /** Clients that are gone, and refusals of which nothing is left to say. */
  #forget(): void {
    const { registry, clock } = this.#options;
    const isGone = (uid: string) => registry.current.findByUid(uid) === undefined;
    for (const uid of this.#lastUsed.keys()) if (isGone(uid)) this.#lastUsed.delete(uid);
    for (const [uid, byReason] of this.#refusals) {
      for (const [reason, { lastTime }] of byReason) if (clock.now() - lastTime > DAY) byReason.delete(reason);
      if (byReason.size === 0 || isGone(uid)) this.#refusals.delete(uid);
    }
  }
}
