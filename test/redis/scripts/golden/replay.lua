-- replayClaim
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

if now < tonumber(redis.call('GET', KEYS[1]) or 0) then return 'seen' end
if ARGV[3] ~= '' then
  if redis.call('EXISTS', KEYS[2]) == 0 then return 'lost' end
  if tonumber(ARGV[3]) <= tonumber(redis.call('GET', KEYS[3]) or 0) then return 'lost' end
end
if now < tonumber(ARGV[2]) then redis.call('SET', KEYS[1], ARGV[2], 'PX', lifetime(ARGV[2])) end
return 'fresh'
