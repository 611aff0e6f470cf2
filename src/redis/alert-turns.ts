// Whose turn it is to deliver an alert of the outbox: one hash per shard with a turn for each alert, so that two replicas
// do not send the same one at once and a failed try waits before the next.

import type { RedisConnection, Script } from './connection.ts';
import { type RedisKeys, shardOf } from './keys.ts';
import { CLOCK } from './script-clock.ts';

/** A turn that was taken. */
export interface AlertTurn {
  /** Whether nobody had one before: nobody has told of this alert yet. */
  readonly isFirst: boolean;
  /** How many turns were taken, this one included. */
  readonly tries: number;
}

/** Milliseconds after which the turns of a shard go when nobody takes one: longer than any alert is tried. */
const KEPT = 7 * 24 * 3_600_000;

/** KEYS outbox, turns; ARGV offset, alert id, milliseconds. The value is `<due>:<tries>`. */
const TAKE: Script = {
  name: 'alertTake',
  keys: 2,
  lua: `${CLOCK}
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  redis.call('HDEL', KEYS[2], ARGV[2])
  return false
end
local due, tries = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '0:0', '(%d+):(%d+)')
if now < tonumber(due) then return false end
tries = tonumber(tries) + 1
redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d', now + ARGV[3], tries))
redis.call('PEXPIRE', KEYS[2], ${KEPT})
return tries
`,
};

/** Arguments as TAKE: nobody gets a turn for so many milliseconds. */
const POSTPONE: Script = {
  name: 'alertPostpone',
  keys: 2,
  lua: `${CLOCK}
local tries = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '', ':(%d+)')
if tries then redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d', now + ARGV[3], tries)) end
`,
};

/** KEYS and id as TAKE: every sink has it. */
const SETTLE: Script = {
  name: 'alertSettle',
  keys: 2,
  lua: "redis.call('HDEL', KEYS[1], ARGV[2]) redis.call('HDEL', KEYS[2], ARGV[2])",
};

/** The turns of all shards. */
export class AlertTurns {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: { connection: RedisConnection; keys: RedisKeys }) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /**
   * Takes the turn for an alert; undefined when it is delivered, or somebody else's for now.
   * @param lease milliseconds until somebody else may take it
   */
  async take(alertId: string, lease: number): Promise<AlertTurn | undefined> {
    const tries = (await this.#connection.run(TAKE, this.#keysOf(alertId), [alertId, lease])) as number | null;
    return tries === null ? undefined : { isFirst: tries === 1, tries };
  }

  /** Ends a turn that failed: nobody gets the next one before `delay` milliseconds are over. */
  async postpone(alertId: string, delay: number): Promise<void> {
    await this.#connection.run(POSTPONE, this.#keysOf(alertId), [alertId, Math.ceil(delay)]);
  }

  /** Forgets an alert that every sink has. Idempotent; its grant remembers that it was raised. */
  async settle(alertId: string): Promise<void> {
    await this.#connection.run(SETTLE, this.#keysOf(alertId), [alertId]);
  }

  #keysOf(alertId: string): readonly string[] {
    const shard = shardOf(alertId);
    return [this.#keys.outbox(shard), this.#keys.alertTurns(shard)];
  }
}
