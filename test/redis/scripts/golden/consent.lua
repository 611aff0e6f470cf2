-- consentGive
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

local function is_active(json)
  local consent = json and cjson.decode(json)
  return consent and now < consent.endsAt and consent or nil
end

local function union(before, added)
  local all, seen = {}, {}
  for each in string.gmatch((before or '') .. ' ' .. added, '[^ ]+') do
    if not seen[each] then
      seen[each] = true
      all[#all + 1] = each
    end
  end
  return table.concat(all, ' ')
end
local before = is_active(redis.call('HGET', KEYS[1], ARGV[2]))
local access = before and before.access or {}
for at = 4, #ARGV, 2 do access[ARGV[at]] = union(access[ARGV[at]], ARGV[at + 1]) end
local ends = now + ARGV[3]
local consent = string.format('{"access":%s,"endsAt":%.0f,"givenAt":%.0f}', cjson.encode(access), ends, now)
redis.call('HSET', KEYS[1], ARGV[2], consent)
local last, all = ends, redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local consent = is_active(all[at + 1])
  if consent then last = math.max(last, consent.endsAt) else redis.call('HDEL', KEYS[1], all[at]) end
end
expire(KEYS[1], last)

-- consentList
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

local function is_active(json)
  local consent = json and cjson.decode(json)
  return consent and now < consent.endsAt and consent or nil
end

local all = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #all, 2 do
  if is_active(all[at + 1]) then
    found[#found + 1] = all[at]
    found[#found + 1] = all[at + 1]
  end
end
return found

-- consentRead
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

local function is_active(json)
  local consent = json and cjson.decode(json)
  return consent and now < consent.endsAt and consent or nil
end

local json = redis.call('HGET', KEYS[1], ARGV[2])
return is_active(json) and json

-- consentWithdraw
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

redis.call('HDEL', KEYS[1], ARGV[2])
return string.format('%.0f', now)

-- consentWithdrawAgain
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local json = redis.call('HGET', KEYS[1], ARGV[2])
if json and cjson.decode(json).givenAt <= tonumber(ARGV[3]) then redis.call('HDEL', KEYS[1], ARGV[2]) end
