// Sends each action to the server that owns its keys, and never sends it again once it may have run. The stores define
// the actions.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { newDeadline, STOPWATCH, TIMER_SLACK_MS } from '../link/deadline.ts';
import { isLate, mayHaveRun, redirectionOf, UnansweredError, unavailableReason } from '../link/redis-errors.ts';
import type { ServerLink } from '../link/server-link.ts';
import type { Servers } from '../topology/servers.ts';
import { primaryOnly } from './primary-only.ts';
import type { Action, PlainRead, Script } from './script.ts';
import { withinDeadline } from './script-deadline.ts';

type CommandArgs = readonly (string | number)[];

/**
 * The time that a script may take in addition to the wait for replicas of Redis; with less left it is not sent;
 * milliseconds.
 */
const SCRIPT_TIME = 150;

/**
 * How often a request follows a redirection of a Cluster, or is sent again to a server whose clock was set, before it
 * fails.
 */
const MAX_REDIRECTIONS = 3;

/** The setting GRANTRY_REDIS_WAIT: how many replicas of Redis must acknowledge a write within how many milliseconds. */
export interface Acknowledgement {
  readonly replicas: number;
  readonly timeout: number;
}

export interface ScriptRunnerParts {
  readonly servers: Servers;
  /** Undefined: no acknowledgement by replicas of Redis is required. */
  readonly acknowledgement: Acknowledgement | undefined;
  readonly clockOffset: () => number;
}

/** Runs actions with the guarantees of `RedisConnection`. */
export class ScriptRunner {
  readonly #servers: Servers;
  readonly #acknowledgement: Acknowledgement | undefined;
  readonly #clockOffset: () => number;

  constructor({ servers, acknowledgement, clockOffset }: ScriptRunnerParts) {
    this.#servers = servers;
    this.#acknowledgement = acknowledgement;
    this.#clockOffset = clockOffset;
  }

  run({ script, keys, args = [] }: Action<Script | PlainRead>, deadline = newDeadline()): Promise<unknown> {
    return this.#sendToOwner({ script, keys }, deadline, ({ link, asking }) =>
      link.send((redis, serverClock) => {
        const send = (...limit: CommandArgs) => {
          if (asking) redis.asking().catch(() => {});
          if ('command' in script) return redis.call(script.command, ...keys, ...args);
          return evaluate(redis, script, [...keys, this.#clockOffset(), ...args, ...limit]);
        };
        if (!('hasDeadline' in script)) return send();
        const limit = serverClock.at(deadline - TIMER_SLACK_MS);
        return typeof limit === 'number' ? send(limit) : limit.then(send);
      }, deadline),
    );
  }

  async runDurably(action: Action, deadline = newDeadline()): Promise<{ reply: unknown; acknowledged: boolean }> {
    const wanted = this.#acknowledgement;
    if (wanted === undefined) return { reply: await this.run(action, deadline), acknowledged: true };
    const { script, keys, args = [] } = action;
    const words = [...keys, this.#clockOffset(), ...args];
    const answer = await this.#sendToOwner({ script, keys }, deadline, ({ link, asking }) =>
      link.sendLeased(
        async (redis, serverClock) => {
          const limit = script.hasDeadline ? [await serverClock.at(deadline - TIMER_SLACK_MS)] : [];
          if (asking) redis.asking().catch(() => {});
          // Both are sent at once. EVAL, because the resend of an unknown EVALSHA would come after the WAIT.
          const reply = redis.eval(assembledLua(script), script.keys, ...words, ...limit);
          const acknowledging = redis.wait(wanted.replicas, wanted.timeout).catch(() => 0);
          return { reply: await reply, acknowledged: (await acknowledging) >= wanted.replicas };
        },
        { deadline, needed: wanted.timeout + SCRIPT_TIME },
      ),
    );
    // Missing replicas of Redis may follow another primary by now.
    if (!answer.acknowledged) this.#servers.suspectStale();
    return answer;
  }

  /** Sends to the owner of the keys, and follows the redirections of a Cluster: a redirected request has not run. */
  async #sendToOwner<Reply>(
    { script, keys }: Action<Script | PlainRead>,
    deadline: number,
    send: (call: ScriptCall) => Promise<Reply>,
  ): Promise<Reply> {
    const { name, keys: count } = script;
    if (keys.length !== count) throw new TypeError(`${name} takes ${count} keys`);
    try {
      return await this.#followRedirections(keys[0] ?? '', send);
    } catch (error) {
      const reason = unavailableReason(error);
      if (reason === undefined) throw new Error(`${name} failed in Redis`, { cause: error });
      this.#servers.suspectStale();
      // A refused client may retry at another replica at once: this attempt must not run after that, so wait for its
      // deadline.
      if ('hasDeadline' in script && mayHaveRun(error)) await sleep(Math.max(0, deadline - STOPWATCH.now()));
      throw new StoreUnavailableError(name, error, { reason });
    }
  }

  async #followRedirections<Reply>(key: string, send: (call: ScriptCall) => Promise<Reply>): Promise<Reply> {
    let link = this.#servers.ownerOf(key);
    let asking = false;
    for (let redirections = 0; link !== undefined; redirections++) {
      try {
        return await send({ link, asking });
      } catch (error) {
        const redirection = redirectionOf(error);
        if (redirections === MAX_REDIRECTIONS) throw error;
        // LATE before the deadline has passed here: the server's clock was set, and nothing has run.
        if (isLate(error)) continue;
        if (redirection === undefined) throw error;
        link = this.#servers.redirected(redirection, link);
        asking = redirection.kind === 'ASK';
      }
    }
    throw new UnansweredError('no_owner', this.#servers.lastError());
  }
}

/** One call of a script at one server. */
interface ScriptCall {
  readonly link: ServerLink;
  /** The slot is migrating to this server: without ASKING first, the server refuses. */
  readonly asking: boolean;
}

type Command = (...words: CommandArgs) => Promise<unknown>;

/** The Lua that Redis runs: the script with its guards. */
export function assembledLua({ lua, hasDeadline, allowsOom }: Script): string {
  const guarded = primaryOnly(hasDeadline ? withinDeadline(lua) : lua);
  return allowsOom ? `#!lua flags=allow-oom\n${guarded}` : guarded;
}

/** EVALSHA, with EVAL only where the server does not have the script yet. */
function evaluate(redis: Redis, script: Script, words: CommandArgs): Promise<unknown> {
  const command = `grantry:${script.name}`;
  const commands = redis as unknown as Record<string, Command>;
  if (!Object.hasOwn(commands, command)) {
    redis.defineCommand(command, { lua: assembledLua(script), numberOfKeys: script.keys });
  }
  return commands[command]?.(...words) ?? Promise.reject(new TypeError(`${command} is not defined`));
}
