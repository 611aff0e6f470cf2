-- userEndAgain
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

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
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

raise(KEYS[1], ARGV[2])
raise(KEYS[2], ARGV[2])
owe_all(KEYS[4], KEYS[5], ARGV[4], tonumber(ARGV[2]))
if ARGV[3] ~= '1' then return end
local all = redis.call('HGETALL', KEYS[3])
for at = 1, #all, 2 do
  if cjson.decode(all[at + 1]).givenAt <= tonumber(ARGV[2]) then redis.call('HDEL', KEYS[3], all[at]) end
end

-- userList
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local all = {}
for _, key in ipairs(KEYS) do
  for _, value in ipairs(redis.call('HGETALL', key)) do all[#all + 1] = value end
end
return all

-- userListAll
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local all = {}
for _, key in ipairs(KEYS) do
  for _, value in ipairs(redis.call('HGETALL', key)) do all[#all + 1] = value end
end
return all

-- userSettle
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

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end

local function recorded_credential(key, subject)
  local recorded = redis.call('HGET', key, subject)
  if recorded then return string.match(recorded, '^([^ ]*) ?(%d*)$') end
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
local is_long_absent = is_absent and now - since >= 3600000

if credential and credential ~= ARGV[3] and credential ~= ARGV[4] then return { 'outdated' } end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
if not credential then return { 'recorded' } end
if credential == ARGV[3] and not is_long_absent then return { 'unchanged' } end
return end_all(is_absent)

-- userSettleAbsent
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

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end

local function recorded_credential(key, subject)
  local recorded = redis.call('HGET', key, subject)
  if recorded then return string.match(recorded, '^([^ ]*) ?(%d*)$') end
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
local is_long_absent = is_absent and now - since >= 3600000

if not credential then return { 'unknown' } end
if not is_absent then redis.call('HSET', KEYS[1], ARGV[2], credential .. ' ' .. time) end
if not is_long_absent then return { 'absent' } end
redis.call('HDEL', KEYS[1], ARGV[2])
return end_all(true)
