-- watermarkRaise
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

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end

local raised_to = ARGV[2] == '' and string.format('%.0f', now) or ARGV[2]
for _, key in ipairs(KEYS) do raise(key, raised_to) end
return raised_to

-- watermarkRaiseAll
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

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end

local raised_to = ARGV[2] == '' and string.format('%.0f', now) or ARGV[2]
for _, key in ipairs(KEYS) do raise(key, raised_to) end
return raised_to

-- watermarkRaisePerson
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

local function raise(key, time)
  local present = redis.call('GET', key)
  redis.call('SET', key, tonumber(time) >= tonumber(present or 0) and time or present)
end

local raised_to = ARGV[2] == '' and string.format('%.0f', now) or ARGV[2]
for _, key in ipairs(KEYS) do raise(key, raised_to) end
return raised_to

-- watermarkReadAll
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end
return highest(watermarks(1))

-- watermarkReadClient
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end
return highest(watermarks(1))

-- watermarkReadPerson
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end
return highest(watermarks(1))
