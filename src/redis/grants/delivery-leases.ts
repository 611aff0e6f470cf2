// The delivery leases of the alerts in the outbox: one hash per shard with an entry for each alert. A lease is a
// visibility timeout: while one replica of grantry holds it, no other delivers the alert, and a failed try is followed
// by a backoff. The entry also records whether the audit line of the alert is written, so that the audit stream has one
// line of it.

import { shardOf } from '../../oauth/values/shard.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** A lease that was taken. */
export interface DeliveryLease {
  /** Whether the audit line of the alert is written. */
  readonly isAuditLogged: boolean;
  /** How many leases of this alert were taken, this one included. */
  readonly tries: number;
}

/**
 * What has to acknowledge an alert before it leaves the outbox: audit stream and webhook, and in a cluster the
 * controller.
 */
export type AlertSink = 'delivery' | 'controller';

const SINK_BITS: Readonly<Record<AlertSink, number>> = { delivery: 1, controller: 2 };

/**
 * The TTL of a shard's leases, in milliseconds, renewed by each write: longer than the delivery of an alert is tried.
 */
const TTL_MS = 7 * 24 * 3_600_000;

/**
 * Lua over KEYS outbox, leases and ARGV offset, alert id: the entry `<due>:<tries>:<logged>:<sinks>`, where `logged` is
 * the audit-logged flag and `sinks` the bits of the sinks that have the alert. A lease can be taken from `due` on. An
 * earlier version did not write the sinks. An entry that cannot be parsed counts as absent.
 */
export const LEASE_ENTRY = `${CLOCK}
local in_outbox = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
local due, tries, logged, sinks = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '', '^(%d+):(%d+):([01]):?([0-3]?)$')
due, tries, logged, sinks = tonumber(due or 0), tonumber(tries or 0), logged or '0', tonumber(sinks) or 0
local function keep()
  redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d:%s:%d', due, tries, logged, sinks))
  redis.call('PEXPIRE', KEYS[2], ${TTL_MS})
end
`;

/** ARGV as LEASE_ENTRY, the lease in milliseconds, `1` when the audit line is written. */
const TAKE: Script = {
  name: 'alertTake',
  keys: 2,
  lua: `${LEASE_ENTRY}
if not in_outbox then
  redis.call('HDEL', KEYS[2], ARGV[2])
  return false
end
local is_due = now >= due and bit.band(sinks, ${SINK_BITS.delivery}) == 0
if is_due then due, tries = now + ARGV[3], tries + 1 end
if ARGV[4] == '1' then logged = '1' end
keep()
return is_due and { tries, logged }
`,
};

const RECORD_AUDIT_LOGGED: Script = {
  name: 'alertTell',
  keys: 2,
  lua: `${LEASE_ENTRY}logged = '1' if in_outbox then keep() end`,
};

/** ARGV as LEASE_ENTRY, the backoff in milliseconds: no lease can be taken before it is over. */
const POSTPONE: Script = {
  name: 'alertPostpone',
  keys: 2,
  lua: `${LEASE_ENTRY}due = now + ARGV[3] if in_outbox then keep() end`,
};

/** ARGV as LEASE_ENTRY, the bit of the sink that acknowledges, the bits of all sinks. */
const ACKNOWLEDGE: Script = {
  name: 'alertSettle',
  keys: 2,
  lua: `${LEASE_ENTRY}
sinks = bit.bor(sinks, ARGV[3])
if in_outbox and bit.band(sinks, ARGV[4]) < tonumber(ARGV[4]) then return keep() end
redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[2])
`,
};

/** ARGV as LEASE_ENTRY, the bit of a sink. */
const IS_PENDING: Script = {
  name: 'alertAwaits',
  keys: 2,
  lua: `${LEASE_ENTRY}return in_outbox and bit.band(sinks, ARGV[3]) == 0 and 1`,
};

/** The delivery leases of all shards. */
export class DeliveryLeases {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #allBits: number;

  /** @param hasController whether a controller is one of the sinks */
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
   * Takes the lease of an alert; undefined when the alert is delivered, another replica holds the lease, or a backoff
   * runs.
   * @param lease milliseconds until another replica may take the lease
   * @param isAuditLogged whether the caller has written the audit line, which is recorded even if the lease is not
   *   taken
   */
  async take(
    alertId: string,
    { lease, isAuditLogged }: { lease: number; isAuditLogged: boolean },
  ): Promise<DeliveryLease | undefined> {
    const args = [alertId, lease, isAuditLogged ? 1 : 0];
    const reply = (await this.#connection.run({ script: TAKE, keys: this.#keysOf(alertId), args })) as
      | [number, string]
      | null;
    return reply === null ? undefined : { tries: reply[0], isAuditLogged: reply[1] === '1' };
  }

  /** Records that the audit line of an alert is written. */
  async recordAuditLogged(alertId: string): Promise<void> {
    await this.#connection.run({ script: RECORD_AUDIT_LOGGED, keys: this.#keysOf(alertId), args: [alertId] });
  }

  /** Ends a lease whose delivery failed: the next one can be taken after `delay` milliseconds. */
  async postpone(alertId: string, delay: number): Promise<void> {
    await this.#connection.run({ script: POSTPONE, keys: this.#keysOf(alertId), args: [alertId, Math.ceil(delay)] });
  }

  /**
   * Records that a sink has an alert, and deletes the alert once all sinks have it. Idempotent; the grant still records
   * that the alert was raised.
   */
  async acknowledge(alertId: string, sink: AlertSink): Promise<void> {
    await this.#connection.run({
      script: ACKNOWLEDGE,
      keys: this.#keysOf(alertId),
      args: [alertId, SINK_BITS[sink], this.#allBits],
    });
  }

  /** Whether an alert is in the outbox and this sink has not acknowledged it. */
  async isPendingFor(alertId: string, sink: AlertSink): Promise<boolean> {
    return (
      (await this.#connection.run({
        script: IS_PENDING,
        keys: this.#keysOf(alertId),
        args: [alertId, SINK_BITS[sink]],
      })) === 1
    );
  }

  #keysOf(alertId: string): readonly string[] {
    const shard = shardOf(alertId);
    return [this.#keys.outbox(shard), this.#keys.deliveryLeases(shard)];
  }
}
