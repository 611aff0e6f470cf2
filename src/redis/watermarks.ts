// Not-before watermarks in Redis: plain numbers that only rise and never expire. The global one has a copy in each shard,
// and a person's lies beside that of the pair, so that reading all four takes two scripts at most and no slot is asked by
// everybody.

import type { WatermarkStore, WatermarkSubject } from '../oauth/token-stores.ts';
import { attemptEach } from './attempt-each.ts';
import type { RedisConnection } from './connection.ts';
import { type RedisKeys, SHARDS } from './keys.ts';
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

/** Every copy of the global one at once, where slots do not matter. */
const RAISE_ALL: Script = { name: 'watermarkRaiseAll', keys: SHARDS.length, lua: RAISING };

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
  return [...clientWatermarks(keys, clientUid), ...keys.personWatermarks(clientUid, subject)];
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
    const actions = this.#actions(this.#keysOf(subject));
    // All of them before the first fails: another server may have taken over when it is tried again.
    for (const { script, keys } of actions) this.#connection.remember(script, keys, [time]);
    const { failed } = await attemptEach(actions, BATCH, (action) => this.#raise(action, time));
    if (failed[0] !== undefined) throw failed[0].error;
  }

  async read(clientUid: string, subject: string | undefined): Promise<number> {
    const ofClient = clientWatermarks(this.#keys, clientUid);
    if (subject === undefined) return this.#highest(READ_PAIR, ofClient);
    const ofPerson = this.#keys.personWatermarks(clientUid, subject);
    if (this.#connection.crossesSlots) return this.#highest(READ_ALL, [...ofClient, ...ofPerson]);
    return Math.max(...(await Promise.all([ofClient, ofPerson].map((keys) => this.#highest(READ_PAIR, keys)))));
  }

  async #highest(script: Script, keys: readonly string[]): Promise<number> {
    return (await this.#connection.run(script, keys, [])) as number;
  }

  #actions(keys: readonly string[]): readonly Action[] {
    if (keys.length === RAISE_ALL.keys && this.#connection.crossesSlots) return [{ script: RAISE_ALL, keys }];
    return keys.map((key) => ({ script: RAISE, keys: [key] }));
  }

  async #raise({ script, keys }: Action, time: number): Promise<void> {
    const { acknowledged } = await this.#connection.runDurably(script, keys, [time]);
    if (!acknowledged) throw unacknowledged(script);
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
