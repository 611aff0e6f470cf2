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

local function noted_credential(key, subject)
  local noted = redis.call('HGET', key, subject)
  if noted then return string.match(noted, '^([^ ]*) ?(%d*)$') end
end

local credential = ARGV[7]
if credential ~= '' then
  local noted = noted_credential(KEYS[3], ARGV[4])
  if noted and noted ~= credential then return false end
  if not noted then redis.call('HSET', KEYS[3], ARGV[4], credential) end
end
local ends = now + ARGV[5]
local idle = math.min(now + ARGV[6], ends)
local time = string.format('%.0f', now)
redis.call('HSET', KEYS[1], 'v', ARGV[3], 's', ARGV[4], 'b', time, 'e', ends, 'u', idle)
expire(KEYS[1], idle)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], ends, ARGV[2])
expire(KEYS[2], redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
return time

-- sessionEnd
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])

-- sessionEndAll
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

local ended = redis.call('ZRANGE', KEYS[1], '(' .. now, '+inf', 'BYSCORE')
redis.call('DEL', KEYS[1])
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
return redis.call('ZRANGE', KEYS[1], '(' .. now, '+inf', 'BYSCORE')

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

local session, born, ends, idle, mac = unpack(redis.call('HMGET', KEYS[1], 'v', 'b', 'e', 'u', 'c'))
if not session or now >= tonumber(idle) or not redis.call('ZSCORE', KEYS[2], ARGV[2]) then return false end
if tonumber(born) <= tonumber(redis.call('GET', KEYS[3]) or 0) then return false end
return { session, born, mac or '' }

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

local session, born, ends, idle, mac = unpack(redis.call('HMGET', KEYS[1], 'v', 'b', 'e', 'u', 'c'))
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
return { session, born, mac or '' }
