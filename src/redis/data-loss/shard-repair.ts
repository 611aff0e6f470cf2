// What is written after a look at the shards, wherever it can be: what they lack, watermarks that are behind, heartbeats that
// are due. What cannot be written is an error of the look, which is repeated.

import { SHARDS } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { claimIssuer, IssuerConflictError } from './issuer-claim.ts';
import type { KnownShards } from './known-shards.ts';
import type { ShardGroup, ShardMarkers, ShardSeen } from './shard-markers.ts';

/** Milliseconds after which a heartbeat is due: for the most eager process, and how much later for the least. */
const BEAT_DUE = 10_000;
const BEAT_SPREAD = 10_000;

/** What a look found, for logs and metrics. */
export type ShardEvent =
  /** Shards without marker, or with an old one; the watermark was raised. `isFirstLook`: none had one, as in a new Redis. */
  | { readonly kind: 'found_empty'; readonly shards: number; readonly isFirstLook: boolean }
  /** Another server answers, or the same again: so many revocations were applied again. */
  | { readonly kind: 'reasserted'; readonly writes: number }
  /** Redis was emptied and another deployment has stored its issuer since. */
  | { readonly kind: 'issuer_conflict'; readonly error: IssuerConflictError }
  /** Our clock is off those of the servers by more than does no harm, ahead or (negative) behind; 0 when it no longer is. */
  | { readonly kind: 'clock_skew'; readonly milliseconds: number };

/** What one look found. */
export interface ShardInspection {
  readonly groups: readonly ShardGroup[];
  /** The shards of all of them. */
  readonly seen: readonly ShardSeen[];
  /** Those that lack what they once had. */
  readonly lost: ReadonlySet<ShardSeen>;
  /** Why others were not seen, or not seen to. */
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
   * Writes the missing markers again, each together with the raised watermark of its shard: whoever dies then leaves the
   * other shards to the next look.
   * @returns what the watermark was raised to; 0 where no shard could be restored, as the true primary answers by now
   */
  async restore(look: ShardInspection): Promise<number> {
    const { seen, lost, errors } = look;
    const missing = seen.filter(({ marker }) => marker === undefined);
    const isFirstLook = this.#known.isEmpty && missing.length === SHARDS.length;
    const watermark = this.#known.latest(seen);
    const restored = await this.#writeTo(look, lost, async (group) => {
      const least = Math.max(...group.map((shard) => this.#known.beatOf(shard)));
      await this.#markers.restore(group, { watermark, least });
    });
    const shards = restored.filter((shard) => lost.has(shard));
    if (shards.length === 0) return 0;
    for (const shard of shards) this.#known.learn(shard, shard.now);
    await this.#storeIssuer().catch((error) => errors.push(error));
    this.#parts.observe({ kind: 'found_empty', shards: shards.length, isFirstLook });
    return watermark;
  }

  /** Raises the copies that are behind; also when a raise reached some only, or did not outlive its server everywhere. */
  async raise(look: ShardInspection, watermark: number): Promise<void> {
    const behind = look.seen.filter((shard) => shard.watermark < watermark && !look.lost.has(shard));
    await this.#writeTo(look, behind, (group) => this.#markers.raise(group, watermark));
  }

  /**
   * Renews heartbeats that are due, where nothing is lost. Not at the first sight of a shard: another process may know that
   * it is old, and has to see it as it is.
   */
  async beat(look: ShardInspection): Promise<void> {
    if (look.lost.size > 0) return;
    const due = look.seen.filter(
      (shard) => this.#known.has(shard) && shard.now - (shard.marker?.beat ?? shard.now) >= this.#beatDue,
    );
    for (const shard of await this.#writeTo(look, due, (group) => this.#markers.beat(group))) {
      this.#known.learn(shard, shard.now);
    }
  }

  /** Writes to the groups that these shards are in. @returns all shards of those where it was done; the rest is an error */
  async #writeTo(
    { groups, errors }: ShardInspection,
    shards: Iterable<ShardSeen>,
    write: (group: ShardGroup) => Promise<void>,
  ): Promise<readonly ShardSeen[]> {
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
