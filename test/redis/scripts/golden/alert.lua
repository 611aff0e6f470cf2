-- alertForward
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
  ['refresh_token.retried_elsewhere'] = 'a',
}

local alert, is_lost = cjson.decode(ARGV[3]), false
local letter = LETTERS[alert.type]
if letter and redis.call('EXISTS', KEYS[1]) == 1 then
  if alert.action == 'grant_revoked' then redis.call('HSET', KEYS[1], 'z', 1) end
  local raised = redis.call('HGET', KEYS[1], 'e') or ''
  is_lost = not string.find(raised, letter, 1, true)
  if is_lost then redis.call('HSET', KEYS[1], 'e', raised .. letter) end
end

if redis.call('HDEL', KEYS[2], ARGV[2]) == 0 and not is_lost then return end
if ARGV[4] == '1' then redis.call('HSETNX', KEYS[3], ARGV[2], ARGV[3]) end

-- alertRaiseAgain
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
  ['refresh_token.retried_elsewhere'] = 'a',
}

local alert, is_lost = cjson.decode(ARGV[3]), false
local letter = LETTERS[alert.type]
if letter and redis.call('EXISTS', KEYS[1]) == 1 then
  if alert.action == 'grant_revoked' then redis.call('HSET', KEYS[1], 'z', 1) end
  local raised = redis.call('HGET', KEYS[1], 'e') or ''
  is_lost = not string.find(raised, letter, 1, true)
  if is_lost then redis.call('HSET', KEYS[1], 'e', raised .. letter) end
end
if is_lost then redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3]) end
