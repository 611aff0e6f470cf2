// The writes that follow an inspection of the shards, wherever they are possible: missing markers, copies of the
// watermark that are behind, heartbeats that are due. What cannot be written is an error of the inspection; the next
// check repeats it.

import { SHARDS } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { claimIssuer, IssuerConflictError } from './issuer-claim.ts';
import type { KnownShards } from './known-shards.ts';
import type { ObservedShard, ShardGroup, ShardMarkers } from './shard-markers.ts';

/** Milliseconds after which a heartbeat is due, and by how many more at random in each process. */
const BEAT_DUE = 10_000;
const BEAT_SPREAD = 10_000;

/** What a check found, for logs and metrics. */
export type ShardEvent =
  /**
   * Shards without marker, or with an old one; the watermark was raised. `isFirstCheck`: none had one, as in a new
   * Redis.
   */
  | { readonly kind: 'found_empty'; readonly shards: number; readonly isFirstCheck: boolean }
  /** After a fail-over or a reconnect: so many revocations were applied again. */
  | { readonly kind: 'reasserted'; readonly writes: number }
  /** Redis was emptied and another deployment has stored its issuer since. */
  | { readonly kind: 'issuer_conflict'; readonly error: IssuerConflictError }
  /** The local clock is ahead of the servers' by more than is tolerated, or (negative) behind; 0 once it no longer is. */
  | { readonly kind: 'clock_skew'; readonly milliseconds: number };

/** The result of one inspection. */
export interface ShardInspection {
  readonly groups: readonly ShardGroup[];
  /** The shards of all groups. */
  readonly observed: readonly ObservedShard[];
  /** The shards that have lost data. */
  readonly lost: ReadonlySet<ObservedShard>;
  /** Why other shards could not be inspected, or not repaired. */
  readonly errors: unknown[];
}

export interface ShardRepairParts extends StoreParts {
  readonly markers: ShardMarkers;
  readonly known: KnownShards;
  /** The agreed one; stored again where it was lost. */
  readonly issuer: string;
  readonly observe: (event: ShardEvent) => void;
}

export class ShardRepair {
  readonly #parts: ShardRepairParts;
  readonly #markers: ShardMarkers;
  readonly #known: KnownShards;
  readonly #beatDue = BEAT_DUE + Math.random() * BEAT_SPREAD;

  constructor(parts: ShardRepairParts) {
    this.#parts = parts;
    this.#markers = parts.markers;
    this.#known = parts.known;
  }

  /**
   * Writes the missing markers again, each together with the raised watermark of its shard: a process that crashes
   * midway leaves the other shards to the next check.
   * @returns what the watermark was raised to; 0 where none could be restored, as when the true primary answers by now
   */
  async restore(inspection: ShardInspection): Promise<number> {
    const { observed, lost, errors } = inspection;
    const missing = observed.filter(({ marker }) => marker === undefined);
    const isFirstCheck = this.#known.isEmpty && missing.length === SHARDS.length;
    const watermark = this.#known.latest(observed);
    const restored = await this.#writeTo(inspection, lost, async (group) => {
      const least = Math.max(...group.map((shard) => this.#known.beatOf(shard)));
      await this.#markers.restore(group, { watermark, least });
    });
    const shards = restored.filter((shard) => lost.has(shard));
    if (shards.length === 0) return 0;
    for (const shard of shards) this.#known.learn(shard, shard.now);
    await this.#storeIssuer().catch((error) => errors.push(error));
    this.#parts.observe({ kind: 'found_empty', shards: shards.length, isFirstCheck });
    return watermark;
  }

  /** Raises copies of the watermark that are behind, as after a raise that reached only some or was lost in a fail-over. */
  async raise(inspection: ShardInspection, watermark: number): Promise<void> {
    const behind = inspection.observed.filter((shard) => shard.watermark < watermark && !inspection.lost.has(shard));
    await this.#writeTo(inspection, behind, (group) => this.#markers.raise(group, watermark));
  }

  /**
   * Renews the heartbeats that are due, where nothing is lost. Not at the first observation of a shard: another process
   * may know a later heartbeat, and detects the loss by this one.
   */
  async beat(inspection: ShardInspection): Promise<void> {
    if (inspection.lost.size > 0) return;
    const due = inspection.observed.filter(
      (shard) => this.#known.has(shard) && shard.now - (shard.marker?.beat ?? shard.now) >= this.#beatDue,
    );
    for (const shard of await this.#writeTo(inspection, due, (group) => this.#markers.beat(group))) {
      this.#known.learn(shard, shard.now);
    }
  }

  /** Writes to the groups of these shards. @returns all shards of the groups that were written; the others are errors */
  async #writeTo(
    { groups, errors }: ShardInspection,
    shards: Iterable<ObservedShard>,
    write: (group: ShardGroup) => Promise<void>,
  ): Promise<readonly ObservedShard[]> {
    const wanted = new Set(shards);
    const meant = groups.filter((group) => group.some((shard) => wanted.has(shard)));
    const { values, failed } = await attemptEach(meant, SHARDS.length, async (group) => {
      await write(group);
      return group;
    });
    errors.push(...failed.map(({ error }) => error));
    return values.flat();
  }

  async #storeIssuer(): Promise<void> {
    const { issuer, observe } = this.#parts;
    try {
      await claimIssuer(this.#parts, { explicit: issuer, fallback: issuer });
    } catch (error) {
      if (!(error instanceof IssuerConflictError)) throw error;
      observe({ kind: 'issuer_conflict', error });
    }
  }
}
