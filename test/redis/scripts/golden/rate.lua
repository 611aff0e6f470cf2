-- rateLimitHit
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

local hits, ends = unpack(redis.call('HMGET', KEYS[1], 'n', 'e'))
local running = hits and now < tonumber(ends)

hits = running and hits + 1 or 1
ends = running and ends or now + ARGV[3]
redis.call('HSET', KEYS[1], 'n', hits, 'e', ends)
expire(KEYS[1], ends)
return hits > tonumber(ARGV[2]) and math.ceil((ends - now) / 1000) or 0

-- rateLimitRefund
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

local hits, ends = unpack(redis.call('HMGET', KEYS[1], 'n', 'e'))
local running = hits and now < tonumber(ends)

if not running then return end
if tonumber(hits) > 1 then redis.call('HSET', KEYS[1], 'n', hits - 1) else redis.call('DEL', KEYS[1]) end
