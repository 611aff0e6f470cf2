-- accessTokenIsKnown
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
return redis.call('EXISTS', KEYS[1])

-- accessTokenRead
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

local token = redis.call('GET', KEYS[1])
return token and token ~= '' and now < cjson.decode(token).expiresAtSeconds * 1000 and token

-- accessTokenRevoke
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
redis.call('SET', KEYS[1], '', 'XX', 'KEEPTTL')

-- accessTokenRevokeUnknown
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
redis.call('SET', KEYS[1], '', 'XX', 'KEEPTTL')

-- accessTokenWrite
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
redis.call('SET', KEYS[1], ARGV[2], 'PX', lifetime(ARGV[3] * 1000))
