// Alerts that wait to be delivered: one hash per shard, written in the action that revokes (`grant-scripts.ts`). An alert's
// grant and type are its only name, so each is in here once. Who delivers lists a shard and deletes what every sink has.

import type { Alert } from '../oauth/ports.ts';
import type { RedisConnection, Script } from './connection.ts';
import { parseAlert } from './grants.ts';
import { type RedisKeys, shardOf } from './keys.ts';
import { CLOCK } from './script-clock.ts';

/** An alert not yet delivered to every sink. */
export interface OutboxEntry {
  readonly alert: Alert;
  /** Milliseconds since it was raised, by the clock of Redis. */
  readonly age: number;
}

/** ARGV offset, the most entries: drawn at random, so that those which cannot be delivered hide no others. */
const LIST: Script = {
  name: 'outboxList',
  keys: 1,
  lua: `${CLOCK}return { now, redis.call('HRANDFIELD', KEYS[1], ARGV[2], 'WITHVALUES') }`,
};

const DELETE: Script = { name: 'outboxDelete', keys: 1, lua: "redis.call('HDEL', KEYS[1], ARGV[2])" };

/** The outboxes of all shards. */
export class Outbox {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: { connection: RedisConnection; keys: RedisKeys }) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** Up to `limit` alerts of one shard, in no order. */
  async list(shard: string, limit = 100): Promise<readonly OutboxEntry[]> {
    const reply = await this.#connection.run(LIST, [this.#keys.outbox(shard)], [limit]);
    const [now, flat] = reply as [number, string[]];
    const alerts = flat.filter((_, index) => index % 2 === 1).map(parseAlert);
    return alerts.map((alert) => ({ alert, age: now - alert.time }));
  }

  /** Forgets an alert by its id. Idempotent; its grant remembers that it was raised. */
  async delete(alertId: string): Promise<void> {
    await this.#connection.run(DELETE, [this.#keys.outbox(shardOf(alertId))], [alertId]);
  }
}
