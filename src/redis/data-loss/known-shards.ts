// What is remembered of each shard from look to look: the history of its server and its latest heartbeat. By it a shard is
// judged that lacks what it once had.

import type { ShardSeen } from './shard-markers.ts';

/**
 * Milliseconds that a heartbeat may have gone back. What is lost then is no older than that and a heartbeat, for which
 * revocations are remembered, to be applied again (`recent-revocations.ts`).
 */
const MOST_LOST = 60_000;

interface ShardKnown {
  readonly history: string;
  readonly beat: number;
}

export class KnownShards {
  readonly #known = new Map<string, ShardKnown>();

  /** Whether nothing was ever seen. */
  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  has({ shard }: Pick<ShardSeen, 'shard'>): boolean {
    return this.#known.has(shard);
  }

  /** The latest heartbeat of a shard; 0 where none is known. */
  beatOf({ shard }: ShardSeen): number {
    return this.#known.get(shard)?.beat ?? 0;
  }

  /** Whether another server answers for the shard than before, or the same after a promotion or a restart. */
  hasMoved({ shard, history }: ShardSeen): boolean {
    return (this.#known.get(shard)?.history ?? history) !== history;
  }

  /**
   * Whether a shard lacks what it once had. Where nothing is known of it yet, an old heartbeat of another history may also
   * mean that nobody was there for a while: it counts unless there is a file that keeps what was written.
   */
  isLost(seen: ShardSeen): boolean {
    const { now, history, hasFile, marker } = seen;
    if (marker === undefined) return true;
    if (this.has(seen)) return marker.beat < this.beatOf(seen) - MOST_LOST;
    return marker.history !== history && now - marker.beat > MOST_LOST && !hasFile;
  }

  /** The latest time that any server has or had: whatever was made until then has that time or an earlier one. */
  latest(seen: readonly ShardSeen[]): number {
    const beats = [...this.#known.values()].map(({ beat }) => beat);
    return Math.max(...seen.map(({ now }) => now), ...beats);
  }

  /** @param written the heartbeat it was given since it was seen */
  learn(seen: ShardSeen, written = 0): void {
    const { shard, history, marker } = seen;
    this.#known.set(shard, { history, beat: Math.max(marker?.beat ?? 0, this.beatOf(seen), written) });
  }
}
