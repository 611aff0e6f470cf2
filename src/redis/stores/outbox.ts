// An outbox in Redis: one hash per shard, its records as JSON by name. The scripts that cause a delivery write the
// records. A delivery adds two members: `due`, from when the record can be taken, and `tries`, how often it was. A lease
// is a visibility timeout: the replica that has taken a record alone delivers it until then.

import type { Outbox } from '../../oauth/ports/outbox.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** Lua: `decoded(json)` is the record, or nil where the text is none. */
const DECODED = `${CLOCK}
local function decoded(json)
  local is_json, record = pcall(cjson.decode, json)
  return is_json and type(record) == 'table' and record or nil
end
`;

/**
 * KEYS outbox; ARGV offset, the maximum number. Replies with the time and a random sample, so that records which stay do
 * not hide the others. What cannot be decoded is always due.
 */
const LIST: Script = {
  name: 'outboxList',
  keys: 1,
  lua: `${DECODED}
local due, all = { now }, redis.call('HRANDFIELD', KEYS[1], ARGV[2], 'WITHVALUES')
for at = 1, #all, 2 do
  local record = decoded(all[at + 1])
  if not record or (tonumber(record.due) or 0) <= now then
    due[#due + 1] = all[at]
    due[#due + 1] = all[at + 1]
  end
end
return due
`,
};

/** Lua: `record`, that of ARGV[2] in KEYS[1], or nil; `keep(due)` writes it. */
const RECORD = `${DECODED}
local record = decoded(redis.call('HGET', KEYS[1], ARGV[2]) or '')
local function keep(due)
  record.due = due
  redis.call('HSET', KEYS[1], ARGV[2], cjson.encode(record))
end
`;

/** KEYS outbox; ARGV offset, name, lease. Replies with the number of tries before, or nothing. */
const TAKE: Script = {
  name: 'outboxTake',
  keys: 1,
  allowsOom: true,
  lua: `${RECORD}
if not record or (tonumber(record.due) or 0) > now then return false end
local before = tonumber(record.tries) or 0
record.tries = before + 1
keep(now + ARGV[3])
return before
`,
};

/** KEYS outbox; ARGV offset, name, pause. */
const POSTPONE: Script = {
  name: 'outboxPostpone',
  keys: 1,
  allowsOom: true,
  lua: `${RECORD}if record then keep(now + ARGV[3]) end`,
};

/** KEYS outbox; ARGV offset, name. */
const ACKNOWLEDGE: Script = { name: 'outboxSettle', keys: 1, lua: "return redis.call('HDEL', KEYS[1], ARGV[2])" };

/** Where a record is: the field of a shard's hash. */
export interface Place {
  readonly shard: string;
  readonly name: string;
}

/** A record of a list. */
export interface Listed extends Place {
  /** As it was written first; undefined where it is no JSON object. */
  readonly record: Readonly<Record<string, unknown>> | undefined;
  /** The time of Redis. */
  readonly now: number;
}

export interface RedisOutboxParts<Entry extends Name, Name> {
  readonly connection: RedisConnection;
  /** The key of a shard's hash. */
  readonly keyOf: (shard: string) => string;
  readonly placeOf: (entry: Name) => Place;
  /** The entry of a record; undefined, or an error, where it is none: it is not listed. */
  readonly entryOf: (listed: Listed) => Entry | undefined;
}

/** {@link Outbox} in Redis. */
export class RedisOutbox<Entry extends Name, Name = Entry> implements Outbox<Entry, Name> {
  readonly #parts: RedisOutboxParts<Entry, Name>;

  constructor(parts: RedisOutboxParts<Entry, Name>) {
    this.#parts = parts;
  }

  async list(shard: string, limit = 100): Promise<readonly Entry[]> {
    const { connection, keyOf } = this.#parts;
    const reply = (await connection.run({ script: LIST, keys: [keyOf(shard)], args: [limit] })) as [
      number,
      ...string[],
    ];
    const [now, ...flat] = reply;
    const entries: Entry[] = [];
    for (let at = 0; at < flat.length; at += 2) {
      const [name = '', json = ''] = flat.slice(at, at + 2);
      const entry = this.#entryOf({ shard, name, now, record: parsed(json) });
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }

  async take(entry: Name, lease: number): Promise<number | undefined> {
    return ((await this.#run(TAKE, entry, lease)) as number | null) ?? undefined;
  }

  async postpone(entry: Name, pause: number): Promise<void> {
    await this.#run(POSTPONE, entry, Math.ceil(pause));
  }

  async acknowledge(entry: Name): Promise<boolean> {
    return (await this.#run(ACKNOWLEDGE, entry)) === 1;
  }

  #entryOf(listed: Listed): Entry | undefined {
    try {
      return this.#parts.entryOf(listed);
    } catch {
      return undefined;
    }
  }

  #run(script: Script, entry: Name, ...more: readonly number[]): Promise<unknown> {
    const { connection, keyOf, placeOf } = this.#parts;
    const { shard, name } = placeOf(entry);
    return connection.run({ script, keys: [keyOf(shard)], args: [name, ...more] });
  }
}

/** The record without what deliveries have added. */
function parsed(json: string): Listed['record'] {
  try {
    const { due: _due, tries: _tries, ...record } = JSON.parse(json) as Record<string, unknown>;
    return record;
  } catch {
    return undefined;
  }
}
