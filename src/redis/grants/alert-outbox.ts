// The outboxes of alerts. The script that revokes a grant writes its alert into `raised` (`grant-record.ts`). Once its
// audit line is written, the alert moves on to the outbox of the webhook. An alert is named by its grant and type, so each
// is stored once; it lies in the shard of its grant.

import type { Alert } from '../../oauth/ports/audit.ts';
import { shardOf } from '../../oauth/values/shard.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Action, Script } from '../scripts/script.ts';
import { type Listed, type Place, RedisOutbox } from '../stores/outbox.ts';
import { LETTERS } from './grant-record.ts';
import { writtenAlert } from './grant-replies.ts';

/** An entry of an outbox of alerts. */
export interface QueuedAlert extends Place {
  /** Undefined when no version of grantry can have written the entry. */
  readonly alert: Alert | undefined;
  /** Milliseconds since the alert was raised, by the clock of Redis. */
  readonly age: number;
}

/**
 * Lua over KEYS grant, outbox of raised alerts and ARGV offset, alert id, the alert: restores the revocation where a
 * fail-over has lost it, and the grant's record of the alert; `is_lost` says whether that record was missing. If it was
 * not, the alert is in an outbox or was delivered.
 */
const RESTORING = `${LETTERS}
local alert, is_lost = cjson.decode(ARGV[3]), false
local letter = LETTERS[alert.type]
if letter and redis.call('EXISTS', KEYS[1]) == 1 then
  if alert.action == 'grant_revoked' then redis.call('HSET', KEYS[1], 'z', 1) end
  local raised = redis.call('HGET', KEYS[1], 'e') or ''
  is_lost = not string.find(raised, letter, 1, true)
  if is_lost then redis.call('HSET', KEYS[1], 'e', raised .. letter) end
end
`;

const RAISE_AGAIN: Script = {
  name: 'alertRaiseAgain',
  keys: 2,
  allowsOom: true,
  lua: `${RESTORING}if is_lost then redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3]) end`,
};

/** KEYS as above, then the outbox of the webhook; ARGV as above, then `1` where it gets the alert. */
const FORWARD: Script = {
  name: 'alertForward',
  keys: 3,
  allowsOom: true,
  lua: `${RESTORING}
if redis.call('HDEL', KEYS[2], ARGV[2]) == 0 and not is_lost then return end
if ARGV[4] == '1' then redis.call('HSETNX', KEYS[3], ARGV[2], ARGV[3]) end
`,
};

/** The action that restores an alert after a fail-over, to be logged. */
export function raiseAgain(keys: RedisKeys, alert: Alert): Action {
  return { script: RAISE_AGAIN, keys: restoredKeys(keys, alert), args: [alert.id, JSON.stringify(alert)] };
}

function restoredKeys(keys: RedisKeys, { grantId }: Alert): readonly string[] {
  return [keys.grant(grantId), keys.raisedAlerts(shardOf(grantId))];
}

/** The outboxes of all shards. */
export class AlertOutbox {
  /** Alerts whose audit line may not be written. */
  readonly raised: RedisOutbox<QueuedAlert, Place>;
  readonly webhook: RedisOutbox<QueuedAlert, Place>;
  /** Of an earlier version; read and emptied. */
  readonly controller: RedisOutbox<QueuedAlert, Place>;
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
    const outbox = (keyOf: (shard: string) => string) =>
      new RedisOutbox<QueuedAlert, Place>({ connection, keyOf, placeOf: (place) => place, entryOf: queuedAlert });
    this.raised = outbox((shard) => keys.raisedAlerts(shard));
    this.webhook = outbox((shard) => keys.webhookAlerts(shard));
    this.controller = outbox((shard) => keys.controllerAlerts(shard));
  }

  /**
   * Hands an alert whose audit line is written to the webhook, where there is one. Idempotent. The replay does the same once Redis recovers, and
   * after a fail-over, so that a lost alert causes no second line.
   */
  async forward(alert: Alert, hasWebhook: boolean): Promise<void> {
    const forwarding: Action = {
      script: FORWARD,
      keys: [...restoredKeys(this.#keys, alert), this.#keys.webhookAlerts(shardOf(alert.grantId))],
      args: [alert.id, JSON.stringify(alert), hasWebhook ? 1 : 0],
    };
    this.#connection.recordForReplay(forwarding);
    await this.#connection.run(forwarding);
  }
}

/** The place of an alert in its outboxes. */
export function placeOfAlert(alertId: string): Place {
  return { shard: shardOf(alertId), name: alertId };
}

/** The string fields that every version of grantry writes into an alert. */
const TEXTS = ['type', 'clientUid', 'clientId', 'subject', 'grantId', 'address', 'action'] as const;

function queuedAlert({ shard, name, record, now }: Listed): QueuedAlert {
  const alert = record && writtenAlert(record as unknown as Alert);
  const isAlert =
    alert?.id === name &&
    Number.isFinite(alert.time) &&
    TEXTS.every((text) => typeof alert[text] === 'string') &&
    alert.grantId.startsWith(`${shard}.`) &&
    name.startsWith(`${alert.grantId}.`);
  return isAlert ? { shard, name, alert, age: now - alert.time } : { shard, name, alert: undefined, age: 0 };
}
