// The one way to Redis, and what a process sees of it: which servers are there, and what is done again when one comes back.
// How an action is sent is in `script-runner.ts`.

import { setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { newDeadline, STOPWATCH } from '../link/deadline.ts';
import type { RedisTarget } from '../link/redis-url.ts';
import type { ServerLink } from '../link/server-link.ts';
import type { Action, PlainRead, Script } from '../scripts/script.ts';
import { type Acknowledgement, ScriptRunner } from '../scripts/script-runner.ts';
import { connectionMaker, type RedisCredentials } from '../topology/connection-maker.ts';
import { openServers, type Servers } from '../topology/servers.ts';
import { attemptEach } from './attempt-each.ts';
import { RecentRevocations } from './recent-revocations.ts';

/** Where actions run. */
export interface RedisConnection {
  /** Whether the keys of one script may be in different slots: not in a Cluster. */
  readonly crossesSlots: boolean;
  /**
   * Runs a script or a command once.
   * @param deadline of {@link STOPWATCH}; that of a request of its own unless given
   * @throws StoreUnavailableError within a second whenever Redis cannot answer; it may have run then, and one that expires
   *   will not run any more
   */
  run(action: Action<Script | PlainRead>, deadline?: number): Promise<unknown>;
  /**
   * The same for what must not be lost: where replicas of Redis have to acknowledge, `acknowledged` says whether enough did
   * in time.
   * @throws StoreUnavailableError as `run`
   */
  runDurably(action: Action, deadline?: number): Promise<{ reply: unknown; acknowledged: boolean }>;
  /** Notes a revocation: it is applied again soon, and when another server takes over within the next minute and a half. */
  remember(action: Action): void;
}

/** INFO of one primary. */
export interface ServerInfo {
  readonly server: string;
  readonly text: string;
}

/** What came of applying revocations again. */
export interface Reassertment {
  readonly applied: number;
  /** Why the others could not be; they stay due. */
  readonly errors: readonly unknown[];
}

/** The connection as its process sees it. It is made once and comes back by itself after every loss. */
export interface ManagedConnection extends RedisConnection {
  /** Whether every primary takes requests now: for `/readyz` and the metric. */
  readonly isUp: boolean;
  /** Every primary that is known, by `host:port` or what Sentinels call it, and whether it takes requests now. */
  readonly primaries: readonly { readonly name: string; readonly isUp: boolean }[];
  /** Resolves when every primary takes requests. @throws StoreUnavailableError after `limit` ms; its cause is the last fault */
  ready(limit: number): Promise<void>;
  /** Asks every primary that takes requests for its INFO. @throws StoreUnavailableError also where none does */
  info(): Promise<readonly ServerInfo[]>;
  /** Applies remembered revocations again: all of them, or those that were not since they were made. Never throws. */
  reassert(which: 'all' | 'due'): Promise<Reassertment>;
  /** Forgets revocations older than a minute and a half; for times when all is well. */
  forgetOld(): void;
  /** Called after every connect of a primary from now on, in no particular order, until what is returned is called. */
  onReconnect(listener: () => void): () => void;
  close(): Promise<void>;
}

export interface ConnectionOptions {
  readonly target: RedisTarget;
  /** Asked at every connect, so that a replaced file counts. */
  readonly credentials?: () => RedisCredentials;
  /** Undefined: the primary alone is enough. */
  readonly acknowledgement?: Acknowledgement | undefined;
  /** The distance of the test clock in milliseconds; absent in production. */
  readonly clockOffset?: () => number;
}

/** Revocations applied again at a time. */
const BATCH = 100;

/** Starts to connect. */
export function connectRedis(options: ConnectionOptions): ManagedConnection {
  return new Connection(options);
}

class Connection implements ManagedConnection {
  readonly crossesSlots: boolean;
  readonly #servers: Servers;
  readonly #runner: ScriptRunner;
  readonly #reassertions = new RecentRevocations({ clock: STOPWATCH });
  readonly #listeners = new Set<() => void>();

  constructor({ target, credentials = () => ({}), acknowledgement, clockOffset = () => 0 }: ConnectionOptions) {
    this.crossesSlots = target.form !== 'cluster';
    const database = target.form === 'cluster' ? 0 : target.database;
    this.#servers = openServers({
      target,
      connections: connectionMaker({ tls: target.tls, database }, credentials),
      clock: STOPWATCH,
      onReady: () => {
        for (const listener of this.#listeners) listener();
      },
    });
    this.#runner = new ScriptRunner({ servers: this.#servers, acknowledgement, clockOffset });
  }

  get primaries(): readonly ServerLink[] {
    return this.#servers.primaries();
  }

  get isUp(): boolean {
    return this.primaries.length > 0 && this.primaries.every((link) => link.isUp);
  }

  run(action: Action<Script | PlainRead>, deadline?: number): Promise<unknown> {
    return this.#runner.run(action, deadline);
  }

  runDurably(action: Action, deadline?: number): Promise<{ reply: unknown; acknowledged: boolean }> {
    return this.#runner.runDurably(action, deadline);
  }

  async ready(limit: number): Promise<void> {
    for (const end = STOPWATCH.now() + limit; !this.isUp; await sleep(5)) {
      if (STOPWATCH.now() >= end) throw new StoreUnavailableError('connect', this.#servers.lastError());
    }
  }

  async info(): Promise<readonly ServerInfo[]> {
    const all = this.primaries;
    const up = all.filter((link) => link.isUp);
    if (all.length === 0) throw new StoreUnavailableError('info', this.#servers.lastError());
    try {
      return await Promise.all(
        // One that was silent is found to be back by asking it.
        (up.length > 0 ? up : all).map(async (link) => ({
          server: link.name,
          text: await link.send((redis) => redis.info(), newDeadline()),
        })),
      );
    } catch (error) {
      throw new StoreUnavailableError('info', error);
    }
  }

  remember(action: Action): void {
    this.#reassertions.remember(action);
  }

  async reassert(which: 'all' | 'due'): Promise<Reassertment> {
    const remembered = this.#reassertions.take(which);
    const { values, failed } = await attemptEach(remembered, BATCH, (action) => this.run(action));
    for (const { item } of failed) this.#reassertions.failed(item);
    return { applied: values.length, errors: failed.map(({ error }) => error) };
  }

  forgetOld(): void {
    this.#reassertions.forgetOld();
  }

  onReconnect(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#servers.close();
  }
}
