// The one way to Redis: atomic actions, each a script, never sent again by us once it may have run. What the actions are
// is in the files of the stores.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { StoreUnavailableError } from '../oauth/error.ts';
import { attemptEach } from './attempt-each.ts';
import { clientMaker, type RedisCredentials } from './clients.ts';
import { newDeadline, STOPWATCH } from './deadline.ts';
import { inTime, isLate } from './in-time.ts';
import { primaryOnly } from './primary-only.ts';
import { Reassertions } from './reassertions.ts';
import type { RedisTarget } from './redis-url.ts';
import type { PlainRead, Script } from './script.ts';
import type { ServerLink } from './server-link.ts';
import { openServers, type Servers } from './servers.ts';
import { mayHaveRun, redirectionOf, UnansweredError, unavailableReason } from './unanswered.ts';

type Arguments = readonly (string | number)[];

/** Where actions run. The keys of one action share a slot; the first ARGV is always the clock offset in ms (0 in production). */
export interface RedisConnection {
  /** Whether the keys of one script may be in different slots: not in a Cluster. */
  readonly crossesSlots: boolean;
  /**
   * Runs a script or a command once.
   * @param deadline of {@link STOPWATCH}; that of a request of its own unless given
   * @throws StoreUnavailableError within a second whenever Redis cannot answer; it may have run then, and one that expires
   *   will not run any more
   */
  run(action: Script | PlainRead, keys: readonly string[], args: Arguments, deadline?: number): Promise<unknown>;
  /**
   * The same for what must not be lost: where replicas have to acknowledge, `acknowledged` says whether enough did in time.
   * @throws StoreUnavailableError as `run`
   */
  runDurably(
    script: Script,
    keys: readonly string[],
    args: Arguments,
    deadline?: number,
  ): Promise<{ reply: unknown; acknowledged: boolean }>;
  /** Notes a revocation: it is applied again soon, and when another server takes over within the next minute. */
  remember(script: Script, keys: readonly string[], args: Arguments): void;
  close(): Promise<void>;
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
}

/** What GRANTRY_REDIS_WAIT asks for: so many replicas have a write within so many milliseconds. */
export interface Acknowledgement {
  readonly replicas: number;
  readonly timeout: number;
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

/** What a script may take beside the wait for replicas, before there is no point in beginning; milliseconds. */
const SCRIPT_TIME = 150;

/** How often a request follows a redirection of a Cluster, or is sent again to a server whose clock was set, before it gives up. */
const MOST_REDIRECTIONS = 3;

/** By how much a timer may be too early, in milliseconds. */
const TIMER = 2;

/** Revocations applied again at a time. */
const BATCH = 100;

/** Starts to connect. */
export function connectRedis(options: ConnectionOptions): ManagedConnection {
  return new Connection(options);
}

class Connection implements ManagedConnection {
  readonly crossesSlots: boolean;
  readonly #servers: Servers;
  readonly #acknowledgement: Acknowledgement | undefined;
  readonly #clockOffset: () => number;
  readonly #reassertions = new Reassertions({ clock: STOPWATCH });
  readonly #listeners = new Set<() => void>();

  constructor({ target, credentials = () => ({}), acknowledgement, clockOffset = () => 0 }: ConnectionOptions) {
    this.crossesSlots = target.form !== 'cluster';
    this.#acknowledgement = acknowledgement;
    this.#clockOffset = clockOffset;
    const database = target.form === 'cluster' ? 0 : target.database;
    this.#servers = openServers({
      target,
      clients: clientMaker({ tls: target.tls, database }, credentials),
      clock: STOPWATCH,
      onReady: () => {
        for (const listener of this.#listeners) listener();
      },
    });
  }

  get primaries(): readonly ServerLink[] {
    return this.#servers.primaries();
  }

  get isUp(): boolean {
    return this.primaries.length > 0 && this.primaries.every((link) => link.isUp);
  }

  run(
    action: Script | PlainRead,
    keys: readonly string[],
    args: Arguments,
    deadline = newDeadline(),
  ): Promise<unknown> {
    return this.#ask({ action, keys, deadline }, ({ link, asking }) =>
      link.send((redis, clock) => {
        const send = (...limit: Arguments) => {
          if (asking) redis.asking().catch(() => {});
          if ('command' in action) return redis.call(action.command, ...keys, ...args);
          return evaluate(redis, action, [...keys, this.#clockOffset(), ...args, ...limit]);
        };
        if (!('expires' in action)) return send();
        const limit = clock.at(deadline - TIMER);
        return typeof limit === 'number' ? send(limit) : limit.then(send);
      }, deadline),
    );
  }

  async runDurably(
    script: Script,
    keys: readonly string[],
    args: Arguments,
    deadline = newDeadline(),
  ): Promise<{ reply: unknown; acknowledged: boolean }> {
    const wanted = this.#acknowledgement;
    if (wanted === undefined) return { reply: await this.run(script, keys, args, deadline), acknowledged: true };
    const words = [...keys, this.#clockOffset(), ...args];
    return await this.#ask({ action: script, keys, deadline }, ({ link, asking }) =>
      link.sendLeased(
        async (redis, clock) => {
          const limit = script.expires ? [await clock.at(deadline - TIMER)] : [];
          if (asking) redis.asking().catch(() => {});
          // Both go out at once. EVAL, because the resend of an unknown EVALSHA would come after the WAIT.
          const reply = redis.eval(textOf(script), script.keys, ...words, ...limit);
          const acknowledging = redis.wait(wanted.replicas, wanted.timeout).catch(() => 0);
          return { reply: await reply, acknowledged: (await acknowledging) >= wanted.replicas };
        },
        { deadline, needed: wanted.timeout + SCRIPT_TIME },
      ),
    );
  }

  async ready(limit: number): Promise<void> {
    for (const end = STOPWATCH.now() + limit; !this.isUp; await new Promise((resolve) => setTimeout(resolve, 5))) {
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

  remember(script: Script, keys: readonly string[], args: Arguments): void {
    this.#reassertions.remember({ script, keys, args });
  }

  async reassert(which: 'all' | 'due'): Promise<Reassertment> {
    const { values, failed } = await attemptEach(this.#reassertions.take(which), BATCH, ({ script, keys, args }) =>
      this.run(script, keys, args),
    );
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

  /** Asks the owner of the keys, and whomever a Cluster redirects to: a redirected request has not run. */
  async #ask<Reply>({ action, keys, deadline }: Asked, send: (attempt: Attempt) => Promise<Reply>): Promise<Reply> {
    const { name, keys: count } = action;
    if (keys.length !== count) throw new TypeError(`${name} takes ${count} keys`);
    try {
      return await this.#follow(keys[0] ?? '', send);
    } catch (error) {
      const reason = unavailableReason(error);
      if (reason === undefined) throw new Error(`${name} failed in Redis`, { cause: error });
      this.#servers.doubt();
      // Who is refused may do the same elsewhere at once, and what was sent before must not come after that.
      if ('expires' in action && mayHaveRun(error)) await sleep(Math.max(0, deadline - STOPWATCH.now()));
      throw new StoreUnavailableError(name, error, { reason });
    }
  }

  async #follow<Reply>(key: string, send: (attempt: Attempt) => Promise<Reply>): Promise<Reply> {
    let link = this.#servers.ownerOf(key);
    let asking = false;
    for (let redirections = 0; link !== undefined; redirections++) {
      try {
        return await send({ link, asking });
      } catch (error) {
        const redirection = redirectionOf(error);
        if (redirections === MOST_REDIRECTIONS) throw error;
        // Late there, and we are waiting here: the server's clock was set, and nothing has run.
        if (isLate(error)) continue;
        if (redirection === undefined) throw error;
        link = this.#servers.redirected(redirection, link);
        asking = redirection.kind === 'ASK';
      }
    }
    throw new UnansweredError('no_owner', this.#servers.lastError());
  }
}

interface Asked {
  readonly action: Script | PlainRead;
  readonly keys: readonly string[];
  readonly deadline: number;
}

/** One sending of a request to one server. */
interface Attempt {
  readonly link: ServerLink;
  /** The slot is moving here: say so first, or the server refuses. */
  readonly asking: boolean;
}

type Command = (...words: Arguments) => Promise<unknown>;

function textOf({ lua, expires }: Script): string {
  return primaryOnly(expires ? inTime(lua) : lua);
}

/** EVALSHA; the text itself goes only where the server does not know it yet. */
function evaluate(redis: Redis, script: Script, words: Arguments): Promise<unknown> {
  const command = `grantry:${script.name}`;
  const commands = redis as unknown as Record<string, Command>;
  if (!Object.hasOwn(commands, command)) {
    redis.defineCommand(command, { lua: textOf(script), numberOfKeys: script.keys });
  }
  return commands[command]?.(...words) ?? Promise.reject(new TypeError(`${command} is not defined`));
}
