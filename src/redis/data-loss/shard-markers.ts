// The marker of each shard, which is missing after the shard was emptied. Its value, `<epoch ms> <history>`, is a
// heartbeat, by which a shard restored from old data is detected, and the history (`master_replid`) of the server that
// was written to.

import { SHARDS } from '../../oauth/values/shard.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { HISTORY } from '../scripts/server-history.ts';
import { RAISING } from '../stores/watermarks.ts';

/** A shard at one moment, as its server reports it. */
export interface ObservedShard {
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
const INSPECT = `${CLOCK}${HISTORY}
return {
  string.format('%.0f', now),
  history(),
  redis.call('INFO', 'persistence'):match('aof_enabled:(%d)'),
  redis.call('MGET', unpack(KEYS)),
}
`;

/**
 * Lua: refuses where another server answers than the one that was inspected (ARGV[2] is its history): what the
 * inspected server lacks says nothing about this one.
 */
const SAME_SERVER = `${CLOCK}${HISTORY}
if history() ~= ARGV[2] then return redis.error_reply('TRYAGAIN another server was inspected') end
`;

/** Lua: `mark(key, least)` renews a heartbeat, which never goes back. */
const MARKING = `${SAME_SERVER}
local function mark(key, least)
  local beat = string.match(redis.call('GET', key) or '', '^%d+') or 0
  redis.call('SET', key, string.format('%.0f %s', math.max(now, beat, least), ARGV[2]))
end
`;

/** A shard that was emptied since the inspection gets no heartbeat, which would hide the loss. */
const BEAT = `${MARKING}for _, key in ipairs(KEYS) do if redis.call('EXISTS', key) == 1 then mark(key, 0) end end`;

/** KEYS watermarks; ARGV offset, history, watermark. */
const RAISE = `${SAME_SERVER}${RAISING}for _, key in ipairs(KEYS) do raise(key, ARGV[3]) end`;

/** KEYS as INSPECT; ARGV offset, history, watermark, the least heartbeat. Atomic: no marker without the raised watermark. */
const RESTORE = `${MARKING}${RAISING}
for index = 1, #KEYS / 2 do
  raise(KEYS[#KEYS / 2 + index], ARGV[3])
  mark(KEYS[index], ARGV[4])
end
`;

type InspectReply = readonly [now: string, history: string, hasFile: string, values: readonly (string | null)[]];

/** Shards that one script inspected together, and so on one server. */
export type ShardGroup = readonly ObservedShard[];

/** Writes only to the server that was inspected: where another one answers by now, a write fails as if Redis were unavailable. */
export class ShardMarkers {
  /** The shards that one script may inspect together. */
  readonly groups: readonly (readonly string[])[];
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #inspect: Script;
  readonly #beat: Script;
  readonly #raise: Script;
  readonly #restore: Script;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
    this.groups = connection.allowsCrossSlot ? [SHARDS] : SHARDS.map((shard) => [shard]);
    const size = SHARDS.length / this.groups.length;
    this.#inspect = { name: 'markerLook', keys: 2 * size, lua: INSPECT };
    this.#beat = { name: 'markerBeat', keys: size, lua: BEAT, allowsOom: true };
    this.#raise = { name: 'markerRaise', keys: size, lua: RAISE, allowsOom: true };
    this.#restore = { name: 'markerRestore', keys: 2 * size, lua: RESTORE, allowsOom: true };
  }

  /** Inspects the shards of a group. @throws StoreUnavailableError */
  async inspect(shards: readonly string[]): Promise<ShardGroup> {
    const keys = [...this.#markersOf(shards), ...this.#watermarksOf(shards)];
    const reply = await this.#connection.run({ script: this.#inspect, keys });
    const [now, history, hasFile, values] = reply as InspectReply;
    return shards.map((shard, index) => ({
      shard,
      now: Number(now),
      history,
      hasFile: hasFile === '1',
      marker: parseMarker(values[index] ?? null),
      watermark: Number(values[index + shards.length] ?? 0),
    }));
  }

  /** Renews the heartbeats that a group has. @throws StoreUnavailableError */
  async beat(group: ShardGroup): Promise<void> {
    await this.#write(this.#beat, group, this.#markersOf(namesOf(group)), []);
  }

  /** Raises a group's copies of the global watermark. @throws StoreUnavailableError */
  async raise(group: ShardGroup, watermark: number): Promise<void> {
    await this.#write(this.#raise, group, this.#watermarksOf(namesOf(group)), [watermark]);
  }

  /**
   * Raises a group's copies of the global watermark and writes its markers.
   * @param least the lowest heartbeat to write, whatever the server's clock says
   * @throws StoreUnavailableError
   */
  async restore(group: ShardGroup, { watermark, least }: { watermark: number; least: number }): Promise<void> {
    const shards = namesOf(group);
    const keys = [...this.#markersOf(shards), ...this.#watermarksOf(shards)];
    await this.#write(this.#restore, group, keys, [watermark, least]);
  }

  async #write(
    script: Script,
    group: ShardGroup,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<void> {
    await this.#connection.run({ script, keys, args: [group[0]?.history ?? '', ...args] });
  }

  #markersOf(shards: readonly string[]): readonly string[] {
    return shards.map((shard) => this.#keys.marker(shard));
  }

  #watermarksOf(shards: readonly string[]): readonly string[] {
    return shards.map((shard) => this.#keys.globalWatermark(shard));
  }
}

function namesOf(group: ShardGroup): readonly string[] {
  return group.map(({ shard }) => shard);
}

function parseMarker(value: string | null): ObservedShard['marker'] {
  if (value === null) return undefined;
  const [beat, history = ''] = value.split(' ');
  return { beat: Number(beat), history };
}
