-- markerBeat
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

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end

if history() ~= ARGV[2] then return redis.error_reply('TRYAGAIN another server was inspected') end

local function mark(key, least)
  local beat = string.match(redis.call('GET', key) or '', '^%d+') or 0
  redis.call('SET', key, string.format('%.0f %s', math.max(now, beat, least), ARGV[2]))
end
for _, key in ipairs(KEYS) do if redis.call('EXISTS', key) == 1 then mark(key, 0) end end

-- markerLook
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

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end

return {
  string.format('%.0f', now),
  history(),
  redis.call('INFO', 'persistence'):match('aof_enabled:(%d)'),
  redis.call('MGET', unpack(KEYS)),
}

-- markerRaise
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

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end

if history() ~= ARGV[2] then return redis.error_reply('TRYAGAIN another server was inspected') end

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end
for _, key in ipairs(KEYS) do raise(key, ARGV[3]) end

-- markerRestore
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

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end

if history() ~= ARGV[2] then return redis.error_reply('TRYAGAIN another server was inspected') end

local function mark(key, least)
  local beat = string.match(redis.call('GET', key) or '', '^%d+') or 0
  redis.call('SET', key, string.format('%.0f %s', math.max(now, beat, least), ARGV[2]))
end

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end

for index = 1, #KEYS / 2 do
  raise(KEYS[#KEYS / 2 + index], ARGV[3])
  mark(KEYS[index], ARGV[4])
end
