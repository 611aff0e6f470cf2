// The watermark store in Redis: numbers that only rise and never expire. The global watermark has a copy in each shard,
// and a person's watermark is in the same slot as those of the person's consents, so that two scripts at most read all
// four and no slot is hot. In a Cluster each of the two scripts reads the global copy of its own shard: a grant is in
// the shard of its person, and the loss of another primary must not lose the watermark that ended it. Each shard also
// holds the upper bound of the watermarks of its people: a grant that is newer than the bound is ended by none of them.
//
// A script about a grant reads the watermarks in its own slot; this file determines which these are.

import type { WatermarkStore, WatermarkSubject } from '../../oauth/ports/token-stores.ts';
import { SHARDS, shardOfPerson } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { unacknowledged } from '../link/redis-errors.ts';
import type { Action, Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** Copies of the global watermark written at a time. */
const BATCH = 32;

/**
 * Lua: `raise(key, time)`. Writes even if the watermark is as high already: WAIT covers only the writes of its own
 * connection.
 */
export const RAISING = `
local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end
`;

/** ARGV offset, time; the present one where it is empty. Replies with the time. */
const RAISE_EACH = `${CLOCK}${RAISING}
local raised_to = ARGV[2] == '' and string.format('%.0f', now) or ARGV[2]
for _, key in ipairs(KEYS) do raise(key, raised_to) end
return raised_to
`;

const RAISE: Script = { name: 'watermarkRaise', keys: 1, lua: RAISE_EACH, allowsOom: true };

/** KEYS a person's watermark, the upper bound of the shard's people. */
const RAISE_PERSON: Script = { name: 'watermarkRaisePerson', keys: 2, lua: RAISE_EACH, allowsOom: true };

/** All copies of the global watermark in one script, where Redis is not a Cluster. */
const RAISE_ALL: Script = { name: 'watermarkRaiseAll', keys: SHARDS.length, lua: RAISE_EACH, allowsOom: true };

/**
 * Lua: `watermarks(first, last)`, those of KEYS `first` to `last`, which is the last key by default; `highest(times)`, the
 * highest of them, 0 where none is set.
 */
export const WATERMARKS = `
local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end
`;

const HIGHEST = `${WATERMARKS}return highest(watermarks(1))`;

const READ_CLIENT: Script = { name: 'watermarkReadClient', keys: 2, lua: HIGHEST };
const READ_PERSON: Script = { name: 'watermarkReadPerson', keys: 3, lua: HIGHEST };
const READ_ALL: Script = { name: 'watermarkReadAll', keys: 4, lua: HIGHEST };

/** {@link WatermarkStore} in Redis. */
export class RedisWatermarks implements WatermarkStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /**
   * @throws StoreUnavailableError also when too few replicas of Redis acknowledge the write; the caller may retry. All
   *   copies that can be raised are raised then
   */
  async raise(subject: WatermarkSubject, time?: number): Promise<void> {
    const actions = this.#actions(subject).map((action) => ({ ...action, args: [time ?? ''] }));
    // All of them before the first can fail: a fail-over may have happened by the time of the retry. A replay of one
    // without a time would take a later time.
    if (time !== undefined) for (const action of actions) this.#connection.recordForReplay(action);
    const { failed } = await attemptEach(actions, BATCH, (action) => this.#raise(action));
    if (failed[0] !== undefined) throw failed[0].error;
  }

  /** @param deadline that of the request, if the read is one of its steps; a new one otherwise */
  async read(clientUid: string, subject: string | undefined, deadline?: number): Promise<number> {
    const ofClient = { script: READ_CLIENT, keys: this.#clientKeys(clientUid) };
    if (subject === undefined) return await this.#highest(ofClient, deadline);
    if (!this.crossSlot) {
      return await this.#highest({ script: READ_ALL, keys: this.#all(clientUid, subject) }, deadline);
    }
    const ofPerson = { script: READ_PERSON, keys: this.keysOfPerson(clientUid, subject) };
    return Math.max(...(await Promise.all([this.#highest(ofClient, deadline), this.#highest(ofPerson, deadline)])));
  }

  /**
   * Whether a script about a grant cannot read the client's watermark (CROSSSLOT, in a Cluster), so that the caller
   * reads it separately.
   */
  get crossSlot(): boolean {
    return !this.#connection.allowsCrossSlot;
  }

  /** The keys that a script about a grant reads: all four, or those in the person's slot in a Cluster. */
  keysFor(clientUid: string, subject: string): readonly string[] {
    return this.crossSlot ? this.keysOfPerson(clientUid, subject) : this.#all(clientUid, subject);
  }

  /**
   * The keys that a script reads while the grant's subject is unknown. The last is the upper bound of the watermarks of
   * the shard's people: a grant that is not newer may be ended by a watermark of its person.
   */
  keysWithoutSubject(clientUid: string, shard: string): readonly string[] {
    const first = this.crossSlot ? [this.#keys.globalWatermark(shard)] : this.#clientKeys(clientUid);
    return [...first, this.#keys.peopleWatermark(shard)];
  }

  /** The keys of the user, the consent and the global watermark in the person's shard. */
  keysOfPerson(clientUid: string, subject: string): readonly string[] {
    const ofPerson = this.#keys.personWatermarks(clientUid, subject);
    return [...ofPerson, this.#keys.globalWatermark(this.#keys.shardOfKey(ofPerson[0]))];
  }

  #all(clientUid: string, subject: string): readonly string[] {
    return [...this.#clientKeys(clientUid), ...this.#keys.personWatermarks(clientUid, subject)];
  }

  #clientKeys(clientUid: string): readonly string[] {
    const shard = this.#keys.shardOfClient(clientUid);
    return [this.#keys.clientWatermark(clientUid, shard), this.#keys.globalWatermark(shard)];
  }

  async #highest(action: Action, deadline?: number): Promise<number> {
    return (await this.#connection.run(action, deadline)) as number;
  }

  /** The actions that raise a watermark to the time in `args`. */
  #actions(subject: WatermarkSubject): readonly Action[] {
    const keys = this.#keys;
    switch (subject.kind) {
      case 'global': {
        const copies = SHARDS.map((shard) => keys.globalWatermark(shard));
        if (!this.crossSlot) return [{ script: RAISE_ALL, keys: copies }];
        return copies.map((key) => ({ script: RAISE, keys: [key] }));
      }
      case 'client':
        return [{ script: RAISE, keys: [keys.clientWatermark(subject.clientUid)] }];
      case 'user':
        return [this.#raisePersonAction(subject.subject, keys.userWatermark(subject.subject))];
      case 'consent':
        return [this.#raisePersonAction(subject.subject, keys.consentWatermark(subject.clientUid, subject.subject))];
    }
  }

  #raisePersonAction(subject: string, key: string): Action {
    return { script: RAISE_PERSON, keys: [key, this.#keys.peopleWatermark(shardOfPerson(subject))] };
  }

  async #raise(action: Action): Promise<void> {
    const { reply, acknowledged } = await this.#connection.runDurably(action);
    this.#connection.recordForReplay({ ...action, args: [Number(reply)] });
    if (!acknowledged) throw unacknowledged(action.script);
  }
}
