-- watermarkRaise
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end
for _, key in ipairs(KEYS) do raise(key, ARGV[2]) end

-- watermarkRaiseAll
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end
for _, key in ipairs(KEYS) do raise(key, ARGV[2]) end

-- watermarkRaisePerson
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end
for _, key in ipairs(KEYS) do raise(key, ARGV[2]) end

-- watermarkReadAll
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function highest_watermark(first, last)
  local highest = 0
  for _, time in ipairs(redis.call('MGET', unpack(KEYS, first, last))) do highest = math.max(highest, time or 0) end
  return highest
end
return highest_watermark(1)

-- watermarkReadClient
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function highest_watermark(first, last)
  local highest = 0
  for _, time in ipairs(redis.call('MGET', unpack(KEYS, first, last))) do highest = math.max(highest, time or 0) end
  return highest
end
return highest_watermark(1)

-- watermarkReadPerson
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function highest_watermark(first, last)
  local highest = 0
  for _, time in ipairs(redis.call('MGET', unpack(KEYS, first, last))) do highest = math.max(highest, time or 0) end
  return highest
end
return highest_watermark(1)
