// Detects what Redis does not report: shards that were emptied or restored from old data, and fail-overs. Each shard
// holds a marker with a heartbeat. Where it is missing, or older than revocations are kept for, revocations may be
// lost, so the watch raises the global watermark: everything issued until then is void. It repairs the shards that it
// reaches, whichever others it does not. A repair is for the server that was inspected: it is not recorded for replay
// on a server that takes over.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../oauth/ports/ports.ts';
import { SHARDS } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { ManagedConnection } from '../connection/connection.ts';
import { TIMER_SLACK_MS } from '../link/deadline.ts';
import { harmfulSkew, skewOf, TOLERATED_SKEW } from './clock-skew.ts';
import { KnownShards } from './known-shards.ts';
import { ShardMarkers } from './shard-markers.ts';
import { type ShardInspection, ShardRepair, type ShardRepairParts } from './shard-repair.ts';

/** Milliseconds between two checks. */
const INTERVAL = 1000;

/** How long another process is given to write the markers of a new deployment, in milliseconds. */
const INITIALIZATION_WAIT = 1000;

/** The resolution of the times in tokens, in milliseconds. */
const FULL_SECOND = 1000;

export interface ShardWatchParts extends Omit<ShardRepairParts, 'markers' | 'known'> {
  readonly connection: ManagedConnection;
  /** Dates the tokens and sign-ins of this process. */
  readonly clock: Clock;
}

export class ShardWatch {
  readonly #parts: ShardWatchParts;
  readonly #markers: ShardMarkers;
  readonly #known = new KnownShards();
  readonly #repair: ShardRepair;
  /** Counts what may have lost revocations: reconnects, fail-overs, losses; and its value when all were last replayed. */
  #failoverEpoch = 0;
  #replayedEpoch = 0;
  /** The global watermark and the earliest time of any server, both as of the last check. */
  #watermark = 0;
  #slowestClock = 0;
  #clockSkew = 0;
  #checking: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe = () => {};
  #isStopped = false;

  constructor(parts: ShardWatchParts) {
    this.#parts = parts;
    this.#markers = new ShardMarkers(parts);
    this.#repair = new ShardRepair({ ...parts, markers: this.#markers, known: this.#known });
  }

  /**
   * Checks once, then each second and after each reconnect until `stop`. On a new or emptied Redis, also where another
   * process has just repaired it, it resolves once new tokens are dated later than the watermark: after the next full
   * second of the servers' clocks and of the local one. A local clock that is behind delays it by at most
   * {@link TOLERATED_SKEW}.
   * @throws StoreUnavailableError when the first check failed, or a part of it; the watch goes on all the same
   */
  async start(): Promise<void> {
    this.#unsubscribe = this.#parts.connection.onReconnect(() => {
      this.#failoverEpoch += 1;
      this.#checkSoon();
    });
    this.#timer = setInterval(() => this.#checkSoon(), INTERVAL);
    try {
      await this.check();
    } finally {
      await this.#waitPastWatermark();
    }
  }

  /** Milliseconds by which the local clock is ahead of the servers', behind where negative; 0 where that does no harm. */
  get clockSkew(): number {
    return this.#clockSkew;
  }

  /** Whether this shard was inspected, and repaired where it had lost data. */
  hasChecked(shard: string): boolean {
    return this.#known.has({ shard });
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
    this.#unsubscribe();
  }

  /**
   * Inspects all shards now, and repairs those that it reaches.
   * @throws StoreUnavailableError when a shard could not be inspected or repaired: check again
   */
  async check(): Promise<void> {
    let inspection = await this.#inspect();
    if (this.#mayBeInitializing(inspection)) {
      await sleep(INITIALIZATION_WAIT);
      inspection = await this.#inspect();
    }
    const { observed, lost } = inspection;
    if (observed.length === 0 || this.#isUndecided(inspection)) throw inspection.errors[0];
    await this.#replayRevocations(inspection);
    const raisedTo = lost.size > 0 ? await this.#repair.restore(inspection) : 0;
    this.#watermark = Math.max(raisedTo, ...observed.map(({ watermark }) => watermark));
    this.#slowestClock = Math.min(...observed.map(({ now }) => now));
    await this.#repair.raise(inspection, this.#watermark);
    await this.#repair.beat(inspection);
    for (const shard of observed) if (!lost.has(shard)) this.#known.learn(shard);
    if (inspection.errors.length > 0) throw inspection.errors[0];
  }

  async #inspect(): Promise<ShardInspection> {
    const { clock } = this.#parts;
    const skews: number[] = [];
    const { values: groups, failed } = await attemptEach(this.#markers.groups, SHARDS.length, async (shards) => {
      const begin = clock.now();
      const group = await this.#markers.inspect(shards);
      const end = clock.now();
      skews.push(...group.map(({ now }) => skewOf(now, { begin, end })));
      return group;
    });
    if (skews.length > 0) this.#noteSkew(harmfulSkew(skews, { wasHarmful: this.#clockSkew !== 0 }));
    const observed = groups.flat();
    const lost = new Set(observed.filter((shard) => this.#known.isLost(shard)));
    return { groups, observed, lost, errors: failed.map(({ error }) => error) };
  }

  /** Whether another process may be writing the first markers at this moment: in a Cluster they do not appear at once. */
  #mayBeInitializing({ observed }: ShardInspection): boolean {
    const marked = observed.filter(({ marker }) => marker !== undefined).length;
    return this.#known.isEmpty && 0 < marked && marked < observed.length;
  }

  /**
   * Whether this may be a new deployment, or one whose remaining shards are all away: only all shards together can
   * decide that. No shard was observed before, so none is served meanwhile.
   */
  #isUndecided({ observed, errors }: ShardInspection): boolean {
    return this.#known.isEmpty && errors.length > 0 && observed.every(({ marker }) => marker === undefined);
  }

  async #replayRevocations({ observed, lost, errors }: ShardInspection): Promise<void> {
    const { connection, observe } = this.#parts;
    if (lost.size > 0 || observed.some((shard) => this.#known.hasMoved(shard))) this.#failoverEpoch += 1;
    // A fail-over during the replay requires another one.
    const failoverEpoch = this.#failoverEpoch;
    const needsFullReplay = failoverEpoch !== this.#replayedEpoch;
    const replay = await connection.replayRevocations(needsFullReplay ? 'all' : 'pending');
    this.#replayedEpoch = failoverEpoch;
    errors.push(...replay.errors);
    if (needsFullReplay && replay.applied > 0) observe({ kind: 'reasserted', writes: replay.applied });
    if (!needsFullReplay && errors.length === 0) connection.forgetOld();
  }

  #noteSkew(skew: number): void {
    const hasChanged = (skew === 0) !== (this.#clockSkew === 0);
    this.#clockSkew = skew;
    if (hasChanged) this.#parts.observe({ kind: 'clock_skew', milliseconds: skew });
  }

  /** Waits until new tokens are dated later than the watermark, which this process or another may just have raised. */
  async #waitPastWatermark(): Promise<void> {
    const next = this.#watermark - (this.#watermark % FULL_SECOND) + FULL_SECOND;
    const wait = next - Math.min(this.#slowestClock, this.#parts.clock.now());
    if (wait > 0 && this.#watermark > 0) await sleep(Math.min(wait, TOLERATED_SKEW + FULL_SECOND) + TIMER_SLACK_MS);
  }

  /** One check at a time; the timer repeats a failed one. */
  #checkSoon(): void {
    if (this.#isStopped) return;
    this.#checking ??= this.check()
      .catch(() => {})
      .finally(() => {
        this.#checking = undefined;
      });
  }
}
