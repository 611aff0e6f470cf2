-- outboxList
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

local function decoded(json)
  local is_json, record = pcall(cjson.decode, json)
  return is_json and type(record) == 'table' and record or nil
end

local due, all = { now }, redis.call('HRANDFIELD', KEYS[1], ARGV[2], 'WITHVALUES')
for at = 1, #all, 2 do
  local record = decoded(all[at + 1])
  if not record or (tonumber(record.due) or 0) <= now then
    due[#due + 1] = all[at]
    due[#due + 1] = all[at + 1]
  end
end
return due

-- outboxPostpone
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

local function decoded(json)
  local is_json, record = pcall(cjson.decode, json)
  return is_json and type(record) == 'table' and record or nil
end

local record = decoded(redis.call('HGET', KEYS[1], ARGV[2]) or '')
local function keep(due)
  record.due = due
  redis.call('HSET', KEYS[1], ARGV[2], cjson.encode(record))
end
if record then keep(now + ARGV[3]) end

-- outboxSettle
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
return redis.call('HDEL', KEYS[1], ARGV[2])

-- outboxTake
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

local function decoded(json)
  local is_json, record = pcall(cjson.decode, json)
  return is_json and type(record) == 'table' and record or nil
end

local record = decoded(redis.call('HGET', KEYS[1], ARGV[2]) or '')
local function keep(due)
  record.due = due
  redis.call('HSET', KEYS[1], ARGV[2], cjson.encode(record))
end

if not record or (tonumber(record.due) or 0) > now then return false end
local before = tonumber(record.tries) or 0
record.tries = before + 1
keep(now + ARGV[3])
return before
