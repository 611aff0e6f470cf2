// The user store in Redis: one hash per shard with a field per local user of the shard. The value is the recorded
// credential, followed by a blank and the time since when the user is absent, if it is. The scripts end in one action
// what the person holds: everything of a person is in the same shard.

import { type RecordedUser, USER_ABSENCE, type UserStore } from '../../oauth/ports/login-stores.ts';
import { SHARDS, shardOfPerson } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { OWING } from './logouts.ts';
import { RAISING } from './watermarks.ts';

/** Lua: `recorded_credential(key, subject)`: the recorded credential, or nil, and the time since when the user is absent. */
export const RECORDED_CREDENTIAL = `
local function recorded_credential(key, subject)
  local recorded = redis.call('HGET', key, subject)
  if recorded then return string.match(recorded, '^([^ ]*) ?(%d*)$') end
end
`;

/**
 * Lua: `end_all(withdraws)` raises the user watermark (KEYS[2]) and the upper bound of the shard's people (KEYS[3]) to
 * now, ends all sessions (KEYS[4]), which owes the logouts of the person's logins (KEYS[6], KEYS[7]), and withdraws the
 * consents (KEYS[5]) and forgets the uses (KEYS[8]) where that is wanted; its value is a reply.
 */
const ENDING = `${CLOCK}${RAISING}${RECORDED_CREDENTIAL}${OWING}
local time = string.format('%.0f', now)
local function end_all(withdraws)
  raise(KEYS[2], time)
  raise(KEYS[3], time)
  redis.call('DEL', KEYS[4])
  owe_all(KEYS[6], KEYS[7], ARGV[2])
  if withdraws then redis.call('DEL', KEYS[5], KEYS[8]) end
  return { 'ended', time, withdraws and '1' or '0' }
end
local credential, since = recorded_credential(KEYS[1], ARGV[2])
local is_absent = credential and since ~= ''
local is_long_absent = is_absent and now - since >= ${USER_ABSENCE}
`;

/**
 * KEYS the shard's users, user watermark, upper bound, the person's sessions, consents and logins, the shard's logouts, the
 * person's uses; ARGV offset, subject, credential, the expected recorded one. Replies with the outcome, and of an end with its time and `1` if it withdrew the
 * consents.
 */
const ACKNOWLEDGE: Script = {
  name: 'userSettle',
  keys: 8,
  allowsOom: true,
  lua: `${ENDING}
if credential and credential ~= ARGV[3] and credential ~= ARGV[4] then return { 'outdated' } end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
if not credential then return { 'recorded' } end
if credential == ARGV[3] and not is_long_absent then return { 'unchanged' } end
return end_all(is_absent)
`,
};

/** KEYS as {@link ACKNOWLEDGE}; ARGV offset, subject. Replies as it. */
const ACKNOWLEDGE_ABSENT: Script = {
  name: 'userSettleAbsent',
  keys: 8,
  allowsOom: true,
  lua: `${ENDING}
if not credential then return { 'unknown' } end
if not is_absent then redis.call('HSET', KEYS[1], ARGV[2], credential .. ' ' .. time) end
if not is_long_absent then return { 'absent' } end
redis.call('HDEL', KEYS[1], ARGV[2])
return end_all(true)
`,
};

/**
 * KEYS user watermark, upper bound, the person's consents and logins, the shard's logouts; ARGV offset, the time of an end,
 * `1` if it withdrew the consents, subject. For replay: a consent that was given later stays, and a later login. The next comparison restores what was recorded.
 */
const END_AGAIN: Script = {
  name: 'userEndAgain',
  keys: 5,
  allowsOom: true,
  lua: `${CLOCK}${RAISING}${OWING}
raise(KEYS[1], ARGV[2])
raise(KEYS[2], ARGV[2])
owe_all(KEYS[4], KEYS[5], ARGV[4], tonumber(ARGV[2]))
if ARGV[3] ~= '1' then return end
local all = redis.call('HGETALL', KEYS[3])
for at = 1, #all, 2 do
  if cjson.decode(all[at + 1]).givenAt <= tonumber(ARGV[2]) then redis.call('HDEL', KEYS[3], all[at]) end
end
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

  async list(): Promise<ReadonlyMap<string, RecordedUser>> {
    const keys = SHARDS.map((shard) => this.#keys.users(shard));
    const actions = this.#connection.allowsCrossSlot
      ? [{ script: LIST_ALL, keys }]
      : keys.map((key) => ({ script: LIST, keys: [key] }));
    const { values, failed } = await attemptEach(actions, BATCH, (action) => this.#connection.run(action));
    if (values.length === 0 && failed[0] !== undefined) throw failed[0].error;
    const recorded = new Map<string, RecordedUser>();
    for (const flat of values as readonly string[][]) {
      for (let at = 0; at < flat.length; at += 2) {
        const [credential = '', since] = flat[at + 1]?.split(' ') ?? [];
        recorded.set(flat[at] as string, { credential, isAbsent: since !== undefined });
      }
    }
    return recorded;
  }

  async record(
    subject: string,
    credential: string,
    expected = '',
  ): Promise<'recorded' | 'unchanged' | 'outdated' | 'ended'> {
    return (await this.#run(ACKNOWLEDGE, subject, [credential, expected])) as
      | 'recorded'
      | 'unchanged'
      | 'outdated'
      | 'ended';
  }

  async recordAbsence(subject: string): Promise<'unknown' | 'absent' | 'ended'> {
    return (await this.#run(ACKNOWLEDGE_ABSENT, subject)) as 'unknown' | 'absent' | 'ended';
  }

  async #run(script: Script, subject: string, more: readonly string[] = []): Promise<string> {
    const shard = shardOfPerson(subject);
    const watermarks = [this.#keys.userWatermark(subject), this.#keys.peopleWatermark(shard)];
    const consents = this.#keys.consentsOfUser(subject);
    const logins = [this.#keys.loginsOfUser(subject), this.#keys.logouts(shard)];
    const held = [this.#keys.sessionsOfUser(subject), consents, ...logins, this.#keys.usesOfUser(subject)];
    const keys = [this.#keys.users(shard), ...watermarks, ...held];
    const reply = await this.#connection.run({ script, keys, args: [subject, ...more] });
    const [outcome, time = '', withdrew = ''] = reply as readonly [string, string?, string?];
    if (outcome === 'ended') {
      const again = { script: END_AGAIN, keys: [...watermarks, consents, ...logins], args: [time, withdrew, subject] };
      this.#connection.recordForReplay(again);
    }
    return outcome;
  }
}
