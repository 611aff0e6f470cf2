// Notices what Redis does not tell: that shards were emptied or came back old, or that another server took over. Each shard
// holds a marker with a heartbeat. Where it is missing, or older than what revocations are remembered for, some may be lost,
// so everything made until then dies with the global watermark. What can be reached is seen to, whatever cannot.

import type { WatermarkStore } from '../oauth/token-stores.ts';
import { attemptEach } from './attempt-each.ts';
import type { ManagedConnection } from './connection.ts';
import { agreeOnIssuer, IssuerConflictError } from './deployment.ts';
import { type RedisKeys, SHARDS } from './keys.ts';
import { ShardMarkers, type ShardSeen } from './shard-markers.ts';

/** Milliseconds between two looks. */
const INTERVAL = 1000;

/** Milliseconds after which a heartbeat is due: for the most eager replica, and how much later for the least. */
const BEAT_DUE = 10_000;
const BEAT_SPREAD = 10_000;

/**
 * Milliseconds that a heartbeat may have gone back. What is lost then is no older than that and a heartbeat, for which
 * revocations are remembered, to be applied again (`reassertions.ts`).
 */
const MOST_LOST = 60_000;

/** What a look found, for logs and metrics. */
export type ShardEvent =
  /** Shards without marker, or with an old one; the watermark was raised. `isFirstLook`: a new Redis looks the same. */
  | { readonly kind: 'found_empty'; readonly shards: number; readonly isFirstLook: boolean }
  /** Another server answers, or the same again: so many revocations were applied again. */
  | { readonly kind: 'reasserted'; readonly writes: number }
  /** Redis was emptied and another deployment has stored its issuer since. */
  | { readonly kind: 'issuer_conflict'; readonly error: IssuerConflictError };

export interface ShardWatchParts {
  readonly connection: ManagedConnection;
  readonly keys: RedisKeys;
  readonly watermarks: WatermarkStore;
  /** The agreed one; stored again where it was lost. */
  readonly issuer: string;
  readonly observe: (event: ShardEvent) => void;
}

/** What is remembered of a shard: the history of its server as last seen, and its latest heartbeat. */
interface ShardKnown {
  readonly history: string;
  readonly beat: number;
}

/** What one look found. */
interface Look {
  readonly seen: readonly ShardSeen[];
  /** Those of them that lack what they once had. */
  readonly lost: ReadonlySet<ShardSeen>;
  /** Why others were not seen, or not seen to. */
  readonly errors: unknown[];
}

export class ShardWatch {
  readonly #parts: ShardWatchParts;
  readonly #markers: ShardMarkers;
  readonly #known = new Map<string, ShardKnown>();
  readonly #beatDue = BEAT_DUE + Math.random() * BEAT_SPREAD;
  #isFirstLook = true;
  /** How often revocations may have been lost by now, and how often that was when all of them were last applied again. */
  #doubts = 0;
  #doubtsSettled = 0;
  #looking: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(parts: ShardWatchParts) {
    this.#parts = parts;
    this.#markers = new ShardMarkers(parts);
  }

  /**
   * Looks once, then each second and after each reconnect until `stop`. On a new or emptied Redis it resolves when what
   * is made from now on outlives the watermark, which has to wait for the next full second.
   * @throws StoreUnavailableError when the first look failed; it goes on all the same
   */
  async start(): Promise<void> {
    this.#parts.connection.onReconnect(() => {
      this.#doubts += 1;
      this.#lookSoon();
    });
    this.#timer = setInterval(() => this.#lookSoon(), INTERVAL);
    const raisedTo = await this.look();
    if (raisedTo !== undefined) await new Promise((resolve) => setTimeout(resolve, 1000 - (raisedTo % 1000)));
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /**
   * Looks now, and does what is to be done wherever it can be.
   * @returns what the watermark was raised to, if shards were lost
   * @throws StoreUnavailableError when something could not be looked at or done: look again
   */
  async look(): Promise<number | undefined> {
    const { values, failed } = await attemptEach(this.#markers.groups, SHARDS.length, (group) =>
      this.#markers.look(group),
    );
    const seen = values.flat();
    const lost = new Set(seen.filter((shard) => this.#isLost(shard)));
    const look = { seen, lost, errors: failed.map(({ error }) => error) };
    if (seen.length === 0) throw look.errors[0];
    await this.#reassert(look);
    const raisedTo = lost.size > 0 ? this.#latest(seen) : undefined;
    await this.#raise(look, raisedTo);
    if (raisedTo !== undefined) await this.#restore(look, raisedTo);
    await this.#beat(look);
    for (const shard of seen) if (!lost.has(shard)) this.#learn(shard);
    if (look.errors.length > 0) throw look.errors[0];
    return raisedTo;
  }

  /**
   * Whether a shard lacks what it once had. Where nothing is known of it yet, an old heartbeat of another history may also
   * mean that nobody was there for a while: it counts unless there is a file that keeps what was written.
   */
  #isLost({ shard, now, history, hasFile, marker }: ShardSeen): boolean {
    if (marker === undefined) return true;
    const known = this.#known.get(shard);
    if (known !== undefined) return marker.beat < known.beat - MOST_LOST;
    return marker.history !== history && now - marker.beat > MOST_LOST && !hasFile;
  }

  async #reassert({ seen, lost, errors }: Look): Promise<void> {
    const { connection, observe } = this.#parts;
    const hasMoved = seen.some(({ shard, history }) => (this.#known.get(shard)?.history ?? history) !== history);
    if (hasMoved || lost.size > 0) this.#doubts += 1;
    // What comes up while they are applied is not settled by that.
    const doubts = this.#doubts;
    const isDoubtful = doubts !== this.#doubtsSettled;
    const again = await connection.reassert(isDoubtful ? 'all' : 'due');
    this.#doubtsSettled = doubts;
    errors.push(...again.errors);
    if (isDoubtful && again.applied > 0) observe({ kind: 'reasserted', writes: again.applied });
    if (!isDoubtful && errors.length === 0) connection.forgetOld();
  }

  /** The latest time that any server has or had: whatever was made until then has that time or an earlier one. */
  #latest(seen: readonly ShardSeen[]): number {
    const beats = [...this.#known.values()].map(({ beat }) => beat);
    return Math.max(...seen.map(({ now }) => now), ...beats);
  }

  /** Raises the copies of all shards; also when a raise reached some only, or did not outlive its server everywhere. */
  async #raise({ seen, errors }: Look, raisedTo = 0): Promise<void> {
    const highest = Math.max(raisedTo, ...seen.map(({ watermark }) => watermark));
    if (seen.every(({ watermark }) => watermark === highest)) return;
    try {
      await this.#parts.watermarks.raise({ kind: 'global' }, highest);
    } catch (error) {
      errors.push(error);
    }
  }

  /** The markers last: whoever dies before leaves the work to the next look. */
  async #restore({ lost, errors }: Look, watermark: number): Promise<void> {
    const isNew = this.#isFirstLook && [...lost].every(({ marker }) => marker === undefined);
    const restored: ShardSeen[] = [];
    errors.push(
      ...(await this.#eachGroupOf(lost, async (group) => {
        const least = Math.max(...group.map((shard) => this.#known.get(shard)?.beat ?? 0));
        await this.#markers.restore(group, { watermark, least });
        restored.push(...[...lost].filter(({ shard }) => group.includes(shard)));
      })),
    );
    for (const shard of restored) this.#learn(shard, shard.now);
    await this.#storeIssuer().catch((error) => errors.push(error));
    if (restored.length > 0) this.#parts.observe({ kind: 'found_empty', shards: restored.length, isFirstLook: isNew });
  }

  /**
   * Renews heartbeats that are due, where nothing is lost. Not at the first sight of a shard: another replica may know that
   * it is old, and has to see it as it is.
   */
  async #beat({ seen, lost, errors }: Look): Promise<void> {
    if (lost.size > 0) return;
    const due = seen.filter(
      ({ shard, now, marker }) => this.#known.has(shard) && now - (marker?.beat ?? now) >= this.#beatDue,
    );
    errors.push(
      ...(await this.#eachGroupOf(due, async (group) => {
        await this.#markers.beat(group);
        for (const shard of seen) if (group.includes(shard.shard)) this.#learn(shard, shard.now);
      })),
    );
  }

  /** Works on the groups that these shards are in. @returns what failed */
  async #eachGroupOf(
    shards: Iterable<ShardSeen>,
    work: (group: readonly string[]) => Promise<void>,
  ): Promise<readonly unknown[]> {
    const names = new Set(Array.from(shards, ({ shard }) => shard));
    const groups = this.#markers.groups.filter((group) => group.some((shard) => names.has(shard)));
    const { failed } = await attemptEach(groups, SHARDS.length, work);
    return failed.map(({ error }) => error);
  }

  /** @param written the heartbeat it was given since */
  #learn({ shard, history, marker }: ShardSeen, written = 0): void {
    this.#isFirstLook = false;
    const beat = Math.max(marker?.beat ?? 0, this.#known.get(shard)?.beat ?? 0, written);
    this.#known.set(shard, { history, beat });
  }

  /** One look at a time; a failed one is repeated by the timer. */
  #lookSoon(): void {
    if (this.#isStopped) return;
    this.#looking ??= this.look()
      .then(() => {})
      .catch(() => {})
      .finally(() => {
        this.#looking = undefined;
      });
  }

  async #storeIssuer(): Promise<void> {
    const { issuer, observe } = this.#parts;
    try {
      await agreeOnIssuer(this.#parts, { explicit: issuer, fallback: issuer });
    } catch (error) {
      if (!(error instanceof IssuerConflictError)) throw error;
      observe({ kind: 'issuer_conflict', error });
    }
  }
}
