// The logins that sessions recorded, and the pending logouts of ended sessions, both in the shard of the person. Of a
// person there is one hash by `sid`: the absolute end of the session, a blank, and as JSON its logins, the oldest first.
// Of a shard there is one hash by `sid`, dot and client uid: the pending logout, as JSON.

import {
  type LogoutName,
  type LogoutStore,
  type PendingLogout,
  RECORDED_LOGINS,
} from '../../oauth/ports/logout-store.ts';
import { shardOfPerson } from '../../oauth/values/shard.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { RedisOutbox } from './outbox.ts';
import { split } from './spaced-list.ts';

/**
 * Lua: `note_login(key, sid, ends, login)` appends to the logins of a session and returns the one that makes room, as
 * `MemoryLogins.note` does, and `keep_logins(key, sid, ends)` gives them another end. Both need `CLOCK`.
 */
export const NOTING = `
local function keep_recorded(key, sid, ends, json)
  redis.call('HSET', key, sid, string.format('%.0f ', ends) .. json)
  if redis.call('PTTL', key) < ends - now then expire(key, ends) end
end
-- The place of the oldest login of those that have the most with their value of a field.
local function oldest_of_most(logins, field)
  local counts, most = {}, 1
  for _, each in ipairs(logins) do counts[each[field]] = (counts[each[field]] or 0) + 1 end
  for at, each in ipairs(logins) do
    if counts[each[field]] > counts[logins[most][field]] then most = at end
  end
  return most
end
local function note_login(key, sid, ends, login)
  local recorded = redis.call('HGET', key, sid)
  local logins = recorded and cjson.decode(string.match(recorded, ' (.*)')) or {}
  logins[#logins + 1] = login
  local leaving
  if #logins > ${RECORDED_LOGINS} then
    local namespace, own, places = logins[oldest_of_most(logins, 6)][6], {}, {}
    for at, each in ipairs(logins) do
      if each[6] == namespace then own[#own + 1], places[#places + 1] = each, at end
    end
    leaving = table.remove(logins, places[oldest_of_most(own, 1)])
  end
  keep_recorded(key, sid, ends, cjson.encode(logins))
  return leaving
end
local function keep_logins(key, sid, ends)
  local recorded = redis.call('HGET', key, sid)
  if recorded then keep_recorded(key, sid, ends, string.match(recorded, ' (.*)')) end
end
-- Those of sessions that have expired.
local function forget_logins(key)
  local all = redis.call('HGETALL', key)
  for at = 1, #all, 2 do
    if tonumber(string.match(all[at + 1], '%d+')) <= now then redis.call('HDEL', key, all[at]) end
  end
end
`;

/**
 * Lua: `owe(logins, logouts, subject, sid)` makes of the logins of a session pending logouts, as JSON each; `owe_all` of
 * all sessions of the person whose newest login was at or before `latest`. Both need `CLOCK`.
 */
export const OWING = `
local function owe(logins, logouts, subject, sid, latest)
  local recorded = redis.call('HGET', logins, sid)
  if not recorded then return {} end
  local clients, grants, macs, pending = {}, {}, {}, {}
  local all = cjson.decode(string.match(recorded, ' (.*)'))
  if latest and all[#all][5] > latest then return {} end
  for _, login in ipairs(all) do
    local uid, grant, survives, mac = unpack(login)
    if not grants[uid] then
      clients[#clients + 1] = uid
      grants[uid] = {}
    end
    if survives == 0 then table.insert(grants[uid], grant) end
    macs[uid] = mac
  end
  redis.call('HDEL', logins, sid)
  for _, uid in ipairs(clients) do
    local logout = cjson.encode({
      clientUid = uid, subject = subject, sid = sid, grants = table.concat(grants[uid], ' '), since = now, mac = macs[uid],
    })
    redis.call('HSETNX', logouts, sid .. '.' .. uid, logout)
    pending[#pending + 1] = logout
  end
  return pending
end
local function owe_all(logins, logouts, subject, latest)
  for _, sid in ipairs(redis.call('HKEYS', logins)) do owe(logins, logouts, subject, sid, latest) end
end
`;

/** A record of the hash; `grants` holds digests without their shard, separated by blanks. */
interface PendingRecord extends Pick<PendingLogout, 'clientUid' | 'subject' | 'sid' | 'since'> {
  readonly grants: string;
  /** Empty for none. */
  readonly mac: string;
}

/** The pending logout in the reply of a script. */
export function pendingIn(json: string): PendingLogout {
  return pendingOf(JSON.parse(json) as PendingRecord);
}

function pendingOf({ clientUid, subject, sid, since, grants, mac }: PendingRecord): PendingLogout {
  const shard = shardOfPerson(subject);
  const grantIds = split(grants).map((id) => `${shard}.${id}`);
  const logout = { clientUid, subject, sid, grantIds, since };
  return mac === '' ? logout : { ...logout, mac };
}

/** {@link LogoutStore} in Redis. A record that no version of grantry can have written is none. */
export function redisLogouts({ connection, keys }: StoreParts): LogoutStore {
  return new RedisOutbox<PendingLogout, LogoutName>({
    connection,
    keyOf: (shard) => keys.logouts(shard),
    placeOf: ({ clientUid, subject, sid }) => ({ shard: shardOfPerson(subject), name: `${sid}.${clientUid}` }),
    entryOf: ({ record }) => record && pendingOf(record as unknown as PendingRecord),
  });
}
