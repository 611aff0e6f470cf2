-- alertAwaits
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

local in_outbox = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
local due, tries, logged, sinks = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '', '^(%d+):(%d+):([01]):?([0-3]?)$')
due, tries, logged, sinks = tonumber(due or 0), tonumber(tries or 0), logged or '0', tonumber(sinks) or 0
local function keep()
  redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d:%s:%d', due, tries, logged, sinks))
  redis.call('PEXPIRE', KEYS[2], 604800000)
end
return in_outbox and bit.band(sinks, ARGV[3]) == 0 and 1

-- alertPostpone
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

local in_outbox = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
local due, tries, logged, sinks = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '', '^(%d+):(%d+):([01]):?([0-3]?)$')
due, tries, logged, sinks = tonumber(due or 0), tonumber(tries or 0), logged or '0', tonumber(sinks) or 0
local function keep()
  redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d:%s:%d', due, tries, logged, sinks))
  redis.call('PEXPIRE', KEYS[2], 604800000)
end
due = now + ARGV[3] if in_outbox then keep() end

-- alertSettle
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

local in_outbox = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
local due, tries, logged, sinks = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '', '^(%d+):(%d+):([01]):?([0-3]?)$')
due, tries, logged, sinks = tonumber(due or 0), tonumber(tries or 0), logged or '0', tonumber(sinks) or 0
local function keep()
  redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d:%s:%d', due, tries, logged, sinks))
  redis.call('PEXPIRE', KEYS[2], 604800000)
end

sinks = bit.bor(sinks, ARGV[3])
if in_outbox and bit.band(sinks, ARGV[4]) < tonumber(ARGV[4]) then return keep() end
redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[2])

-- alertTake
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

local in_outbox = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
local due, tries, logged, sinks = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '', '^(%d+):(%d+):([01]):?([0-3]?)$')
due, tries, logged, sinks = tonumber(due or 0), tonumber(tries or 0), logged or '0', tonumber(sinks) or 0
local function keep()
  redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d:%s:%d', due, tries, logged, sinks))
  redis.call('PEXPIRE', KEYS[2], 604800000)
end

if not in_outbox then
  redis.call('HDEL', KEYS[2], ARGV[2])
  return false
end
local is_due = now >= due and bit.band(sinks, 1) == 0
if is_due then due, tries = now + ARGV[3], tries + 1 end
if ARGV[4] == '1' then logged = '1' end
keep()
return is_due and { tries, logged }

-- alertTell
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

local in_outbox = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
local due, tries, logged, sinks = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '', '^(%d+):(%d+):([01]):?([0-3]?)$')
due, tries, logged, sinks = tonumber(due or 0), tonumber(tries or 0), logged or '0', tonumber(sinks) or 0
local function keep()
  redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f:%d:%s:%d', due, tries, logged, sinks))
  redis.call('PEXPIRE', KEYS[2], 604800000)
end
logged = '1' if in_outbox then keep() end
