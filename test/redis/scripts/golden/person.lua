-- personRead
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

local record, time, ends, mac = unpack(redis.call('HMGET', KEYS[1], 'v', 't', 'e', 'c'))
if not record or now >= tonumber(ends) then return false end
return { record, time, mac or '' }

-- personRemember
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

local time = string.format('%.0f', now)
redis.call('HSET', KEYS[1], 'nv', ARGV[2], 'nt', time, 'ne', now + ARGV[3])
expire(KEYS[1], math.max(now + ARGV[3], tonumber(redis.call('HGET', KEYS[1], 'e') or 0)))
return time

-- personSeal
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

local record, time, ends = unpack(redis.call('HMGET', KEYS[1], 'nv', 'nt', 'ne'))
if record ~= ARGV[2] or time ~= ARGV[3] then return end
redis.call('HSET', KEYS[1], 'v', record, 't', time, 'e', ends, 'c', ARGV[4])
redis.call('HDEL', KEYS[1], 'nv', 'nt', 'ne')
expire(KEYS[1], tonumber(ends))
