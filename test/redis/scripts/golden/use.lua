-- useForget
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
redis.call('HDEL', KEYS[1], ARGV[2])

-- useList
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

local function remembered(text)
  local first, last = string.match(text or '', '^(%d+) (%d+)$')
  if last and now - last < 31536000000 then return first, last end
end

local all = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #all, 2 do
  local first, last = remembered(all[at + 1])
  if last then
    for _, each in ipairs({ all[at], first, last }) do found[#found + 1] = each end
  end
end
return found

-- useNote
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

local function remembered(text)
  local first, last = string.match(text or '', '^(%d+) (%d+)$')
  if last and now - last < 31536000000 then return first, last end
end

local function record_use(key, client_uid)
  local first, last = remembered(redis.call('HGET', key, client_uid))
  if last and now - last < 3600000 then return end
  local time = string.format('%.0f', now)
  redis.call('HSET', key, client_uid, (first or time) .. ' ' .. time)
  expire(key, now + 31536000000)
  local all = redis.call('HGETALL', key)
  for at = 1, #all, 2 do
    if not remembered(all[at + 1]) then redis.call('HDEL', key, all[at]) end
  end
end
record_use(KEYS[1], ARGV[2])
