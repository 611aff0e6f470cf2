// The user store in Redis: one hash per shard with a field per local user of the shard. The value is the noted
// credential, followed by a blank and the time since when the user is absent, if it is. The scripts end in one action
// what the person holds: everything of a person is in the same shard.

import { type NotedUser, USER_ABSENCE, type UserStore } from '../../oauth/ports/login-stores.ts';
import { SHARDS, shardOfPerson } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { unacknowledged } from '../link/redis-errors.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { RAISING } from './watermarks.ts';

/** Lua: `noted_credential(key, subject)`: the noted credential, or nil, and the time since when the user is absent. */
export const NOTED_CREDENTIAL = `
local function noted_credential(key, subject)
  local noted = redis.call('HGET', key, subject)
  if noted then return string.match(noted, '^([^ ]*) ?(%d*)$') end
end
`;

/**
 * Lua: `end_all(withdraws)` raises the user watermark (KEYS[2]) and the upper bound of the shard's people (KEYS[3]) to
 * now, ends all sessions (KEYS[4]), and withdraws the consents (KEYS[5]) where that is wanted.
 */
const ENDING = `${CLOCK}${RAISING}${NOTED_CREDENTIAL}
local time = string.format('%.0f', now)
local function end_all(withdraws)
  raise(KEYS[2], time)
  raise(KEYS[3], time)
  redis.call('DEL', KEYS[4])
  if withdraws then redis.call('DEL', KEYS[5]) end
end
local credential, since = noted_credential(KEYS[1], ARGV[2])
local is_absent = credential and since ~= ''
local is_long_absent = is_absent and now - since >= ${USER_ABSENCE}
`;

/**
 * KEYS the shard's users, user watermark, upper bound, the person's sessions and consents; ARGV offset, subject,
 * credential. Replies with the outcome, the time and the credential noted before. Writes also what is noted already:
 * WAIT covers only the writes of its own connection.
 */
const SETTLE: Script = {
  name: 'userSettle',
  keys: 5,
  allowsOom: true,
  lua: `${ENDING}
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
if not credential then return { 'noted', time, '' } end
if credential == ARGV[3] and not is_long_absent then return { 'unchanged', time, credential } end
end_all(is_absent)
return { 'ended', time, credential }
`,
};

/** KEYS as {@link SETTLE}; ARGV offset, subject. Replies with the outcome, the time and the credential noted before. */
const END_ABSENT: Script = {
  name: 'userEndAbsent',
  keys: 5,
  allowsOom: true,
  lua: `${ENDING}
if not is_absent then return { 'present', time, '' } end
if not is_long_absent then return { 'absent', time, '' } end
end_all(true)
redis.call('HDEL', KEYS[1], ARGV[2])
return { 'ended', time, credential }
`,
};

/**
 * KEYS the shard's users, user watermark, upper bound; ARGV offset, subject, the time of an end, the credential noted
 * before and the one after it (empty: none). For replay: a credential that was noted since stays.
 */
const END_AGAIN: Script = {
  name: 'userEndAgain',
  keys: 3,
  allowsOom: true,
  lua: `${RAISING}${NOTED_CREDENTIAL}
raise(KEYS[2], ARGV[3])
raise(KEYS[3], ARGV[3])
if noted_credential(KEYS[1], ARGV[2]) ~= ARGV[4] then return end
if ARGV[5] == '' then redis.call('HDEL', KEYS[1], ARGV[2]) else redis.call('HSET', KEYS[1], ARGV[2], ARGV[5]) end
`,
};

/** KEYS the shard's users; ARGV offset, subject. */
const MARK_ABSENT: Script = {
  name: 'userMarkAbsent',
  keys: 1,
  lua: `${CLOCK}${NOTED_CREDENTIAL}
local credential, since = noted_credential(KEYS[1], ARGV[2])
if credential and since == '' then redis.call('HSET', KEYS[1], ARGV[2], credential .. ' ' .. string.format('%.0f', now)) end
`,
};

/** KEYS the users of each shard. Replies with subjects and values in turn. */
const LISTED = `
local all = {}
for _, key in ipairs(KEYS) do
  for _, value in ipairs(redis.call('HGETALL', key)) do all[#all + 1] = value end
end
return all
`;

const LIST: Script = { name: 'userList', keys: 1, lua: LISTED };

/** All shards in one script, where Redis is not a Cluster. */
const LIST_ALL: Script = { name: 'userListAll', keys: SHARDS.length, lua: LISTED };

/** Shards of a Cluster read at a time. */
const BATCH = 16;

/** {@link UserStore} in Redis. */
export class RedisUsers implements UserStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async list(): Promise<ReadonlyMap<string, NotedUser>> {
    const keys = SHARDS.map((shard) => this.#keys.users(shard));
    const actions = this.#connection.allowsCrossSlot
      ? [{ script: LIST_ALL, keys }]
      : keys.map((key) => ({ script: LIST, keys: [key] }));
    const { values, failed } = await attemptEach(actions, BATCH, (action) => this.#connection.run(action));
    if (failed[0] !== undefined) throw failed[0].error;
    const noted = new Map<string, NotedUser>();
    for (const flat of values as readonly string[][]) {
      for (let at = 0; at < flat.length; at += 2) {
        const [credential = '', since] = flat[at + 1]?.split(' ') ?? [];
        noted.set(flat[at] as string, { credential, isAbsent: since !== undefined });
      }
    }
    return noted;
  }

  async settle(subject: string, credential: string): Promise<'noted' | 'unchanged' | 'ended'> {
    return (await this.#run(SETTLE, subject, credential)) as 'noted' | 'unchanged' | 'ended';
  }

  async markAbsent(subject: string): Promise<void> {
    await this.#connection.run({
      script: MARK_ABSENT,
      keys: [this.#keys.users(shardOfPerson(subject))],
      args: [subject],
    });
  }

  async endAbsent(subject: string): Promise<'present' | 'absent' | 'ended'> {
    return (await this.#run(END_ABSENT, subject)) as 'present' | 'absent' | 'ended';
  }

  async #run(script: Script, subject: string, credential?: string): Promise<string> {
    const ending = [
      this.#keys.users(shardOfPerson(subject)),
      this.#keys.userWatermark(subject),
      this.#keys.peopleWatermark(shardOfPerson(subject)),
    ];
    const keys = [...ending, this.#keys.sessionsOfUser(subject), this.#keys.consentsOfUser(subject)];
    const args = credential === undefined ? [subject] : [subject, credential];
    const { reply, acknowledged } = await this.#connection.runDurably({ script, keys, args });
    const [outcome, time, before] = reply as readonly [string, string, string];
    if (outcome === 'ended') {
      const again = [subject, Number(time), before, credential ?? ''];
      this.#connection.recordForReplay({ script: END_AGAIN, keys: ending, args: again });
    }
    if (!acknowledged) throw unacknowledged(script);
    return outcome;
  }
}
