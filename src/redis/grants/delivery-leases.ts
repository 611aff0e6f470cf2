// Whose turn it is to deliver an alert of the outbox, and whether it was told: one hash per shard with an entry for each
// alert, so that two replicas of grantry do not send the same one at once, a failed try waits before the next, and the audit
// stream has one line of it.

import { shardOf } from '../../oauth/values/shard.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** A turn that was taken. */
export interface DeliveryLease {
  /** Whether somebody has written its audit line. */
  readonly isTold: boolean;
  /** How many turns were taken, this one included. */
  readonly tries: number;
}

/** Who has to have an alert before it leaves the outbox: audit stream and webhook, and in a cluster the controller. */
export type AlertSink = 'delivery' | 'controller';

const SINK_BITS: Readonly<Record<AlertSink, number>> = { delivery: 1, controller: 2 };

/** Milliseconds after which the turns of a shard go when nobody takes one: longer than any alert is tried. */
const KEPT = 7 * 24 * 3_600_000;

/**
 * Lua over KEYS outbox, turns and ARGV offset, alert id: the entry `<due>:<tries>:<told>:<bits of the sinks that have it>`,
 * the last of which an earlier version left out. One that cannot be read is none.
 */
export const TURN = `${CLOCK}
local is_waiting = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
local due, tries, told, sinks = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '', '^(%d+):(%d+):([01]):?([0-3]?)$')
due, tries, told, sinks = tonumber(due or 0), tonumber(tries or 0), told or '0', tonumber(sinks) or 0
local function keep()
  redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d:%s:%d', due, tries, told, sinks))
  redis.call('PEXPIRE', KEYS[2], ${KEPT})
end
`;

/** ARGV as TURN, milliseconds, `1` when it is told. */
const TAKE: Script = {
  name: 'alertTake',
  keys: 2,
  lua: `${TURN}
if not is_waiting then
  redis.call('HDEL', KEYS[2], ARGV[2])
  return false
end
local is_due = now >= due and bit.band(sinks, ${SINK_BITS.delivery}) == 0
if is_due then due, tries = now + ARGV[3], tries + 1 end
if ARGV[4] == '1' then told = '1' end
keep()
return is_due and { tries, told }
`,
};

const TELL: Script = { name: 'alertTell', keys: 2, lua: `${TURN}told = '1' if is_waiting then keep() end` };

/** ARGV as TURN, milliseconds: nobody gets a turn for so long. */
const POSTPONE: Script = {
  name: 'alertPostpone',
  keys: 2,
  lua: `${TURN}due = now + ARGV[3] if is_waiting then keep() end`,
};

/** ARGV as TURN, the bit of a sink that has it, the bits of all. */
const SETTLE: Script = {
  name: 'alertSettle',
  keys: 2,
  lua: `${TURN}
sinks = bit.bor(sinks, ARGV[3])
if is_waiting and bit.band(sinks, ARGV[4]) < tonumber(ARGV[4]) then return keep() end
redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[2])
`,
};

/** ARGV as TURN, the bit of a sink. */
const AWAITS: Script = {
  name: 'alertAwaits',
  keys: 2,
  lua: `${TURN}return is_waiting and bit.band(sinks, ARGV[3]) == 0 and 1`,
};

/** The turns of all shards. */
export class DeliveryLeases {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #allBits: number;

  /** @param parts.hasController whether a controller is one of the sinks */
  constructor({
    connection,
    keys,
    hasController = false,
  }: {
    connection: RedisConnection;
    keys: RedisKeys;
    hasController?: boolean;
  }) {
    this.#connection = connection;
    this.#keys = keys;
    this.#allBits = hasController ? SINK_BITS.delivery + SINK_BITS.controller : SINK_BITS.delivery;
  }

  /**
   * Takes the turn for an alert; undefined when it is delivered, or somebody else's for now.
   * @param options.lease milliseconds until somebody else may take it
   * @param options.isTold the caller has written its audit line, which is noted whosever turn it is
   */
  async take(
    alertId: string,
    { lease, isTold }: { lease: number; isTold: boolean },
  ): Promise<DeliveryLease | undefined> {
    const args = [alertId, lease, isTold ? 1 : 0];
    const turn = (await this.#connection.run({ script: TAKE, keys: this.#keysOf(alertId), args })) as
      | [number, string]
      | null;
    return turn === null ? undefined : { tries: turn[0], isTold: turn[1] === '1' };
  }

  /** Notes that the audit line of an alert is written. */
  async tell(alertId: string): Promise<void> {
    await this.#connection.run({ script: TELL, keys: this.#keysOf(alertId), args: [alertId] });
  }

  /** Ends a turn that failed: nobody gets the next one before `delay` milliseconds are over. */
  async postpone(alertId: string, delay: number): Promise<void> {
    await this.#connection.run({ script: POSTPONE, keys: this.#keysOf(alertId), args: [alertId, Math.ceil(delay)] });
  }

  /** Notes that a sink has an alert, and forgets one that all have. Idempotent; its grant remembers that it was raised. */
  async settle(alertId: string, sink: AlertSink): Promise<void> {
    await this.#connection.run({
      script: SETTLE,
      keys: this.#keysOf(alertId),
      args: [alertId, SINK_BITS[sink], this.#allBits],
    });
  }

  /** Whether an alert is in the outbox and this sink has not had it. */
  async awaits(alertId: string, sink: AlertSink): Promise<boolean> {
    return (
      (await this.#connection.run({
        script: AWAITS,
        keys: this.#keysOf(alertId),
        args: [alertId, SINK_BITS[sink]],
      })) === 1
    );
  }

  #keysOf(alertId: string): readonly string[] {
    const shard = shardOf(alertId);
    return [this.#keys.outbox(shard), this.#keys.alertTurns(shard)];
  }
}
