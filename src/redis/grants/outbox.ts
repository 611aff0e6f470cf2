// Alerts that wait to be delivered: one hash per shard, written in the action that revokes (`grant-scripts.ts`). An alert's
// grant and type are its only name, so each is in here once. Who delivers lists a shard; `delivery-leases.ts` deletes what every
// sink has.

import type { Alert } from '../../oauth/ports/audit.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { parseAlert } from './grant-replies.ts';
import { raiseAgain } from './grant-scripts.ts';

/** An alert not yet delivered to every sink. */
export interface OutboxEntry {
  readonly alert: Alert;
  /** Milliseconds since it was raised, by the clock of Redis. */
  readonly age: number;
}

/** What is in the outbox of a shard. */
export interface OutboxContent {
  readonly entries: readonly OutboxEntry[];
  /** The names of entries that are no alerts. */
  readonly unreadable: readonly string[];
}

/** ARGV offset, the most entries: drawn at random, so that those which cannot be delivered hide no others. */
const LIST: Script = {
  name: 'outboxList',
  keys: 1,
  lua: `${CLOCK}return { now, redis.call('HRANDFIELD', KEYS[1], ARGV[2], 'WITHVALUES') }`,
};

const DISCARD: Script = { name: 'outboxDiscard', keys: 1, lua: "return redis.call('HDEL', KEYS[1], ARGV[2])" };

/** What every version writes into an alert as text. */
const TEXTS = ['type', 'clientUid', 'clientId', 'subject', 'grantId', 'address', 'action'] as const;

/** The outboxes of all shards. */
export class Outbox {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** Up to `limit` entries of one shard, in no order. */
  async list(shard: string, limit = 100): Promise<OutboxContent> {
    const reply = await this.#connection.run({ script: LIST, keys: [this.#keys.outbox(shard)], args: [limit] });
    const [now, flat] = reply as [number, string[]];
    const entries: OutboxEntry[] = [];
    const unreadable: string[] = [];
    for (let at = 0; at < flat.length; at += 2) {
      const [id = '', json = ''] = flat.slice(at, at + 2);
      const alert = readAlert(id, json);
      if (alert === undefined || !id.startsWith(`${shard}.`)) unreadable.push(id);
      else entries.push({ alert, age: now - alert.time });
    }
    return { entries, unreadable };
  }

  /** Deletes an entry, whatever it is. @returns whether there was one */
  async discard(shard: string, id: string): Promise<boolean> {
    return (await this.#connection.run({ script: DISCARD, keys: [this.#keys.outbox(shard)], args: [id] })) === 1;
  }

  /** The caller has written the audit line of an alert: where a fail-over raises that again, nobody else needs to. */
  rememberTold(alert: Alert): void {
    this.#connection.remember(raiseAgain(this.#keys, alert, { isTold: true }));
  }
}

/** Undefined for what no version has written. */
function readAlert(id: string, json: string): Alert | undefined {
  try {
    const alert = parseAlert(json);
    const isAlert = alert.id === id && Number.isFinite(alert.time) && TEXTS.every((name) => isText(alert[name]));
    return isAlert ? alert : undefined;
  } catch {
    return undefined;
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}
