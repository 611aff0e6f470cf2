-- sessionCreate
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local function recorded_credential(key, subject)
  local recorded = redis.call('HGET', key, subject)
  if recorded then return string.match(recorded, '^([^ ]*) ?(%d*)$') end
end

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
  if #logins > 100 then
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

local credential = ARGV[7]
if credential ~= '' then
  local recorded = recorded_credential(KEYS[3], ARGV[4])
  if recorded and recorded ~= credential then return false end
  if not recorded then redis.call('HSET', KEYS[3], ARGV[4], credential) end
end
local ends = now + ARGV[5]
local idle = math.min(now + ARGV[6], ends)
local time = string.format('%.0f', now)
local sid, former = ARGV[8], ARGV[9]
local person, former_idle = unpack(redis.call('HMGET', KEYS[5], 's', 'u'))
local lives_on = former ~= '' and person == ARGV[4] and now < tonumber(former_idle) and redis.call('ZSCORE', KEYS[2], former)
if lives_on then sid = ARGV[10] end
redis.call('HSET', KEYS[1], 'v', ARGV[3], 's', ARGV[4], 'b', time, 'e', ends, 'u', idle, 'i', sid)
expire(KEYS[1], idle)
if lives_on then
  redis.call('DEL', KEYS[5])
  redis.call('ZREM', KEYS[2], former)
  keep_logins(KEYS[4], sid, ends)
end
forget_logins(KEYS[4])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], ends, ARGV[2])
expire(KEYS[2], redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
return { time, sid }

-- sessionEnd
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

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

local sid = ARGV[4] ~= '' and ARGV[4] or redis.call('HGET', KEYS[1], 'i') or ''
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
return owe(KEYS[3], KEYS[4], ARGV[3], sid)

-- sessionEndAll
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

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

local ended = redis.call('ZRANGE', KEYS[1], '(' .. now, '+inf', 'BYSCORE')
redis.call('DEL', KEYS[1])
owe_all(KEYS[2], KEYS[3], ARGV[2])
return ended

-- sessionIndexed
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end
return redis.call('ZRANGE', KEYS[1], '+inf', '(' .. now, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[2])

-- sessionLook
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local session, born, ends, idle, sid, mac = unpack(redis.call('HMGET', KEYS[1], 'v', 'b', 'e', 'u', 'i', 'c'))
if not session or now >= tonumber(idle) or not redis.call('ZSCORE', KEYS[2], ARGV[2]) then return false end
if tonumber(born) <= tonumber(redis.call('GET', KEYS[3]) or 0) then return false end
return { session, born, sid, mac or '' }

-- sessionPerson
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
return redis.call('HGET', KEYS[1], 's')

-- sessionSeal
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'c', ARGV[2]) end

-- sessionUse
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local session, born, ends, idle, sid, mac = unpack(redis.call('HMGET', KEYS[1], 'v', 'b', 'e', 'u', 'i', 'c'))
if not session or now >= tonumber(idle) or not redis.call('ZSCORE', KEYS[2], ARGV[2]) then return false end
if tonumber(born) <= tonumber(redis.call('GET', KEYS[3]) or 0) then return false end

local function is_out_of_memory(reply)
  return type(reply) == 'table' and string.find(reply.err or '', '^-?OOM') ~= nil
end

local renewed = math.min(now + cjson.decode(session).idleLifetime, ends)
local written = redis.pcall('HSET', KEYS[1], 'u', renewed)
if type(written) == 'number' then
  expire(KEYS[1], renewed)
elseif not is_out_of_memory(written) then
  return written
end
return { session, born, sid, mac or '' }
