// The marker of each shard: what is missing when the shard was emptied. Its value is a heartbeat, by which a shard that came
// back old is known, and the history (`master_replid`) of the server that was written to: `<epoch ms> <history>`.

import type { RedisConnection, Script } from './connection.ts';
import { type RedisKeys, SHARDS } from './keys.ts';
import { CLOCK } from './script-clock.ts';

/** A shard at one moment, by what its server says. */
export interface ShardSeen {
  readonly shard: string;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly history: string;
  /** Whether the server keeps an append-only file. */
  readonly hasFile: boolean;
  readonly marker: { readonly beat: number; readonly history: string } | undefined;
  /** The shard's copy of the global watermark; 0 where there is none. */
  readonly watermark: number;
}

/** KEYS markers, then as many watermarks. */
const LOOK = `${CLOCK}
return {
  string.format('%.0f', now),
  redis.call('INFO', 'replication'):match('master_replid:(%w+)'),
  redis.call('INFO', 'persistence'):match('aof_enabled:(%d)'),
  redis.call('MGET', unpack(KEYS)),
}
`;

/** Lua: `mark(key, least)` renews a heartbeat, which never goes back. */
const MARKING = `${CLOCK}
local history = redis.call('INFO', 'replication'):match('master_replid:(%w+)')
local function mark(key, least)
  local beat = string.match(redis.call('GET', key) or '', '^%d+') or 0
  redis.call('SET', key, string.format('%.0f %s', math.max(now, beat, least), history))
end
`;

const BEAT = `${MARKING}for _, key in ipairs(KEYS) do mark(key, 0) end`;

/** KEYS as LOOK; ARGV offset, the least heartbeat, watermark. Both at once: no marker without what it stands for. */
const RESTORE = `${MARKING}
for index = 1, #KEYS / 2 do
  local watermark = KEYS[#KEYS / 2 + index]
  redis.call('SET', watermark, string.format('%.0f', math.max(redis.call('GET', watermark) or 0, ARGV[3])))
  mark(KEYS[index], ARGV[2])
end
`;

type LookReply = readonly [now: string, history: string, hasFile: string, values: readonly (string | null)[]];

export class ShardMarkers {
  /** The shards that one script may look at together. */
  readonly groups: readonly (readonly string[])[];
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #look: Script;
  readonly #beat: Script;
  readonly #restore: Script;

  constructor({ connection, keys }: { connection: RedisConnection; keys: RedisKeys }) {
    this.#connection = connection;
    this.#keys = keys;
    this.groups = connection.crossesSlots ? [SHARDS] : SHARDS.map((shard) => [shard]);
    const size = SHARDS.length / this.groups.length;
    this.#look = { name: 'markerLook', keys: 2 * size, lua: LOOK };
    this.#beat = { name: 'markerBeat', keys: size, lua: BEAT };
    this.#restore = { name: 'markerRestore', keys: 2 * size, lua: RESTORE };
  }

  /** What there is of the shards of a group. @throws StoreUnavailableError */
  async look(group: readonly string[]): Promise<readonly ShardSeen[]> {
    const reply = await this.#connection.run(this.#look, this.#keysOf(group), []);
    const [now, history, hasFile, values] = reply as LookReply;
    return group.map((shard, index) => ({
      ...{ shard, now: Number(now), history, hasFile: hasFile === '1' },
      marker: parseMarker(values[index] ?? null),
      watermark: Number(values[index + group.length] ?? 0),
    }));
  }

  /** Renews the heartbeats of a group. @throws StoreUnavailableError */
  async beat(group: readonly string[]): Promise<void> {
    await this.#connection.run(this.#beat, this.#markersOf(group), []);
  }

  /**
   * Raises a group's copies of the global watermark and writes its markers.
   * @param least that their heartbeat is from then on, whatever the server's clock says
   * @throws StoreUnavailableError
   */
  async restore(group: readonly string[], { watermark, least }: { watermark: number; least: number }): Promise<void> {
    await this.#connection.run(this.#restore, this.#keysOf(group), [least, watermark]);
  }

  #keysOf(group: readonly string[]): readonly string[] {
    return [...this.#markersOf(group), ...group.map((shard) => this.#keys.globalWatermark(shard))];
  }

  #markersOf(group: readonly string[]): readonly string[] {
    return group.map((shard) => this.#keys.marker(shard));
  }
}

function parseMarker(value: string | null): ShardSeen['marker'] {
  if (value === null) return undefined;
  const [beat, history = ''] = value.split(' ');
  return { beat: Number(beat), history };
}
