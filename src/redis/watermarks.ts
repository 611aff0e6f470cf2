// Not-before watermarks in Redis: plain numbers that only rise and never expire. The global one has a copy in each shard,
// and a person's lies beside that of the pair, so that reading all four takes two scripts at most and no slot is asked by
// everybody. In a Cluster each of the two reads the copy of its shard: a grant lies beside its person, and what has ended it
// must not be forgotten with another primary. With those of a person rises one that all people of the shard have in common:
// what is newer than that is ended by none of theirs, whoever it belongs to.

import { SHARDS, shardOfPerson } from '../oauth/shard.ts';
import type { WatermarkStore, WatermarkSubject } from '../oauth/token-stores.ts';
import { attemptEach } from './attempt-each.ts';
import type { RedisConnection } from './connection.ts';
import type { RedisKeys } from './keys.ts';
import type { Script } from './script.ts';
import { unacknowledged } from './unanswered.ts';

/** Copies of the global watermark written at a time. */
const BATCH = 32;

/** ARGV offset, time. Written even where it is as high already: WAIT waits for what its own connection wrote. */
const RAISING = `
for _, key in ipairs(KEYS) do
  local time = redis.call('GET', key)
  redis.call('SET', key, tonumber(ARGV[2]) > tonumber(time or 0) and ARGV[2] or time)
end
`;

const RAISE: Script = { name: 'watermarkRaise', keys: 1, lua: RAISING };

/** A person's, and what none of the shard exceeds. */
const RAISE_PERSON: Script = { name: 'watermarkRaisePerson', keys: 2, lua: RAISING };

/** Every copy of the global one at once, where slots do not matter. */
const RAISE_ALL: Script = { name: 'watermarkRaiseAll', keys: SHARDS.length, lua: RAISING };

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

/** The keys of all that {@link WatermarkStore.read} looks at; in two slots. */
export function watermarkKeys(keys: RedisKeys, clientUid: string, subject: string): readonly string[] {
  return [...clientWatermarks(keys, clientUid), ...keys.personWatermarks(clientUid, subject)];
}

/**
 * The keys of the client's and of the global one, and of what no watermark of a person exceeds: where slots do not matter,
 * {@link WatermarkStore.read} answers nothing higher than the highest of them. @param shard of the person
 */
export function watermarkBounds(keys: RedisKeys, clientUid: string, shard: string): readonly string[] {
  return [...clientWatermarks(keys, clientUid), keys.peopleWatermark(shard)];
}

function clientWatermarks(keys: RedisKeys, clientUid: string): readonly string[] {
  const shard = keys.shardOfClient(clientUid);
  return [keys.clientWatermark(clientUid, shard), keys.globalWatermark(shard)];
}

interface Action {
  readonly script: Script;
  readonly keys: readonly string[];
}

/** {@link WatermarkStore} in Redis. */
export class RedisWatermarks implements WatermarkStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: { connection: RedisConnection; keys: RedisKeys }) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** @throws StoreUnavailableError also when too few replicas have it: repeat it. Each copy that can be raised is raised then */
  async raise(subject: WatermarkSubject, time: number): Promise<void> {
    const actions = this.#actions(subject);
    // All of them before the first fails: another server may have taken over when it is tried again.
    for (const { script, keys } of actions) this.#connection.remember(script, keys, [time]);
    const { failed } = await attemptEach(actions, BATCH, (action) => this.#raise(action, time));
    if (failed[0] !== undefined) throw failed[0].error;
  }

  /** @param deadline of a request that asks for more than this */
  async read(clientUid: string, subject: string | undefined, deadline?: number): Promise<number> {
    const highest = async (script: Script, keys: readonly string[]) =>
      (await this.#connection.run(script, keys, [], deadline)) as number;
    const ofClient = clientWatermarks(this.#keys, clientUid);
    if (subject === undefined) return highest(READ_CLIENT, ofClient);
    const ofPerson = this.#keys.personWatermarks(clientUid, subject);
    if (this.#connection.crossesSlots) return highest(READ_ALL, [...ofClient, ...ofPerson]);
    const besidePerson = this.#keys.globalWatermark(this.#keys.shardOfKey(ofPerson[0]));
    const both = [highest(READ_CLIENT, ofClient), highest(READ_PERSON, [...ofPerson, besidePerson])];
    return Math.max(...(await Promise.all(both)));
  }

  #actions(subject: WatermarkSubject): readonly Action[] {
    const keys = this.#keys;
    switch (subject.kind) {
      case 'global': {
        const copies = SHARDS.map((shard) => keys.globalWatermark(shard));
        if (this.#connection.crossesSlots) return [{ script: RAISE_ALL, keys: copies }];
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

  async #raise({ script, keys }: Action, time: number): Promise<void> {
    const { acknowledged } = await this.#connection.runDurably(script, keys, [time]);
    if (!acknowledged) throw unacknowledged(script);
  }
}
