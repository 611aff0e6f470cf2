// Notices what Redis does not tell: that shards were emptied or came back old, or that another server took over. Each shard
// holds a marker with a heartbeat. Where it is missing, or older than what revocations are remembered for, some may be lost,
// so everything made until then dies with the global watermark. What can be reached is seen to, whatever cannot. That belongs
// to the server that was looked at: nothing of it is remembered, to be applied to another one that takes over.

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

/** Milliseconds between two looks. */
const INTERVAL = 1000;

/** How long another process is given to write the markers of a new deployment, in milliseconds. */
const BEGINNING = 1000;

/** What tokens tell their time in, in milliseconds. */
const FULL_SECOND = 1000;

export interface ShardWatchParts extends Omit<ShardRepairParts, 'markers' | 'known'> {
  readonly connection: ManagedConnection;
  /** By which tokens and sign-ins are dated here. */
  readonly clock: Clock;
}

export class ShardWatch {
  readonly #parts: ShardWatchParts;
  readonly #markers: ShardMarkers;
  readonly #known = new KnownShards();
  readonly #mending: ShardRepair;
  /** How often revocations may have been lost by now, and how often that was when all of them were last applied again. */
  #failoverEpoch = 0;
  #replayedEpoch = 0;
  /** The global watermark, and what time it was at the slowest server, when that was last looked at. */
  #watermark = 0;
  #slowest = 0;
  #clockSkew = 0;
  #looking: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #forgetListener = () => {};
  #isStopped = false;

  constructor(parts: ShardWatchParts) {
    this.#parts = parts;
    this.#markers = new ShardMarkers(parts);
    this.#mending = new ShardRepair({ ...parts, markers: this.#markers, known: this.#known });
  }

  /**
   * Looks once, then each second and after each reconnect until `stop`. On a new or emptied Redis, also where another process has
   * just seen to that, it resolves when what is made from now on outlives the watermark, which has to wait for the next full
   * second, also by our clock; for one that is behind by more than {@link TOLERATED_SKEW} no longer than for that.
   * @throws StoreUnavailableError when the first look failed, or a part of it; it goes on all the same, until it is stopped
   */
  async start(): Promise<void> {
    this.#forgetListener = this.#parts.connection.onReconnect(() => {
      this.#failoverEpoch += 1;
      this.#lookSoon();
    });
    this.#timer = setInterval(() => this.#lookSoon(), INTERVAL);
    try {
      await this.look();
    } finally {
      await this.#outlived();
    }
  }

  /** Milliseconds by which our clock is ahead of those of the servers, behind where negative; 0 where that does no harm. */
  get clockSkew(): number {
    return this.#clockSkew;
  }

  /** Whether this shard was looked at, and what it lacked was seen to. */
  hasSeen(shard: string): boolean {
    return this.#known.has({ shard });
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
    this.#forgetListener();
  }

  /**
   * Looks now, and does what is to be done wherever it can be.
   * @throws StoreUnavailableError when something could not be looked at or done: look again
   */
  async look(): Promise<void> {
    let look = await this.#seen();
    if (this.#mayBeBeginning(look)) {
      await sleep(BEGINNING);
      look = await this.#seen();
    }
    const { seen, lost } = look;
    if (seen.length === 0 || this.#cannotTell(look)) throw look.errors[0];
    await this.#reassert(look);
    const raisedTo = lost.size > 0 ? await this.#mending.restore(look) : 0;
    this.#watermark = Math.max(raisedTo, ...seen.map(({ watermark }) => watermark));
    this.#slowest = Math.min(...seen.map(({ now }) => now));
    await this.#mending.raise(look, this.#watermark);
    await this.#mending.beat(look);
    for (const shard of seen) if (!lost.has(shard)) this.#known.learn(shard);
    if (look.errors.length > 0) throw look.errors[0];
  }

  async #seen(): Promise<ShardInspection> {
    const { clock } = this.#parts;
    const skews: number[] = [];
    const { values: groups, failed } = await attemptEach(this.#markers.groups, SHARDS.length, async (shards) => {
      const begin = clock.now();
      const group = await this.#markers.look(shards);
      const end = clock.now();
      skews.push(...group.map(({ now }) => skewOf(now, { begin, end })));
      return group;
    });
    if (skews.length > 0) this.#noteSkew(harmfulSkew(skews, { wasHarmful: this.#clockSkew !== 0 }));
    const seen = groups.flat();
    const lost = new Set(seen.filter((shard) => this.#known.isLost(shard)));
    return { groups, seen, lost, errors: failed.map(({ error }) => error) };
  }

  /** Whether another process may be writing the first markers at this moment: in a Cluster they do not appear at once. */
  #mayBeBeginning({ seen }: ShardInspection): boolean {
    const marked = seen.filter(({ marker }) => marker !== undefined).length;
    return this.#known.isEmpty && 0 < marked && marked < seen.length;
  }

  /**
   * Whether this may be a new deployment, or one of which all that is left is away: only all shards together can tell. Nothing
   * was seen before, so nothing is served meanwhile.
   */
  #cannotTell({ seen, errors }: ShardInspection): boolean {
    return this.#known.isEmpty && errors.length > 0 && seen.every(({ marker }) => marker === undefined);
  }

  async #reassert({ seen, lost, errors }: ShardInspection): Promise<void> {
    const { connection, observe } = this.#parts;
    if (lost.size > 0 || seen.some((shard) => this.#known.hasMoved(shard))) this.#failoverEpoch += 1;
    // What comes up while they are applied is not settled by that.
    const failoverEpoch = this.#failoverEpoch;
    const isDoubtful = failoverEpoch !== this.#replayedEpoch;
    const again = await connection.reassert(isDoubtful ? 'all' : 'due');
    this.#replayedEpoch = failoverEpoch;
    errors.push(...again.errors);
    if (isDoubtful && again.applied > 0) observe({ kind: 'reasserted', writes: again.applied });
    if (!isDoubtful && errors.length === 0) connection.forgetOld();
  }

  #noteSkew(skew: number): void {
    const hasChanged = (skew === 0) !== (this.#clockSkew === 0);
    this.#clockSkew = skew;
    if (hasChanged) this.#parts.observe({ kind: 'clock_skew', milliseconds: skew });
  }

  /** Until what is made here is dated later than the watermark, which may have been raised just now, here or by another process. */
  async #outlived(): Promise<void> {
    const next = this.#watermark - (this.#watermark % FULL_SECOND) + FULL_SECOND;
    const wait = next - Math.min(this.#slowest, this.#parts.clock.now());
    if (wait > 0 && this.#watermark > 0) await sleep(Math.min(wait, TOLERATED_SKEW + FULL_SECOND) + TIMER_SLACK_MS);
  }

  /** One look at a time; a failed one is repeated by the timer. */
  #lookSoon(): void {
    if (this.#isStopped) return;
    this.#looking ??= this.look()
      .catch(() => {})
      .finally(() => {
        this.#looking = undefined;
      });
  }
}
