// Not-before watermarks in Redis: plain numbers that only rise and never expire. The global one has a copy in each shard,
// and a person's lies beside that of the pair, so that reading all four takes two scripts at most and no slot is asked by
// everybody. In a Cluster each of the two reads the copy of its shard: a grant lies beside its person, and what has ended it
// must not be forgotten with another primary. With those of a person rises one that all people of the shard have in common:
// what is newer than that is ended by none of theirs, whoever it belongs to.
//
// The script that moves a grant looks at those it can reach; here is said which these are.

import type { WatermarkStore, WatermarkSubject } from '../../oauth/ports/token-stores.ts';
import { SHARDS, shardOfPerson } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { unacknowledged } from '../link/redis-errors.ts';
import type { Action, Script } from '../scripts/script.ts';

/** Copies of the global watermark written at a time. */
const BATCH = 32;

/** Lua: `raise(key, time)`. Written even where it is as high already: WAIT waits for what its own connection wrote. */
export const RAISING = `
local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end
`;

/** ARGV offset, time. */
const RAISE_EACH = `${RAISING}for _, key in ipairs(KEYS) do raise(key, ARGV[2]) end`;

const RAISE: Script = { name: 'watermarkRaise', keys: 1, lua: RAISE_EACH };

/** A person's, and what none of the shard exceeds. */
const RAISE_PERSON: Script = { name: 'watermarkRaisePerson', keys: 2, lua: RAISE_EACH };

/** Every copy of the global one at once, where slots do not matter. */
const RAISE_ALL: Script = { name: 'watermarkRaiseAll', keys: SHARDS.length, lua: RAISE_EACH };

/** Lua: `highest_watermark(first, last)` of those whose keys are KEYS from there on, to the last unless that is given. */
export const HIGHEST_WATERMARK = `
local function highest_watermark(first, last)
  local highest = 0
  for _, time in ipairs(redis.call('MGET', unpack(KEYS, first, last))) do highest = math.max(highest, time or 0) end
  return highest
end
`;

const HIGHEST = `${HIGHEST_WATERMARK}return highest_watermark(1)`;

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

  /** @throws StoreUnavailableError also when too few replicas of Redis have it: repeat it. All copies that can be are raised then */
  async raise(subject: WatermarkSubject, time: number): Promise<void> {
    const actions = this.#actions(subject).map((action) => ({ ...action, args: [time] }));
    // All of them before the first fails: another server may have taken over when it is tried again.
    for (const action of actions) this.#connection.remember(action);
    const { failed } = await attemptEach(actions, BATCH, (action) => this.#raise(action));
    if (failed[0] !== undefined) throw failed[0].error;
  }

  /** @param deadline of a request that asks for more than this */
  async read(clientUid: string, subject: string | undefined, deadline?: number): Promise<number> {
    const ofClient = { script: READ_CLIENT, keys: this.#ofClient(clientUid) };
    if (subject === undefined) return await this.#highest(ofClient, deadline);
    if (!this.crossSlot) {
      return await this.#highest({ script: READ_ALL, keys: this.#all(clientUid, subject) }, deadline);
    }
    const ofPerson = { script: READ_PERSON, keys: this.#personSlotKeys(clientUid, subject) };
    return Math.max(...(await Promise.all([this.#highest(ofClient, deadline), this.#highest(ofPerson, deadline)])));
  }

  /** Whether a script about a grant cannot look at those of the client, so that they are to be read beside it. */
  get crossSlot(): boolean {
    return !this.#connection.crossesSlots;
  }

  /** The keys of those that a script about a grant looks at: all four, or without the client's where they are apart. */
  keysFor(clientUid: string, subject: string): readonly string[] {
    return this.crossSlot ? this.#personSlotKeys(clientUid, subject) : this.#all(clientUid, subject);
  }

  /**
   * The same where it is not known whose the grant is; the last is what none of a person of the shard exceeds. A grant that is
   * not newer than that may be ended by the person's.
   */
  keysWithoutSubject(clientUid: string, shard: string): readonly string[] {
    const first = this.crossSlot ? [this.#keys.globalWatermark(shard)] : this.#ofClient(clientUid);
    return [...first, this.#keys.peopleWatermark(shard)];
  }

  #all(clientUid: string, subject: string): readonly string[] {
    return [...this.#ofClient(clientUid), ...this.#keys.personWatermarks(clientUid, subject)];
  }

  #ofClient(clientUid: string): readonly string[] {
    const shard = this.#keys.shardOfClient(clientUid);
    return [this.#keys.clientWatermark(clientUid, shard), this.#keys.globalWatermark(shard)];
  }

  #personSlotKeys(clientUid: string, subject: string): readonly string[] {
    const ofPerson = this.#keys.personWatermarks(clientUid, subject);
    return [...ofPerson, this.#keys.globalWatermark(this.#keys.shardOfKey(ofPerson[0]))];
  }

  async #highest(action: Action, deadline?: number): Promise<number> {
    return (await this.#connection.run(action, deadline)) as number;
  }

  /** What raises it to the time in `args`. */
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
        return [this.#ofPerson(subject.subject, keys.userWatermark(subject.subject))];
      case 'consent':
        return [this.#ofPerson(subject.subject, keys.consentWatermark(subject.clientUid, subject.subject))];
    }
  }

  #ofPerson(subject: string, key: string): Action {
    return { script: RAISE_PERSON, keys: [key, this.#keys.peopleWatermark(shardOfPerson(subject))] };
  }

  async #raise(action: Action): Promise<void> {
    const { acknowledged } = await this.#connection.runDurably(action);
    if (!acknowledged) throw unacknowledged(action.script);
  }
}
