// The outbox: alerts that are not delivered to every sink yet. One hash per shard, written by the script that revokes
// the grant (`grant-scripts.ts`). An alert is named by its grant and type, so each is stored once. A delivering replica
// lists a shard; `delivery-leases.ts` deletes an alert once every sink has it.

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
  /** Milliseconds since the alert was raised, by the clock of Redis. */
  readonly age: number;
}

/** The content of one shard's outbox. */
export interface OutboxContent {
  readonly entries: readonly OutboxEntry[];
  /** The ids of entries that are not alerts. */
  readonly unreadable: readonly string[];
}

/**
 * KEYS outbox; ARGV offset, the maximum number of entries. Replies with a random sample, so that entries which cannot
 * be delivered do not hide the others.
 */
const LIST: Script = {
  name: 'outboxList',
  keys: 1,
  lua: `${CLOCK}return { now, redis.call('HRANDFIELD', KEYS[1], ARGV[2], 'WITHVALUES') }`,
};

const DISCARD: Script = { name: 'outboxDiscard', keys: 1, lua: "return redis.call('HDEL', KEYS[1], ARGV[2])" };

/** The string fields that every version of grantry writes into an alert. */
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

  /** Deletes an entry, readable or not. @returns whether there was one */
  async discard(shard: string, id: string): Promise<boolean> {
    return (await this.#connection.run({ script: DISCARD, keys: [this.#keys.outbox(shard)], args: [id] })) === 1;
  }

  /**
   * Records that the audit line of an alert is written, so that the replay after a fail-over, which raises the alert
   * again, causes no second line.
   */
  recordAuditLoggedForReplay(alert: Alert): void {
    this.#connection.recordForReplay(raiseAgain(this.#keys, alert, { isAuditLogged: true }));
  }
}

/** The alert of an entry; undefined when no version of grantry can have written the entry. */
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
