// The Lua script that begins a grant, and makes room for it among the grants of its person at its client. These are in a
// sorted set, whose scores are their order. `memory/grants-of-person.ts` is the same in TypeScript.

import { KEPT_CODES, KEPT_GRANTS, MOST_RECORDS } from '../../oauth/ports/grant-store.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { HISTORY } from '../scripts/server-history.ts';
import { NOTING } from '../stores/logouts.ts';
import { RECORD_USE } from '../stores/uses.ts';
import { WATERMARKS } from '../stores/watermarks.ts';

/** KEYS of {@link ISSUE}: grant, index, three watermarks, session, the person's sessions, logins and uses. */
const OWN_KEYS = 9;

/**
 * Lua: `make_room()` removes the grants that make room for a new one, and returns the ids of those that were not revoked.
 * The grants are KEYS after the own ones, the oldest first. A grant that came to the index since the caller read it
 * counts as a code.
 */
const MAKE_ROOM = `
local function make_room()
  local codes, revoked, active, unknown = {}, {}, {}, redis.call('ZCARD', KEYS[2])
  for at = ${OWN_KEYS + 1}, #KEYS do
    local key = KEYS[at]
    local id = string.sub(key, -43)
    if key ~= KEYS[1] and redis.call('ZSCORE', KEYS[2], id) then
      unknown = unknown - 1
      local born, kept, generation, is_revoked = unpack(redis.call('HMGET', key, 'b', 'k', 'g', 'z'))
      if not born or now >= born + kept * 1000 then redis.call('ZREM', KEYS[2], id)
      elseif not generation then codes[#codes + 1] = key
      elseif is_revoked then revoked[#revoked + 1] = key
      else active[#active + 1] = key end
    end
  end
  local evicted = {}
  local function remove(from, count, is_named)
    for at = 1, math.min(count, #from) do
      local id = string.sub(from[at], -43)
      redis.call('DEL', from[at])
      redis.call('ZREM', KEYS[2], id)
      if is_named then evicted[#evicted + 1] = id end
    end
  end
  remove(codes, #codes + unknown + 1 - ${KEPT_CODES}, true)
  local over = #revoked + #active - ${KEPT_GRANTS}
  remove(revoked, over, false)
  remove(active, over - #revoked, true)
  return evicted
end
`;

/**
 * KEYS grant, the index of its person's grants at its client, then the user, consent and global watermark of its shard,
 * the session, and of its person sessions, logins and uses; ARGV offset, code lifetime, retention, authTime, SHA-256 of
 * the secret, client uid, of a login session id, `sid`, `1` where it survives or `0`, MAC and namespace, else five empty
 * texts, then name and value of each other field of the record. Replies with the outcome, the id of the grant that ends
 * because its session notes its login no more, or an empty text, and the ids of the evicted grants. Where the index is
 * full nothing is written, and the reply is `full`, a blank text, and the ids in it: {@link ISSUE_EVICTING} declares their
 * grants.
 */
export const ISSUE: Script = {
  name: 'grantIssue',
  keys: OWN_KEYS,
  lua: `${CLOCK}${HISTORY}${WATERMARKS}${MAKE_ROOM}${NOTING}${RECORD_USE}
-- Idempotent: an existing grant keeps its state.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'issued' } end
if tonumber(ARGV[4]) <= highest(watermarks(3, 5)) then return { 'outdated' } end
local client_uid, session, session_ends = ARGV[6], ARGV[7], nil
if session ~= '' then
  local idle
  session_ends, idle = unpack(redis.call('HMGET', KEYS[6], 'e', 'u'))
  if not idle or now >= tonumber(idle) or not redis.call('ZSCORE', KEYS[7], session) then return { 'signed_out' } end
end
local is_evicting = #KEYS > ${OWN_KEYS}
if not is_evicting and redis.call('ZCARD', KEYS[2]) >= ${MOST_RECORDS} then
  return { 'full', '', unpack(redis.call('ZRANGE', KEYS[2], 0, ${MOST_RECORDS - 1})) }
end
local fields = { 'b', now, 'k', math.ceil(ARGV[2] / 1000), 't', now - ARGV[4], 'x', string.sub(ARGV[5], 1, 27), 'm', history() }
for at = 12, #ARGV, 2 do
  local name, value = ARGV[at], ARGV[at + 1]
  for from = 1, math.max(1, #value), 63 do
    fields[#fields + 1] = from == 1 and name or name .. (from - 1) / 63
    fields[#fields + 1] = string.sub(value, from, from + 62)
  end
end
-- First: while the memory is full this is refused, and nothing is removed.
redis.call('HSET', KEYS[1], unpack(fields))
expire(KEYS[1], now + ARGV[2])
local forgotten = ''
if session ~= '' then
  local login = { client_uid, string.sub(KEYS[1], -43), tonumber(ARGV[9]), ARGV[10], now, ARGV[11] }
  local leaving = note_login(KEYS[8], ARGV[8], tonumber(session_ends), login)
  if leaving and leaving[3] == 0 then forgotten = leaving[2] end
end
local evicted = is_evicting and make_room() or {}
local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
redis.call('ZADD', KEYS[2], newest + 1, string.sub(KEYS[1], -43))
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then expire(KEYS[2], now + ARGV[3]) end
record_use(KEYS[9], client_uid)
return { 'issued', forgotten, unpack(evicted) }
`,
};

/** {@link ISSUE} where the index is full. KEYS as there, then the grants in the index; KEYS[1] fills them up. */
export const ISSUE_EVICTING: Script = { ...ISSUE, name: 'grantIssueEvicting', keys: OWN_KEYS + MOST_RECORDS };
