// The connection of a process to Redis: the state of the servers, the actions, and the replay of recent revocations
// after a fail-over. `script-runner.ts` sends the actions.

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

/** Runs actions in Redis. */
export interface RedisConnection {
  /** Whether the keys of one script may be in different slots: true unless Redis is a Cluster. */
  readonly allowsCrossSlot: boolean;
  /**
   * Runs a script or a command once.
   * @param deadline by {@link STOPWATCH}; a new one by default
   * @throws StoreUnavailableError within a second whenever Redis cannot answer. The action may have run then; a script
   *   with `hasDeadline` does not run any more
   */
  run(action: Action<Script | PlainRead>, deadline?: number): Promise<unknown>;
  /**
   * Runs a script whose writes must not be lost: where replicas of Redis must acknowledge a write, `acknowledged` says
   * whether enough of them did in time.
   * @throws StoreUnavailableError as `run`
   */
  runDurably(action: Action, deadline?: number): Promise<{ reply: unknown; acknowledged: boolean }>;
  /**
   * Records a revocation for replay: it is applied again soon, and after a fail-over within the next minute and a half.
   */
  recordForReplay(action: Action): void;
}

/** The reply of one primary to INFO. */
export interface ServerInfo {
  readonly server: string;
  readonly text: string;
}

/** The outcome of a replay of revocations. */
export interface ReplayOutcome {
  readonly applied: number;
  /** The errors of the others, which stay pending. */
  readonly errors: readonly unknown[];
}

/** The connection as its process manages it. It is created once and reconnects by itself after every loss. */
export interface ManagedConnection extends RedisConnection {
  /** Whether every primary accepts requests now: for `/readyz` and the metric. */
  readonly isUp: boolean;
  /** Every known primary, by `host:port` or by its name at the Sentinels, and whether it accepts requests now. */
  readonly primaries: readonly { readonly name: string; readonly isUp: boolean }[];
  /**
   * Resolves when every primary accepts requests.
   * @throws StoreUnavailableError after `limit` ms; its cause is the last fault
   */
  ready(limit: number): Promise<void>;
  /** Sends INFO to every primary that accepts requests. @throws StoreUnavailableError also if none does */
  info(): Promise<readonly ServerInfo[]>;
  /** Whether this primary reads the key for a client that does not authenticate; false where that is not known. */
  admitsUnauthenticated(server: string, key: string): Promise<boolean>;
  /** Applies the recorded revocations again: all of them, or those whose replay is pending. Never throws. */
  replayRevocations(which: 'all' | 'pending'): Promise<ReplayOutcome>;
  /** Forgets revocations older than a minute and a half. To be called only while all primaries are healthy. */
  forgetOld(): void;
  /**
   * Calls the listener after every connect of a primary, in no particular order.
   * @returns a function that removes it
   */
  onReconnect(listener: () => void): () => void;
  close(): Promise<void>;
}

export interface ConnectionOptions {
  readonly target: RedisTarget;
  /** Called at every connect, so that a replaced file takes effect. */
  readonly credentials?: () => RedisCredentials;
  /** Undefined: no acknowledgement by replicas of Redis is required. */
  readonly acknowledgement?: Acknowledgement | undefined;
  /** The distance of the test clock in milliseconds; absent in production. */
  readonly clockOffset?: () => number;
  /** How long a server may owe a reply before its connection is closed, in milliseconds; absent in production. */
  readonly socketTimeout?: number;
}

/** How many revocations are replayed at a time. */
const BATCH = 100;

/** Starts to connect. */
export function connectRedis(options: ConnectionOptions): ManagedConnection {
  return new Connection(options);
}

class Connection implements ManagedConnection {
  readonly allowsCrossSlot: boolean;
  readonly #servers: Servers;
  readonly #runner: ScriptRunner;
  readonly #recentRevocations = new RecentRevocations({ clock: STOPWATCH });
  readonly #listeners = new Set<() => void>();

  constructor(options: ConnectionOptions) {
    const { target, credentials = () => ({}), acknowledgement, clockOffset = () => 0, socketTimeout } = options;
    this.allowsCrossSlot = target.form !== 'cluster';
    const database = target.form === 'cluster' ? 0 : target.database;
    this.#servers = openServers({
      target,
      connections: connectionMaker({ tls: target.tls, database, socketTimeout }, credentials),
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
        // With no primary up, all are asked: an answer closes the circuit breaker of an unresponsive one.
        (up.length > 0 ? up : all).map(async (link) => ({
          server: link.name,
          text: await link.send((redis) => redis.info(), newDeadline()),
        })),
      );
    } catch (error) {
      throw new StoreUnavailableError('info', error);
    }
  }

  async admitsUnauthenticated(server: string, key: string): Promise<boolean> {
    const link = this.primaries.find(({ name }) => name === server);
    return link !== undefined && (await link.admitsUnauthenticated(key));
  }

  recordForReplay(action: Action): void {
    this.#recentRevocations.recordForReplay(action);
  }

  async replayRevocations(which: 'all' | 'pending'): Promise<ReplayOutcome> {
    const remembered = this.#recentRevocations.take(which);
    const { values, failed } = await attemptEach(remembered, BATCH, (action) => this.run(action));
    for (const { item } of failed) this.#recentRevocations.requeue(item);
    return { applied: values.length, errors: failed.map(({ error }) => error) };
  }

  forgetOld(): void {
    this.#recentRevocations.forgetOld();
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
