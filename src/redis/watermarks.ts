// Not-before watermarks in Redis: plain numbers that only rise and never expire. The global one has a copy in each shard,
// and a person's lies beside that of the pair, so that reading all four takes two scripts at most and no slot is asked by
// everybody.

import type { WatermarkStore, WatermarkSubject } from '../oauth/ports.ts';
import type { RedisConnection, Script } from './connection.ts';
import { type RedisKeys, SHARDS } from './keys.ts';
import { unacknowledged } from './unanswered.ts';

/** Copies of the global watermark written at a time. */
const BATCH = 32;

const RAISE: Script = {
  name: 'watermarkRaise',
  keys: 1,
  lua: `
if tonumber(ARGV[2]) > tonumber(redis.call('GET', KEYS[1]) or 0) then redis.call('SET', KEYS[1], ARGV[2]) end
`,
};

/** Lua: `highest_watermark(first)` of those whose keys are KEYS from there on. */
export const HIGHEST_WATERMARK = `
local function highest_watermark(first)
  local highest = 0
  for _, time in ipairs(redis.call('MGET', unpack(KEYS, first))) do highest = math.max(highest, time or 0) end
  return highest
end
`;

const HIGHEST = `${HIGHEST_WATERMARK}return highest_watermark(1)`;

const READ_PAIR: Script = { name: 'watermarkReadPair', keys: 2, lua: HIGHEST };
const READ_ALL: Script = { name: 'watermarkReadAll', keys: 4, lua: HIGHEST };

/** The keys of all that {@link WatermarkStore.read} looks at; in two slots. */
export function watermarkKeys(keys: RedisKeys, clientUid: string, subject: string): readonly string[] {
  return [...clientWatermarks(keys, clientUid), ...personWatermarks(keys, clientUid, subject)];
}

function clientWatermarks(keys: RedisKeys, clientUid: string): readonly string[] {
  return [keys.clientWatermark(clientUid), keys.globalWatermark(keys.shardOfClient(clientUid))];
}

function personWatermarks(keys: RedisKeys, clientUid: string, subject: string): readonly string[] {
  return [keys.userWatermark(subject), keys.consentWatermark(clientUid, subject)];
}

/** {@link WatermarkStore} in Redis. */
export class RedisWatermarks implements WatermarkStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: { connection: RedisConnection; keys: RedisKeys }) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** @throws StoreUnavailableError also when too few replicas have it: repeat it */
  async raise(subject: WatermarkSubject, time: number): Promise<void> {
    const keys = this.#keysOf(subject);
    // All of them before the first fails: another server may have taken over when it is tried again.
    for (const key of keys) this.#connection.remember(RAISE, [key], [time]);
    for (let from = 0; from < keys.length; from += BATCH) {
      await Promise.all(keys.slice(from, from + BATCH).map((key) => this.#raise(key, time)));
    }
  }

  async read(clientUid: string, subject: string | undefined): Promise<number> {
    const ofClient = clientWatermarks(this.#keys, clientUid);
    if (subject === undefined) return this.#highest(READ_PAIR, ofClient);
    const ofPerson = personWatermarks(this.#keys, clientUid, subject);
    if (this.#connection.crossesSlots) return this.#highest(READ_ALL, [...ofClient, ...ofPerson]);
    return Math.max(...(await Promise.all([ofClient, ofPerson].map((keys) => this.#highest(READ_PAIR, keys)))));
  }

  async #highest(script: Script, keys: readonly string[]): Promise<number> {
    return (await this.#connection.run(script, keys, [])) as number;
  }

  async #raise(key: string, time: number): Promise<void> {
    const { acknowledged } = await this.#connection.runDurably(RAISE, [key], [time]);
    if (!acknowledged) throw unacknowledged(RAISE);
  }

  #keysOf(subject: WatermarkSubject): readonly string[] {
    switch (subject.kind) {
      case 'global':
        return SHARDS.map((shard) => this.#keys.globalWatermark(shard));
      case 'client':
        return [this.#keys.clientWatermark(subject.clientUid)];
      case 'user':
        return [this.#keys.userWatermark(subject.subject)];
      case 'consent':
        return [this.#keys.consentWatermark(subject.clientUid, subject.subject)];
    }
  }
}
