-- interactionCreate
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

local function parsed(text)
  local ends, place, decision, interaction = string.match(text or '', '^(%d+) (%d+) (%S+) (.*)$')
  if not ends or now >= tonumber(ends) then return nil end
  return { ends = tonumber(ends), place = tonumber(place), decision = decision, interaction = interaction }
end
local function write(id, it)
  local text = string.format('%.0f %.0f %s ', it.ends, it.place, it.decision) .. it.interaction
  redis.call('HSET', KEYS[1], id, text)
end

local created = { ends = now + ARGV[4], place = 0, decision = '-', interaction = ARGV[3] }
local open, last, all = {}, created.ends, redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local other = parsed(all[at + 1])
  if other then
    open[#open + 1] = { id = all[at], place = other.place }
    last = math.max(last, other.ends)
    created.place = math.max(created.place, other.place + 1)
  else
    redis.call('HDEL', KEYS[1], all[at])
  end
end
table.sort(open, function(one, other) return one.place < other.place end)
for at = 1, #open + 1 - tonumber(ARGV[5]) do redis.call('HDEL', KEYS[1], open[at].id) end
write(ARGV[2], created)
expire(KEYS[1], last)

-- interactionDecide
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

local function parsed(text)
  local ends, place, decision, interaction = string.match(text or '', '^(%d+) (%d+) (%S+) (.*)$')
  if not ends or now >= tonumber(ends) then return nil end
  return { ends = tonumber(ends), place = tonumber(place), decision = decision, interaction = interaction }
end
local function write(id, it)
  local text = string.format('%.0f %.0f %s ', it.ends, it.place, it.decision) .. it.interaction
  redis.call('HSET', KEYS[1], id, text)
end

local found = parsed(redis.call('HGET', KEYS[1], ARGV[2]))

if not found then return 'gone' end
if found.decision ~= '-' then
  return string.match(found.decision, '^%a+') == string.match(ARGV[3], '^%a+') and 'decided' or 'conflict'
end
found.decision = ARGV[3]
write(ARGV[2], found)
return 'decided'

-- interactionDeny
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

local function parsed(text)
  local ends, place, decision, interaction = string.match(text or '', '^(%d+) (%d+) (%S+) (.*)$')
  if not ends or now >= tonumber(ends) then return nil end
  return { ends = tonumber(ends), place = tonumber(place), decision = decision, interaction = interaction }
end
local function write(id, it)
  local text = string.format('%.0f %.0f %s ', it.ends, it.place, it.decision) .. it.interaction
  redis.call('HSET', KEYS[1], id, text)
end

local found = parsed(redis.call('HGET', KEYS[1], ARGV[2]))

if not found then return 'gone' end
if found.decision ~= '-' then
  return string.match(found.decision, '^%a+') == string.match(ARGV[3], '^%a+') and 'decided' or 'conflict'
end
found.decision = ARGV[3]
write(ARGV[2], found)
return 'decided'

-- interactionRead
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

local function parsed(text)
  local ends, place, decision, interaction = string.match(text or '', '^(%d+) (%d+) (%S+) (.*)$')
  if not ends or now >= tonumber(ends) then return nil end
  return { ends = tonumber(ends), place = tonumber(place), decision = decision, interaction = interaction }
end
local function write(id, it)
  local text = string.format('%.0f %.0f %s ', it.ends, it.place, it.decision) .. it.interaction
  redis.call('HSET', KEYS[1], id, text)
end

local found = parsed(redis.call('HGET', KEYS[1], ARGV[2]))
return found and { found.interaction, found.decision }

-- interactionTake
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
local time = redis.call('TIME')
if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[#ARGV]) then
  return redis.error_reply('LATE the deadline of the request has passed')
end

local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local function parsed(text)
  local ends, place, decision, interaction = string.match(text or '', '^(%d+) (%d+) (%S+) (.*)$')
  if not ends or now >= tonumber(ends) then return nil end
  return { ends = tonumber(ends), place = tonumber(place), decision = decision, interaction = interaction }
end
local function write(id, it)
  local text = string.format('%.0f %.0f %s ', it.ends, it.place, it.decision) .. it.interaction
  redis.call('HSET', KEYS[1], id, text)
end

local function is_out_of_memory(reply)
  return type(reply) == 'table' and string.find(reply.err or '', '^-?OOM') ~= nil
end

local text = redis.call('HGET', KEYS[1], ARGV[2])
local taker, kept = string.match(text or '', '^taken (%S+) (.*)$')
if taker and taker ~= ARGV[3] and not string.find(ARGV[4], '.' .. taker .. '.', 1, true) then return false end
local found = parsed(kept or text)
if not found or found.decision == '-' then return false end
local written = redis.pcall('HSET', KEYS[1], ARGV[2], 'taken ' .. ARGV[3] .. ' ' .. (kept or text))
if type(written) ~= 'number' then
  if not is_out_of_memory(written) or not string.find(found.decision, '^deny') then return written end
  redis.call('HDEL', KEYS[1], ARGV[2])
end
return { found.interaction, found.decision }
