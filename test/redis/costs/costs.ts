// What one request costs: counted at its second time, beside nothing else.

import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import type { RedisServer } from '../setup/servers.ts';
import { beginCounting, endCounting, type Kind } from './process-work.ts';
import type { RedisTap } from './redis-tap.ts';

/** How often commands are called, by their names. */
export type Calls = Readonly<Record<string, number>>;

/** The counts of one request. */
export interface Cost {
  /** EVALSHA and EVAL. */
  readonly scripts: number;
  /** What else is sent. */
  readonly commands: Calls;
  /** What the scripts call. */
  readonly inside: Calls;
  /** Bytes to Redis. */
  readonly sent: number;
  /** Bytes from Redis. */
  readonly received: number;
  readonly roundTrips: number;
  readonly work: Readonly<Record<Kind, number>>;
}

/** A cost, and where in src/ its hashes, signatures and parsed texts were made. */
export interface Counted extends Cost {
  readonly places: readonly string[];
}

/** Sends a request whose code, token or page is new, and reads the answer. */
export type Prepared = () => Promise<unknown>;

/** The clock of the server, which the process reads once in a while whatever is asked of it. */
const CLOCK = 'TIME';
/** How often a request is counted that does not cost what it should. */
const TRIES = 5;

export class CostCounter {
  readonly #redis: RedisServer;
  readonly #tap: RedisTap;
  readonly #refreshClock: () => Promise<unknown>;

  /** @param parts.refreshClock sends something by the connection, which then has read the clock of the server */
  constructor(parts: { redis: RedisServer; tap: RedisTap; refreshClock: () => Promise<unknown> }) {
    this.#redis = parts.redis;
    this.#tap = parts.tap;
    this.#refreshClock = parts.refreshClock;
  }

  /**
   * Counts until the cost is as expected. A script that compares a lifetime with one that was rounded up sets it again where
   * the clock has just moved on, which says nothing of the request.
   * @param prepare is called for each of the equal requests: the first one warms caches and does not count
   * @returns the cheapest of several where none is as expected
   */
  async count(prepare: () => Promise<Prepared>, isExpected: (cost: Counted) => boolean): Promise<Counted> {
    await (await prepare())();
    let least: Counted | undefined;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const cost = await this.#countOnce(await prepare());
      if (cost.commands[CLOCK] !== undefined) continue;
      if (isExpected(cost)) return cost;
      if (least === undefined || callsOf(cost) < callsOf(least)) least = cost;
    }
    if (least === undefined) throw new Error('the clock of Redis was read beside each request');
    return least;
  }

  async #countOnce(send: Prepared): Promise<Counted> {
    await this.#refreshClock();
    await this.#quiet();
    const before = await this.#calls();
    this.#tap.begin();
    beginCounting();
    await send();
    await this.#quiet();
    const { counts, places } = endCounting();
    const traffic = this.#tap.end();
    const after = await this.#calls();
    const names = traffic.commands.filter((name) => !isScript(name));
    const scripts = traffic.commands.length - names.length;
    const all = difference(after, before);
    // The reading of the counts is among them.
    const outside = tally([...traffic.commands, 'INFO']);
    return {
      scripts,
      commands: tally(names),
      inside: difference(all, outside),
      sent: traffic.sent,
      received: traffic.received,
      roundTrips: traffic.roundTrips,
      work: counts,
      places,
    };
  }

  /** Resolves when nothing is on its way and no task is left that the last reply has begun. */
  async #quiet(): Promise<void> {
    for (let turns = 0; turns < 20; turns += 1) {
      await turn();
      if (this.#tap.isAwaited) turns = 0;
    }
    await sleep(5);
  }

  async #calls(): Promise<Calls> {
    const text = String(await this.#redis.command('INFO', 'commandstats'));
    const lines = [...text.matchAll(/^cmdstat_(\S+):calls=(\d+)/gm)];
    return Object.fromEntries(lines.map(([, name = '', calls]) => [name.toUpperCase(), Number(calls)]));
  }
}

function callsOf({ inside }: Cost): number {
  return Object.values(inside).reduce((sum, calls) => sum + calls, 0);
}

function isScript(name: string): boolean {
  return name === 'EVALSHA' || name === 'EVAL';
}

function tally(names: readonly string[]): Calls {
  const calls: Record<string, number> = {};
  for (const name of names) calls[name] = (calls[name] ?? 0) + 1;
  return calls;
}

/** The calls of one that the other does not have, by their names in order. */
function difference(all: Calls, others: Calls): Calls {
  const left = Object.entries(all).map(([name, calls]) => [name, calls - (others[name] ?? 0)] as const);
  return Object.fromEntries(left.filter(([, calls]) => calls !== 0).sort(([one], [other]) => (one < other ? -1 : 1)));
}
