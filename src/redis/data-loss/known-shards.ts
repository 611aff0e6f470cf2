// What this process remembers of each shard between checks: the history of its server and its latest heartbeat. A
// comparison with it detects a shard that has lost data.

import type { ObservedShard } from './shard-markers.ts';

/**
 * Milliseconds by which a heartbeat may go back and not count as a loss. The writes that are lost then are no older
 * than that and one heartbeat interval; revocations are kept for longer, and replayed (`recent-revocations.ts`).
 */
const TOLERATED_ROLLBACK = 60_000;

interface ShardKnown {
  readonly history: string;
  readonly beat: number;
}

export class KnownShards {
  readonly #known = new Map<string, ShardKnown>();

  /** Whether no shard was observed yet. */
  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  has({ shard }: Pick<ObservedShard, 'shard'>): boolean {
    return this.#known.has(shard);
  }

  /** The latest heartbeat of a shard; 0 where none is known. */
  beatOf({ shard }: ObservedShard): number {
    return this.#known.get(shard)?.beat ?? 0;
  }

  /** Whether another server answers for the shard than before, or the same after a promotion or a restart. */
  hasMoved({ shard, history }: ObservedShard): boolean {
    return (this.#known.get(shard)?.history ?? history) !== history;
  }

  /**
   * Whether a shard has lost data. At its first observation, an old heartbeat of another history may also mean that no
   * replica of grantry was running: it counts as a loss unless the server keeps an append-only file.
   */
  isLost(observed: ObservedShard): boolean {
    const { now, history, hasFile, marker } = observed;
    if (marker === undefined) return true;
    if (this.has(observed)) return marker.beat < this.beatOf(observed) - TOLERATED_ROLLBACK;
    return marker.history !== history && now - marker.beat > TOLERATED_ROLLBACK && !hasFile;
  }

  /** The latest time that the clock of any server shows or has shown: everything issued so far is dated no later. */
  latest(observed: readonly ObservedShard[]): number {
    const beats = [...this.#known.values()].map(({ beat }) => beat);
    return Math.max(...observed.map(({ now }) => now), ...beats);
  }

  /** Records an observation. @param written the heartbeat that was written since, if any */
  learn(observed: ObservedShard, written = 0): void {
    const { shard, history, marker } = observed;
    this.#known.set(shard, { history, beat: Math.max(marker?.beat ?? 0, this.beatOf(observed), written) });
  }
}
