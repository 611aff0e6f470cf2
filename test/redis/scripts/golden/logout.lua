-- logoutList
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

local due, all = {}, redis.call('HRANDFIELD', KEYS[1], ARGV[2], 'WITHVALUES')
for at = 2, #all, 2 do
  local read, logout = pcall(cjson.decode, all[at])
  if read and type(logout) == 'table' and (tonumber(logout.due) or 0) <= now then due[#due + 1] = all[at] end
end
return due

-- logoutPostpone
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

local json = redis.call('HGET', KEYS[1], ARGV[2])
local logout = json and cjson.decode(json)
local function keep()
  redis.call('HSET', KEYS[1], ARGV[2], cjson.encode(logout))
end

if not logout then return end
logout.due = now + ARGV[3]
keep()

-- logoutSettle
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
return redis.call('HDEL', KEYS[1], ARGV[2])

-- logoutTake
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

local json = redis.call('HGET', KEYS[1], ARGV[2])
local logout = json and cjson.decode(json)
local function keep()
  redis.call('HSET', KEYS[1], ARGV[2], cjson.encode(logout))
end

if not logout or (logout.due or 0) > now then return false end
local before = logout.tries or 0
logout.due, logout.tries = now + ARGV[3], before + 1
keep()
return before
