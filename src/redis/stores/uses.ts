// The store of uses in Redis: one hash per person with a field per client uid, which holds the times of the first and the
// last use. No write is replayed after a fail-over: nothing is permitted or refused by a use.

import { type ClientUse, USE_INTERVAL, USE_MEMORY, type UseStore } from '../../oauth/ports/login-stores.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** Lua: `remembered(text)`: the times of the first and the last use, or nothing of one that is forgotten. */
const REMEMBERED = `
local function remembered(text)
  local first, last = string.match(text or '', '^(%d+) (%d+)$')
  if last and now - last < ${USE_MEMORY} then return first, last end
end
`;

/** Lua: `record_use(key, client_uid)` records a use in the hash of a person. Also deletes what is forgotten. */
export const RECORD_USE = `${REMEMBERED}
local function record_use(key, client_uid)
  local first, last = remembered(redis.call('HGET', key, client_uid))
  if last and now - last < ${USE_INTERVAL} then return end
  local time = string.format('%.0f', now)
  redis.call('HSET', key, client_uid, (first or time) .. ' ' .. time)
  expire(key, now + ${USE_MEMORY})
  local all = redis.call('HGETALL', key)
  for at = 1, #all, 2 do
    if not remembered(all[at + 1]) then redis.call('HDEL', key, all[at]) end
  end
end
`;

/** ARGV offset, client uid. */
const NOTE: Script = { name: 'useNote', keys: 1, lua: `${CLOCK}${RECORD_USE}record_use(KEYS[1], ARGV[2])` };

/** ARGV offset, client uid. */
const FORGET: Script = { name: 'useForget', keys: 1, lua: "redis.call('HDEL', KEYS[1], ARGV[2])" };

/** Replies with client uid, first and last use in turn. */
const LIST: Script = {
  name: 'useList',
  keys: 1,
  lua: `${CLOCK}${REMEMBERED}
local all = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #all, 2 do
  local first, last = remembered(all[at + 1])
  if last then
    for _, each in ipairs({ all[at], first, last }) do found[#found + 1] = each end
  end
end
return found
`,
};

/** {@link UseStore} in Redis. */
export class RedisUses implements UseStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async note(subject: string, clientUid: string): Promise<void> {
    await this.#connection.run({ script: NOTE, keys: [this.#keys.usesOfUser(subject)], args: [clientUid] });
  }

  async forget(subject: string, clientUid: string): Promise<void> {
    await this.#connection.run({ script: FORGET, keys: [this.#keys.usesOfUser(subject)], args: [clientUid] });
  }

  async list(subject: string): Promise<readonly ClientUse[]> {
    const keys = [this.#keys.usesOfUser(subject)];
    const flat = (await this.#connection.run({ script: LIST, keys })) as readonly string[];
    const uses: ClientUse[] = [];
    for (let at = 0; at < flat.length; at += 3) {
      const [clientUid = '', first, last] = flat.slice(at, at + 3);
      uses.push({ clientUid, firstUsed: Number(first), lastUsed: Number(last) });
    }
    return uses;
  }
}
