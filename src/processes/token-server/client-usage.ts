// When clients last got a token and why they were refused, as a replica remembers it for its controller. The controller asks
// for what is new since its last answer; nothing is forgotten by being told, so an answer that is lost costs nothing.

import type { Denial, DenialReason, ReportAnswer } from '../../http/admin/controller-endpoints.ts';
import { isPublic } from '../../oauth/client-auth/index.ts';
import type { AuditEvent } from '../../oauth/ports/audit.ts';
import type { ErrorCode } from '../../oauth/ports/error.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { Client } from '../../oauth/registry/client.ts';
import type { RegistryRef } from '../../oauth/registry/registry.ts';

const DAY = 86_400_000;
/** So many days of use and so many refusals are told in one answer, which the controller reads whole; the rest in the next. */
const MOST_AT_ONCE = 5000;

/** The owner of a client can mend these, so they are told. */
const DENIALS: readonly string[] = ['unauthorized_client', 'invalid_scope'] satisfies DenialReason[];

interface Refusals {
  /** Of the client that was refused: with another one its owner may have mended it. */
  readonly generation: number | undefined;
  count: number;
  lastTime: number;
  change: number;
}

export interface ClientUsageOptions {
  readonly registry: RegistryRef;
  /** Which generation of a client the registry holds. */
  readonly generationOf: (uid: string) => number | undefined;
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
  note({ type, clientId }: AuditEvent): void {
    if (clientId === undefined) return;
    if (type === 'token.issued' || type === 'token.refreshed') this.#used(clientId);
  }

  /** A client was refused. @param client as it was when its request began */
  refused(client: Client, code: ErrorCode): void {
    // Whoever only names a public client has proven nothing: it must not be able to write into its status.
    if (!DENIALS.includes(code) || isPublic(client)) return;
    // It was another one that was refused: its owner may have mended it since.
    if (this.#options.registry.current.findByUid(client.uid) !== client) return;
    this.#refused(client.uid, code as DenialReason);
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
    const used = firstOf(this.#usedSince(Number(told)));
    const refused = firstOf(this.#refusedSince(Number(told)));
    const lastUsed: Record<string, string> = {};
    for (const { uid, day } of used.first) lastUsed[uid] = new Date(day * DAY).toISOString().slice(0, 10);
    const denied: Record<string, Denial[]> = {};
    for (const { uid, reason, count, lastTime, generation } of refused.first) {
      const denial = { reason, count, lastTime: new Date(lastTime).toISOString() };
      denied[uid] = [...(denied[uid] ?? []), { ...denial, ...(generation !== undefined && { generation }) }];
    }
    // Of one kind something may be told again: nothing of the other may be passed over.
    const cursor = Math.min(used.end ?? this.#changes, refused.end ?? this.#changes);
    return { cursor: `${instance}.${cursor}`, lastUsed, denied };
  }

  #usedSince(told: number) {
    const used: { readonly uid: string; readonly day: number; readonly change: number }[] = [];
    for (const [uid, { day, change }] of this.#lastUsed) if (change > told) used.push({ uid, day, change });
    return used;
  }

  #refusedSince(told: number) {
    const refused: (Refusals & { readonly uid: string; readonly reason: DenialReason })[] = [];
    for (const [uid, byReason] of this.#refusals) {
      for (const [reason, refusals] of byReason) {
        if (refusals.change > told) refused.push({ uid, reason, ...refusals });
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

/** Those that changed first, and where they end if there are more. */
function firstOf<Item extends { readonly change: number }>(items: readonly Item[]) {
  const first = items.toSorted((one, other) => one.change - other.change).slice(0, MOST_AT_ONCE);
  return { first, end: items.length > first.length ? first.at(-1)?.change : undefined };
}
