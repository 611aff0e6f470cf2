-- grantIssue
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

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end

local function make_room()
  local codes, revoked, active, unknown = {}, {}, {}, redis.call('ZCARD', KEYS[2])
  for at = 10, #KEYS do
    local key = KEYS[at]
    local id = string.sub(key, -43)
    if key ~= KEYS[1] and redis.call('ZSCORE', KEYS[2], id) then
      unknown = unknown - 1
      local born, kept, generation, is_revoked = unpack(redis.call('HMGET', key, 'b', 'k', 'g', 'z'))
      if not born or now >= born + kept * 1000 then redis.call('ZREM', KEYS[2], id)
      elseif not generation then codes[#codes + 1] = key
      elseif is_revoked then revoked[#revoked + 1] = key
      else active[#active + 1] = key end
    end
  end
  local evicted = {}
  local function remove(from, count, is_named)
    for at = 1, math.min(count, #from) do
      local id = string.sub(from[at], -43)
      redis.call('DEL', from[at])
      redis.call('ZREM', KEYS[2], id)
      if is_named then evicted[#evicted + 1] = id end
    end
  end
  remove(codes, #codes + unknown + 1 - 50, true)
  local over = #revoked + #active - 100
  remove(revoked, over, false)
  remove(active, over - #revoked, true)
  return evicted
end

local function keep_recorded(key, sid, ends, json)
  redis.call('HSET', key, sid, string.format('%.0f ', ends) .. json)
  if redis.call('PTTL', key) < ends - now then expire(key, ends) end
end
-- The place of the oldest login of those that have the most with their value of a field.
local function oldest_of_most(logins, field)
  local counts, most = {}, 1
  for _, each in ipairs(logins) do counts[each[field]] = (counts[each[field]] or 0) + 1 end
  for at, each in ipairs(logins) do
    if counts[each[field]] > counts[logins[most][field]] then most = at end
  end
  return most
end
local function note_login(key, sid, ends, login)
  local recorded = redis.call('HGET', key, sid)
  local logins = recorded and cjson.decode(string.match(recorded, ' (.*)')) or {}
  logins[#logins + 1] = login
  local leaving
  if #logins > 100 then
    local namespace, own, places = logins[oldest_of_most(logins, 6)][6], {}, {}
    for at, each in ipairs(logins) do
      if each[6] == namespace then own[#own + 1], places[#places + 1] = each, at end
    end
    leaving = table.remove(logins, places[oldest_of_most(own, 1)])
  end
  keep_recorded(key, sid, ends, cjson.encode(logins))
  return leaving
end
local function keep_logins(key, sid, ends)
  local recorded = redis.call('HGET', key, sid)
  if recorded then keep_recorded(key, sid, ends, string.match(recorded, ' (.*)')) end
end
-- Those of sessions that have expired.
local function forget_logins(key)
  local all = redis.call('HGETALL', key)
  for at = 1, #all, 2 do
    if tonumber(string.match(all[at + 1], '%d+')) <= now then redis.call('HDEL', key, all[at]) end
  end
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

-- Idempotent: an existing grant keeps its state.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'issued' } end
if tonumber(ARGV[4]) <= highest(watermarks(3, 5)) then return { 'outdated' } end
local client_uid, session, session_ends = ARGV[6], ARGV[7], nil
if session ~= '' then
  local idle
  session_ends, idle = unpack(redis.call('HMGET', KEYS[6], 'e', 'u'))
  if not idle or now >= tonumber(idle) or not redis.call('ZSCORE', KEYS[7], session) then return { 'signed_out' } end
end
local is_evicting = #KEYS > 9
if not is_evicting and redis.call('ZCARD', KEYS[2]) >= 200 then
  return { 'full', '', unpack(redis.call('ZRANGE', KEYS[2], 0, 199)) }
end
local fields = { 'b', now, 'k', math.ceil(ARGV[2] / 1000), 't', now - ARGV[4], 'x', string.sub(ARGV[5], 1, 27), 'm', history() }
for at = 12, #ARGV, 2 do
  local name, value = ARGV[at], ARGV[at + 1]
  for from = 1, math.max(1, #value), 63 do
    fields[#fields + 1] = from == 1 and name or name .. (from - 1) / 63
    fields[#fields + 1] = string.sub(value, from, from + 62)
  end
end
-- First: while the memory is full this is refused, and nothing is removed.
redis.call('HSET', KEYS[1], unpack(fields))
expire(KEYS[1], now + ARGV[2])
local forgotten = ''
if session ~= '' then
  local login = { client_uid, string.sub(KEYS[1], -43), tonumber(ARGV[9]), ARGV[10], now, ARGV[11] }
  local leaving = note_login(KEYS[8], ARGV[8], tonumber(session_ends), login)
  if leaving and leaving[3] == 0 then forgotten = leaving[2] end
end
local evicted = is_evicting and make_room() or {}
local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
redis.call('ZADD', KEYS[2], newest + 1, string.sub(KEYS[1], -43))
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then expire(KEYS[2], now + ARGV[3]) end
record_use(KEYS[9], client_uid)
return { 'issued', forgotten, unpack(evicted) }

-- grantIssueEvicting
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

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end

local function make_room()
  local codes, revoked, active, unknown = {}, {}, {}, redis.call('ZCARD', KEYS[2])
  for at = 10, #KEYS do
    local key = KEYS[at]
    local id = string.sub(key, -43)
    if key ~= KEYS[1] and redis.call('ZSCORE', KEYS[2], id) then
      unknown = unknown - 1
      local born, kept, generation, is_revoked = unpack(redis.call('HMGET', key, 'b', 'k', 'g', 'z'))
      if not born or now >= born + kept * 1000 then redis.call('ZREM', KEYS[2], id)
      elseif not generation then codes[#codes + 1] = key
      elseif is_revoked then revoked[#revoked + 1] = key
      else active[#active + 1] = key end
    end
  end
  local evicted = {}
  local function remove(from, count, is_named)
    for at = 1, math.min(count, #from) do
      local id = string.sub(from[at], -43)
      redis.call('DEL', from[at])
      redis.call('ZREM', KEYS[2], id)
      if is_named then evicted[#evicted + 1] = id end
    end
  end
  remove(codes, #codes + unknown + 1 - 50, true)
  local over = #revoked + #active - 100
  remove(revoked, over, false)
  remove(active, over - #revoked, true)
  return evicted
end

local function keep_recorded(key, sid, ends, json)
  redis.call('HSET', key, sid, string.format('%.0f ', ends) .. json)
  if redis.call('PTTL', key) < ends - now then expire(key, ends) end
end
-- The place of the oldest login of those that have the most with their value of a field.
local function oldest_of_most(logins, field)
  local counts, most = {}, 1
  for _, each in ipairs(logins) do counts[each[field]] = (counts[each[field]] or 0) + 1 end
  for at, each in ipairs(logins) do
    if counts[each[field]] > counts[logins[most][field]] then most = at end
  end
  return most
end
local function note_login(key, sid, ends, login)
  local recorded = redis.call('HGET', key, sid)
  local logins = recorded and cjson.decode(string.match(recorded, ' (.*)')) or {}
  logins[#logins + 1] = login
  local leaving
  if #logins > 100 then
    local namespace, own, places = logins[oldest_of_most(logins, 6)][6], {}, {}
    for at, each in ipairs(logins) do
      if each[6] == namespace then own[#own + 1], places[#places + 1] = each, at end
    end
    leaving = table.remove(logins, places[oldest_of_most(own, 1)])
  end
  keep_recorded(key, sid, ends, cjson.encode(logins))
  return leaving
end
local function keep_logins(key, sid, ends)
  local recorded = redis.call('HGET', key, sid)
  if recorded then keep_recorded(key, sid, ends, string.match(recorded, ' (.*)')) end
end
-- Those of sessions that have expired.
local function forget_logins(key)
  local all = redis.call('HGETALL', key)
  for at = 1, #all, 2 do
    if tonumber(string.match(all[at + 1], '%d+')) <= now then redis.call('HDEL', key, all[at]) end
  end
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

-- Idempotent: an existing grant keeps its state.
if redis.call('EXISTS', KEYS[1]) == 1 then return { 'issued' } end
if tonumber(ARGV[4]) <= highest(watermarks(3, 5)) then return { 'outdated' } end
local client_uid, session, session_ends = ARGV[6], ARGV[7], nil
if session ~= '' then
  local idle
  session_ends, idle = unpack(redis.call('HMGET', KEYS[6], 'e', 'u'))
  if not idle or now >= tonumber(idle) or not redis.call('ZSCORE', KEYS[7], session) then return { 'signed_out' } end
end
local is_evicting = #KEYS > 9
if not is_evicting and redis.call('ZCARD', KEYS[2]) >= 200 then
  return { 'full', '', unpack(redis.call('ZRANGE', KEYS[2], 0, 199)) }
end
local fields = { 'b', now, 'k', math.ceil(ARGV[2] / 1000), 't', now - ARGV[4], 'x', string.sub(ARGV[5], 1, 27), 'm', history() }
for at = 12, #ARGV, 2 do
  local name, value = ARGV[at], ARGV[at + 1]
  for from = 1, math.max(1, #value), 63 do
    fields[#fields + 1] = from == 1 and name or name .. (from - 1) / 63
    fields[#fields + 1] = string.sub(value, from, from + 62)
  end
end
-- First: while the memory is full this is refused, and nothing is removed.
redis.call('HSET', KEYS[1], unpack(fields))
expire(KEYS[1], now + ARGV[2])
local forgotten = ''
if session ~= '' then
  local login = { client_uid, string.sub(KEYS[1], -43), tonumber(ARGV[9]), ARGV[10], now, ARGV[11] }
  local leaving = note_login(KEYS[8], ARGV[8], tonumber(session_ends), login)
  if leaving and leaving[3] == 0 then forgotten = leaving[2] end
end
local evicted = is_evicting and make_room() or {}
local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
redis.call('ZADD', KEYS[2], newest + 1, string.sub(KEYS[1], -43))
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then expire(KEYS[2], now + ARGV[3]) end
record_use(KEYS[9], client_uid)
return { 'issued', forgotten, unpack(evicted) }

-- grantRead
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
local function answer()

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local record, created, refreshed
local function text(name)
  local value, piece = record[name], 1
  while record[name .. piece] do
    value = value .. record[name .. piece]
    piece = piece + 1
  end
  return value
end
local function described()
  return { text('u'), text('c'), text('s'), text('i') or false, created - record.t, text('o'), text('d'), text('r'),
    record.h or false, created, record.p or false, record.J or false, record.S or false, text('N') or false,
    record.A and tonumber(record.A) or false }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat > 0 then
  record = {}
  for at = 1, #flat, 2 do record[flat[at]] = flat[at + 1] end
  created = tonumber(record.b)
  refreshed = created + (record.f or 0)
  if now >= created + record.k * 1000 then record = nil end
end
local function list(name)
  local all = {}
  for each in string.gmatch(text(name), '[^ ]+') do all[#all + 1] = each end
  return all
end
-- Seconds from creation on, never fewer than before.
local function needed(lifetime)
  return math.max(record.k, math.ceil(lifetime / 1000))
end

if not record then return { false } end
local state = { described(), record.z or false, record.g or false, refreshed }
return state
end
return cjson.encode(answer())

-- grantRedeem
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
local time = redis.call('TIME')
if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[#ARGV]) then
  return redis.error_reply('LATE the deadline of the request has passed')
end
local function answer()

local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local record, created, refreshed
local function text(name)
  local value, piece = record[name], 1
  while record[name .. piece] do
    value = value .. record[name .. piece]
    piece = piece + 1
  end
  return value
end
local function described()
  return { text('u'), text('c'), text('s'), text('i') or false, created - record.t, text('o'), text('d'), text('r'),
    record.h or false, created, record.p or false, record.J or false, record.S or false, text('N') or false,
    record.A and tonumber(record.A) or false }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat > 0 then
  record = {}
  for at = 1, #flat, 2 do record[flat[at]] = flat[at + 1] end
  created = tonumber(record.b)
  refreshed = created + (record.f or 0)
  if now >= created + record.k * 1000 then record = nil end
end
local function list(name)
  local all = {}
  for each in string.gmatch(text(name), '[^ ]+') do all[#all + 1] = each end
  return all
end
-- Seconds from creation on, never fewer than before.
local function needed(lifetime)
  return math.max(record.k, math.ceil(lifetime / 1000))
end

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end
local request = cjson.decode(ARGV[2])

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end

local function is_ended(times)
  return created <= math.max(request.revokedBefore, request.watermark or 0, highest(times))
end

local function put_all(set, list)
  for _, each in ipairs(list) do set[each] = true end
  return set
end
local function common(list, set)
  local both = {}
  for _, each in ipairs(list) do
    if set[each] then both[#both + 1] = each end
  end
  return both
end
local function scopes_at(access, audience)
  local rules = access.at and access.at[audience]
  return rules and rules.scopes or access.allowedScopes
end
local function narrow(access)
  local audiences = common(list('d'), put_all({}, access.allowedAudiences))
  local covered = put_all({}, audiences)
  local candidates = audiences
  if access.resource then candidates = covered[access.resource] and { access.resource } or {}
  elseif covered[access.defaultAudience] then candidates = { access.defaultAudience, unpack(audiences) } end
  if #candidates == 0 then return 'target_exceeded' end
  local allowed = {}
  if access.at then
    for each in pairs(covered) do put_all(allowed, scopes_at(access, each)) end
  else
    put_all(allowed, access.allowedScopes)
  end
  local effective = common(list('o'), allowed)
  local asked = access.scope or effective
  if #common(asked, put_all({}, effective)) < #asked then return 'scope_exceeded' end
  local issuer = access.issuer
  local of_issuer = issuer and covered[issuer] and scopes_at(access, issuer) or {}
  for _, audience in ipairs(candidates) do
    local scope = asked
    if access.at or issuer then
      local here = put_all({}, scopes_at(access, audience))
      if audience ~= issuer then
        for _, each in ipairs(of_issuer) do here[each] = nil end
      end
      scope = common(asked, here)
    end
    if #scope > 0 then return 'granted', scope, audience end
  end
  return 'scope_exceeded'
end

local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
  ['refresh_token.retried_elsewhere'] = 'a',
}

local function cap(token, audience)
  local at, macs = request.access.at, token.macAt
  token.macAt = nil
  local seconds = at and at[audience] and at[audience].maxLifetimeSeconds
  if not seconds or token.issuedAtSeconds + seconds >= token.expiresAtSeconds then return end
  token.expiresAtSeconds, token.mac = token.issuedAtSeconds + seconds, macs and macs[audience] or token.mac
end
local function write_access_token(scope, audience)
  local token = request.accessToken
  if not token then return end
  cap(token, audience)
  token.clientUid, token.clientId, token.subject = text('u'), text('c'), text('s')
  token.scope, token.audience = scope, audience
  local auth_time = created - record.t
  token.grantId, token.authTime = request.grantId, math.min(auth_time, record.A or auth_time)
  redis.call('SET', KEYS[3], cjson.encode(token), 'PX', lifetime(token.expiresAtSeconds * 1000))
end
-- A retry that gets the first answer again writes the record again: WAIT covers only the writes of its own connection.
local function write_again()
  redis.call('HSET', KEYS[1], 'g', record.g)
end
local function raise(type, action)
  local raised, letter = record.e or '', LETTERS[type]
  if string.find(raised, letter, 1, true) then return false end
  local alert = cjson.encode({
    id = request.grantId .. '.' .. type, type = type, action = action, time = now, grantId = request.grantId,
    clientUid = text('u'), clientId = text('c'), subject = text('s'),
    presentedGeneration = request.generation, currentGeneration = tonumber(record.g),
    address = request.address, lastAddress = record.l,
  })
  redis.call('HSETNX', KEYS[2], request.grantId .. '.' .. type, alert)
  redis.call('HSET', KEYS[1], 'e', raised .. letter)
  return alert
end
local function revoke_with(type)
  redis.call('HSET', KEYS[1], 'z', 1)
  return raise(type, 'grant_revoked')
end

if not record or record.z or tonumber(record.w or 0) >= 5 then return { 'gone' } end
if record['v' .. request.attemptId] then return { 'gone' } end
local is_match = record.x == string.sub(request.secretHash, 1, 27) and text('u') == request.clientUid
local is_here = text('r') == request.redirectUri and (not record.J or record.J == request.confirmation)
local right = record.h and record.h == request.verifierChallenge
-- The code is from before a fail-over, which may have lost its redemption: refuse it. If all else is right, revoke the
-- grant, which ends the tokens of a lost redemption. A record that is known to be redeemed has no m: see replayed.
if record.m and record.m ~= history() then
  if is_match and is_here and right then redis.call('HSET', KEYS[1], 'z', 1) end
  return { 'gone' }
end
if not is_match then return { 'no_match' } end
if not is_here or not record.h or not request.verifierChallenge then return { 'bad_proof' } end
if not right and record.g then return { 'bad_proof' } end

if record.a == 'w' .. request.attemptId then return { 'wrong_verifier' } end
if not right then
  redis.call('HSET', KEYS[1], 'w', (record.w or 0) + 1, 'a', 'w' .. request.attemptId)
  return { 'wrong_verifier' }
end
local again = record.a == 'c' .. request.attemptId
if record.g and not again then return { 'replayed', revoke_with('authorization_code.replayed') } end

local outcome, scope, audience = narrow(request.access)
if outcome ~= 'granted' then return { outcome } end
if again then
  write_again()
else
  write_access_token(scope, audience)
  local kept = needed(request.retention)
  redis.call('HSET', KEYS[1], 'g', 0, 'f', now - created, 'k', kept, 'l', request.address, 'a', 'c' .. request.attemptId)
  if request.bindsRefreshTokens and request.confirmation then redis.call('HSET', KEYS[1], 'B', request.confirmation) end
  redis.call('HDEL', KEYS[1], 'm', 'w')
  expire(KEYS[1], created + kept * 1000)
end
local times = watermarks(4)
local upper_bound = table.remove(times)
if is_ended(times) then return { 'ended' } end
local is_newer = created > tonumber(upper_bound or 0)
return { 'redeemed', described(), scope, audience, is_newer }
end
return cjson.encode(answer())

-- grantRedeemApart
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
local time = redis.call('TIME')
if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[#ARGV]) then
  return redis.error_reply('LATE the deadline of the request has passed')
end
local function answer()

local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local record, created, refreshed
local function text(name)
  local value, piece = record[name], 1
  while record[name .. piece] do
    value = value .. record[name .. piece]
    piece = piece + 1
  end
  return value
end
local function described()
  return { text('u'), text('c'), text('s'), text('i') or false, created - record.t, text('o'), text('d'), text('r'),
    record.h or false, created, record.p or false, record.J or false, record.S or false, text('N') or false,
    record.A and tonumber(record.A) or false }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat > 0 then
  record = {}
  for at = 1, #flat, 2 do record[flat[at]] = flat[at + 1] end
  created = tonumber(record.b)
  refreshed = created + (record.f or 0)
  if now >= created + record.k * 1000 then record = nil end
end
local function list(name)
  local all = {}
  for each in string.gmatch(text(name), '[^ ]+') do all[#all + 1] = each end
  return all
end
-- Seconds from creation on, never fewer than before.
local function needed(lifetime)
  return math.max(record.k, math.ceil(lifetime / 1000))
end

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end
local request = cjson.decode(ARGV[2])

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end

local function is_ended(times)
  return created <= math.max(request.revokedBefore, request.watermark or 0, highest(times))
end

local function put_all(set, list)
  for _, each in ipairs(list) do set[each] = true end
  return set
end
local function common(list, set)
  local both = {}
  for _, each in ipairs(list) do
    if set[each] then both[#both + 1] = each end
  end
  return both
end
local function scopes_at(access, audience)
  local rules = access.at and access.at[audience]
  return rules and rules.scopes or access.allowedScopes
end
local function narrow(access)
  local audiences = common(list('d'), put_all({}, access.allowedAudiences))
  local covered = put_all({}, audiences)
  local candidates = audiences
  if access.resource then candidates = covered[access.resource] and { access.resource } or {}
  elseif covered[access.defaultAudience] then candidates = { access.defaultAudience, unpack(audiences) } end
  if #candidates == 0 then return 'target_exceeded' end
  local allowed = {}
  if access.at then
    for each in pairs(covered) do put_all(allowed, scopes_at(access, each)) end
  else
    put_all(allowed, access.allowedScopes)
  end
  local effective = common(list('o'), allowed)
  local asked = access.scope or effective
  if #common(asked, put_all({}, effective)) < #asked then return 'scope_exceeded' end
  local issuer = access.issuer
  local of_issuer = issuer and covered[issuer] and scopes_at(access, issuer) or {}
  for _, audience in ipairs(candidates) do
    local scope = asked
    if access.at or issuer then
      local here = put_all({}, scopes_at(access, audience))
      if audience ~= issuer then
        for _, each in ipairs(of_issuer) do here[each] = nil end
      end
      scope = common(asked, here)
    end
    if #scope > 0 then return 'granted', scope, audience end
  end
  return 'scope_exceeded'
end

local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
  ['refresh_token.retried_elsewhere'] = 'a',
}

local function cap(token, audience)
  local at, macs = request.access.at, token.macAt
  token.macAt = nil
  local seconds = at and at[audience] and at[audience].maxLifetimeSeconds
  if not seconds or token.issuedAtSeconds + seconds >= token.expiresAtSeconds then return end
  token.expiresAtSeconds, token.mac = token.issuedAtSeconds + seconds, macs and macs[audience] or token.mac
end
local function write_access_token(scope, audience)
  local token = request.accessToken
  if not token then return end
  cap(token, audience)
  token.clientUid, token.clientId, token.subject = text('u'), text('c'), text('s')
  token.scope, token.audience = scope, audience
  local auth_time = created - record.t
  token.grantId, token.authTime = request.grantId, math.min(auth_time, record.A or auth_time)
  redis.call('SET', KEYS[3], cjson.encode(token), 'PX', lifetime(token.expiresAtSeconds * 1000))
end
-- A retry that gets the first answer again writes the record again: WAIT covers only the writes of its own connection.
local function write_again()
  redis.call('HSET', KEYS[1], 'g', record.g)
end
local function raise(type, action)
  local raised, letter = record.e or '', LETTERS[type]
  if string.find(raised, letter, 1, true) then return false end
  local alert = cjson.encode({
    id = request.grantId .. '.' .. type, type = type, action = action, time = now, grantId = request.grantId,
    clientUid = text('u'), clientId = text('c'), subject = text('s'),
    presentedGeneration = request.generation, currentGeneration = tonumber(record.g),
    address = request.address, lastAddress = record.l,
  })
  redis.call('HSETNX', KEYS[2], request.grantId .. '.' .. type, alert)
  redis.call('HSET', KEYS[1], 'e', raised .. letter)
  return alert
end
local function revoke_with(type)
  redis.call('HSET', KEYS[1], 'z', 1)
  return raise(type, 'grant_revoked')
end

if not record or record.z or tonumber(record.w or 0) >= 5 then return { 'gone' } end
if record['v' .. request.attemptId] then return { 'gone' } end
local is_match = record.x == string.sub(request.secretHash, 1, 27) and text('u') == request.clientUid
local is_here = text('r') == request.redirectUri and (not record.J or record.J == request.confirmation)
local right = record.h and record.h == request.verifierChallenge
-- The code is from before a fail-over, which may have lost its redemption: refuse it. If all else is right, revoke the
-- grant, which ends the tokens of a lost redemption. A record that is known to be redeemed has no m: see replayed.
if record.m and record.m ~= history() then
  if is_match and is_here and right then redis.call('HSET', KEYS[1], 'z', 1) end
  return { 'gone' }
end
if not is_match then return { 'no_match' } end
if not is_here or not record.h or not request.verifierChallenge then return { 'bad_proof' } end
if not right and record.g then return { 'bad_proof' } end

if record.a == 'w' .. request.attemptId then return { 'wrong_verifier' } end
if not right then
  redis.call('HSET', KEYS[1], 'w', (record.w or 0) + 1, 'a', 'w' .. request.attemptId)
  return { 'wrong_verifier' }
end
local again = record.a == 'c' .. request.attemptId
if record.g and not again then return { 'replayed', revoke_with('authorization_code.replayed') } end

local outcome, scope, audience = narrow(request.access)
if outcome ~= 'granted' then return { outcome } end
if again then
  write_again()
else
  write_access_token(scope, audience)
  local kept = needed(request.retention)
  redis.call('HSET', KEYS[1], 'g', 0, 'f', now - created, 'k', kept, 'l', request.address, 'a', 'c' .. request.attemptId)
  if request.bindsRefreshTokens and request.confirmation then redis.call('HSET', KEYS[1], 'B', request.confirmation) end
  redis.call('HDEL', KEYS[1], 'm', 'w')
  expire(KEYS[1], created + kept * 1000)
end
local times = watermarks(4)
local upper_bound = table.remove(times)
if is_ended(times) then return { 'ended' } end
local is_newer = created > tonumber(upper_bound or 0)
return { 'redeemed', described(), scope, audience, is_newer }
end
return cjson.encode(answer())

-- grantRetriedElsewhere
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

local record, created, refreshed
local function text(name)
  local value, piece = record[name], 1
  while record[name .. piece] do
    value = value .. record[name .. piece]
    piece = piece + 1
  end
  return value
end
local function described()
  return { text('u'), text('c'), text('s'), text('i') or false, created - record.t, text('o'), text('d'), text('r'),
    record.h or false, created, record.p or false, record.J or false, record.S or false, text('N') or false,
    record.A and tonumber(record.A) or false }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat > 0 then
  record = {}
  for at = 1, #flat, 2 do record[flat[at]] = flat[at + 1] end
  created = tonumber(record.b)
  refreshed = created + (record.f or 0)
  if now >= created + record.k * 1000 then record = nil end
end
local function list(name)
  local all = {}
  for each in string.gmatch(text(name), '[^ ]+') do all[#all + 1] = each end
  return all
end
-- Seconds from creation on, never fewer than before.
local function needed(lifetime)
  return math.max(record.k, math.ceil(lifetime / 1000))
end
local request = cjson.decode(ARGV[2])

local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
  ['refresh_token.retried_elsewhere'] = 'a',
}

local function cap(token, audience)
  local at, macs = request.access.at, token.macAt
  token.macAt = nil
  local seconds = at and at[audience] and at[audience].maxLifetimeSeconds
  if not seconds or token.issuedAtSeconds + seconds >= token.expiresAtSeconds then return end
  token.expiresAtSeconds, token.mac = token.issuedAtSeconds + seconds, macs and macs[audience] or token.mac
end
local function write_access_token(scope, audience)
  local token = request.accessToken
  if not token then return end
  cap(token, audience)
  token.clientUid, token.clientId, token.subject = text('u'), text('c'), text('s')
  token.scope, token.audience = scope, audience
  local auth_time = created - record.t
  token.grantId, token.authTime = request.grantId, math.min(auth_time, record.A or auth_time)
  redis.call('SET', KEYS[3], cjson.encode(token), 'PX', lifetime(token.expiresAtSeconds * 1000))
end
-- A retry that gets the first answer again writes the record again: WAIT covers only the writes of its own connection.
local function write_again()
  redis.call('HSET', KEYS[1], 'g', record.g)
end
local function raise(type, action)
  local raised, letter = record.e or '', LETTERS[type]
  if string.find(raised, letter, 1, true) then return false end
  local alert = cjson.encode({
    id = request.grantId .. '.' .. type, type = type, action = action, time = now, grantId = request.grantId,
    clientUid = text('u'), clientId = text('c'), subject = text('s'),
    presentedGeneration = request.generation, currentGeneration = tonumber(record.g),
    address = request.address, lastAddress = record.l,
  })
  redis.call('HSETNX', KEYS[2], request.grantId .. '.' .. type, alert)
  redis.call('HSET', KEYS[1], 'e', raised .. letter)
  return alert
end
local function revoke_with(type)
  redis.call('HSET', KEYS[1], 'z', 1)
  return raise(type, 'grant_revoked')
end

if not record or record.z or not record.g then return end
local last, row = string.match(record.j or '-1 0', '^(-?%d+) (%d+)$')
if request.generation <= tonumber(last) then return end
row = request.generation == last + 1 and row + 1 or 1
redis.call('HSET', KEYS[1], 'j', request.generation .. ' ' .. row)
record.l = request.rotatedFrom
if row >= 3 then return raise('refresh_token.retried_elsewhere', 'answered_again') end

-- grantRevoke
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('HSET', KEYS[1], 'z', 1) end return 0

-- grantRotate
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
local time = redis.call('TIME')
if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[#ARGV]) then
  return redis.error_reply('LATE the deadline of the request has passed')
end
local function answer()

local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local record, created, refreshed
local function text(name)
  local value, piece = record[name], 1
  while record[name .. piece] do
    value = value .. record[name .. piece]
    piece = piece + 1
  end
  return value
end
local function described()
  return { text('u'), text('c'), text('s'), text('i') or false, created - record.t, text('o'), text('d'), text('r'),
    record.h or false, created, record.p or false, record.J or false, record.S or false, text('N') or false,
    record.A and tonumber(record.A) or false }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat > 0 then
  record = {}
  for at = 1, #flat, 2 do record[flat[at]] = flat[at + 1] end
  created = tonumber(record.b)
  refreshed = created + (record.f or 0)
  if now >= created + record.k * 1000 then record = nil end
end
local function list(name)
  local all = {}
  for each in string.gmatch(text(name), '[^ ]+') do all[#all + 1] = each end
  return all
end
-- Seconds from creation on, never fewer than before.
local function needed(lifetime)
  return math.max(record.k, math.ceil(lifetime / 1000))
end

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end
local request = cjson.decode(ARGV[2])

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end

local function is_ended(times)
  return created <= math.max(request.revokedBefore, request.watermark or 0, highest(times))
end

local function put_all(set, list)
  for _, each in ipairs(list) do set[each] = true end
  return set
end
local function common(list, set)
  local both = {}
  for _, each in ipairs(list) do
    if set[each] then both[#both + 1] = each end
  end
  return both
end
local function scopes_at(access, audience)
  local rules = access.at and access.at[audience]
  return rules and rules.scopes or access.allowedScopes
end
local function narrow(access)
  local audiences = common(list('d'), put_all({}, access.allowedAudiences))
  local covered = put_all({}, audiences)
  local candidates = audiences
  if access.resource then candidates = covered[access.resource] and { access.resource } or {}
  elseif covered[access.defaultAudience] then candidates = { access.defaultAudience, unpack(audiences) } end
  if #candidates == 0 then return 'target_exceeded' end
  local allowed = {}
  if access.at then
    for each in pairs(covered) do put_all(allowed, scopes_at(access, each)) end
  else
    put_all(allowed, access.allowedScopes)
  end
  local effective = common(list('o'), allowed)
  local asked = access.scope or effective
  if #common(asked, put_all({}, effective)) < #asked then return 'scope_exceeded' end
  local issuer = access.issuer
  local of_issuer = issuer and covered[issuer] and scopes_at(access, issuer) or {}
  for _, audience in ipairs(candidates) do
    local scope = asked
    if access.at or issuer then
      local here = put_all({}, scopes_at(access, audience))
      if audience ~= issuer then
        for _, each in ipairs(of_issuer) do here[each] = nil end
      end
      scope = common(asked, here)
    end
    if #scope > 0 then return 'granted', scope, audience end
  end
  return 'scope_exceeded'
end

local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
  ['refresh_token.retried_elsewhere'] = 'a',
}

local function cap(token, audience)
  local at, macs = request.access.at, token.macAt
  token.macAt = nil
  local seconds = at and at[audience] and at[audience].maxLifetimeSeconds
  if not seconds or token.issuedAtSeconds + seconds >= token.expiresAtSeconds then return end
  token.expiresAtSeconds, token.mac = token.issuedAtSeconds + seconds, macs and macs[audience] or token.mac
end
local function write_access_token(scope, audience)
  local token = request.accessToken
  if not token then return end
  cap(token, audience)
  token.clientUid, token.clientId, token.subject = text('u'), text('c'), text('s')
  token.scope, token.audience = scope, audience
  local auth_time = created - record.t
  token.grantId, token.authTime = request.grantId, math.min(auth_time, record.A or auth_time)
  redis.call('SET', KEYS[3], cjson.encode(token), 'PX', lifetime(token.expiresAtSeconds * 1000))
end
-- A retry that gets the first answer again writes the record again: WAIT covers only the writes of its own connection.
local function write_again()
  redis.call('HSET', KEYS[1], 'g', record.g)
end
local function raise(type, action)
  local raised, letter = record.e or '', LETTERS[type]
  if string.find(raised, letter, 1, true) then return false end
  local alert = cjson.encode({
    id = request.grantId .. '.' .. type, type = type, action = action, time = now, grantId = request.grantId,
    clientUid = text('u'), clientId = text('c'), subject = text('s'),
    presentedGeneration = request.generation, currentGeneration = tonumber(record.g),
    address = request.address, lastAddress = record.l,
  })
  redis.call('HSETNX', KEYS[2], request.grantId .. '.' .. type, alert)
  redis.call('HSET', KEYS[1], 'e', raised .. letter)
  return alert
end
local function revoke_with(type)
  redis.call('HSET', KEYS[1], 'z', 1)
  return raise(type, 'grant_revoked')
end

if not record then return { 'gone' } end
if text('u') ~= request.clientUid then return { 'no_match' } end
if is_ended(watermarks(4)) then return { 'ended' } end
if record.z or record['v' .. request.attemptId] then return { 'gone' } end
-- The refresh token proves that its code was redeemed. A fail-over has lost that: the token is newer than the record.
local is_unknown = not record.g and record.m and record.m ~= history()
if not record.g and not is_unknown then return { 'gone' } end
local current = tonumber(record.g or -1)
if now >= refreshed + request.idleLifetime or now >= created + request.absoluteLifetime then return { 'gone' } end
if request.isPublic then
  -- A fail-over has lost the redemption, and the key with it: that of the code is the same one.
  local key = record.B or is_unknown and record.J
  if key and key ~= request.confirmation or not key and request.rotation == 'Never' then return { 'bad_proof' } end
end

local presented, outcome = request.generation, nil
local retries = {}
for name in pairs(record) do
  if string.sub(name, 1, 1) == 'q' then retries[#retries + 1] = name end
end
local in_grace = request.reuseGrace > 0 and not record.n and now - refreshed <= request.reuseGrace
if record.a == 'r' .. request.attemptId then outcome = 'rotated'
elseif record.a == 'h' .. request.attemptId then outcome = 'healed'
elseif presented == current then outcome = 'rotated'
-- The successor was never delivered: its predecessor is rotated as if for the first time.
elseif presented == current - 1 and record.y and #retries == 0 then outcome = 'rotated'
elseif presented == current - 1 and in_grace then outcome = 'benign_retry'
elseif presented > current then outcome = 'healed'
else return { 'reused', revoke_with('refresh_token.reuse_detected') } end

local covered, scope, audience = narrow(request.access)
if covered ~= 'granted' then return { covered } end
local attempt = string.sub(outcome, 1, 1) .. request.attemptId
local again = record.a == attempt
if not again then write_access_token(scope, audience) end
if again or outcome == 'benign_retry' then
  write_again()
  redis.call('HSET', KEYS[1], 'q' .. ((again or #retries >= 8) and '*' or request.attemptId), '')
  return { outcome, described(), current, scope, audience, false, outcome == 'benign_retry' and record.l }
end

local alert = outcome == 'healed' and raise('state_lost', 'healed_forward')
local rotates = request.rotation == 'Always'
local generation = math.max(current, rotates and presented + 1 or presented)
if record.y or #retries > 0 then redis.call('HDEL', KEYS[1], 'y', unpack(retries)) end
local kept = needed(request.retention)
redis.call('HSET', KEYS[1], 'g', generation, 'f', now - created, 'k', kept, 'l', request.address, 'a', attempt)
if generation == presented then redis.call('HSET', KEYS[1], 'n', 1) elseif record.n then redis.call('HDEL', KEYS[1], 'n') end
if record.N then
  local nonce = { 'N' }
  while record['N' .. #nonce] do nonce[#nonce + 1] = 'N' .. #nonce end
  redis.call('HDEL', KEYS[1], unpack(nonce))
  for _, piece in ipairs(nonce) do record[piece] = nil end
end
if is_unknown then
  redis.call('HDEL', KEYS[1], 'm', 'w')
  -- As at the redemption: without it the next request could have any key.
  if request.isPublic and request.confirmation then redis.call('HSET', KEYS[1], 'B', request.confirmation) end
end
if kept > tonumber(record.k) then expire(KEYS[1], created + kept * 1000) end
return { outcome, described(), generation, scope, audience, alert }
end
return cjson.encode(answer())

-- grantRotateApart
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
local time = redis.call('TIME')
if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[#ARGV]) then
  return redis.error_reply('LATE the deadline of the request has passed')
end
local function answer()

local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local record, created, refreshed
local function text(name)
  local value, piece = record[name], 1
  while record[name .. piece] do
    value = value .. record[name .. piece]
    piece = piece + 1
  end
  return value
end
local function described()
  return { text('u'), text('c'), text('s'), text('i') or false, created - record.t, text('o'), text('d'), text('r'),
    record.h or false, created, record.p or false, record.J or false, record.S or false, text('N') or false,
    record.A and tonumber(record.A) or false }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat > 0 then
  record = {}
  for at = 1, #flat, 2 do record[flat[at]] = flat[at + 1] end
  created = tonumber(record.b)
  refreshed = created + (record.f or 0)
  if now >= created + record.k * 1000 then record = nil end
end
local function list(name)
  local all = {}
  for each in string.gmatch(text(name), '[^ ]+') do all[#all + 1] = each end
  return all
end
-- Seconds from creation on, never fewer than before.
local function needed(lifetime)
  return math.max(record.k, math.ceil(lifetime / 1000))
end

local function history()
  return string.match(replication, 'master_replid:(%x+)')
end
local request = cjson.decode(ARGV[2])

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end

local function is_ended(times)
  return created <= math.max(request.revokedBefore, request.watermark or 0, highest(times))
end

local function put_all(set, list)
  for _, each in ipairs(list) do set[each] = true end
  return set
end
local function common(list, set)
  local both = {}
  for _, each in ipairs(list) do
    if set[each] then both[#both + 1] = each end
  end
  return both
end
local function scopes_at(access, audience)
  local rules = access.at and access.at[audience]
  return rules and rules.scopes or access.allowedScopes
end
local function narrow(access)
  local audiences = common(list('d'), put_all({}, access.allowedAudiences))
  local covered = put_all({}, audiences)
  local candidates = audiences
  if access.resource then candidates = covered[access.resource] and { access.resource } or {}
  elseif covered[access.defaultAudience] then candidates = { access.defaultAudience, unpack(audiences) } end
  if #candidates == 0 then return 'target_exceeded' end
  local allowed = {}
  if access.at then
    for each in pairs(covered) do put_all(allowed, scopes_at(access, each)) end
  else
    put_all(allowed, access.allowedScopes)
  end
  local effective = common(list('o'), allowed)
  local asked = access.scope or effective
  if #common(asked, put_all({}, effective)) < #asked then return 'scope_exceeded' end
  local issuer = access.issuer
  local of_issuer = issuer and covered[issuer] and scopes_at(access, issuer) or {}
  for _, audience in ipairs(candidates) do
    local scope = asked
    if access.at or issuer then
      local here = put_all({}, scopes_at(access, audience))
      if audience ~= issuer then
        for _, each in ipairs(of_issuer) do here[each] = nil end
      end
      scope = common(asked, here)
    end
    if #scope > 0 then return 'granted', scope, audience end
  end
  return 'scope_exceeded'
end

local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
  ['refresh_token.retried_elsewhere'] = 'a',
}

local function cap(token, audience)
  local at, macs = request.access.at, token.macAt
  token.macAt = nil
  local seconds = at and at[audience] and at[audience].maxLifetimeSeconds
  if not seconds or token.issuedAtSeconds + seconds >= token.expiresAtSeconds then return end
  token.expiresAtSeconds, token.mac = token.issuedAtSeconds + seconds, macs and macs[audience] or token.mac
end
local function write_access_token(scope, audience)
  local token = request.accessToken
  if not token then return end
  cap(token, audience)
  token.clientUid, token.clientId, token.subject = text('u'), text('c'), text('s')
  token.scope, token.audience = scope, audience
  local auth_time = created - record.t
  token.grantId, token.authTime = request.grantId, math.min(auth_time, record.A or auth_time)
  redis.call('SET', KEYS[3], cjson.encode(token), 'PX', lifetime(token.expiresAtSeconds * 1000))
end
-- A retry that gets the first answer again writes the record again: WAIT covers only the writes of its own connection.
local function write_again()
  redis.call('HSET', KEYS[1], 'g', record.g)
end
local function raise(type, action)
  local raised, letter = record.e or '', LETTERS[type]
  if string.find(raised, letter, 1, true) then return false end
  local alert = cjson.encode({
    id = request.grantId .. '.' .. type, type = type, action = action, time = now, grantId = request.grantId,
    clientUid = text('u'), clientId = text('c'), subject = text('s'),
    presentedGeneration = request.generation, currentGeneration = tonumber(record.g),
    address = request.address, lastAddress = record.l,
  })
  redis.call('HSETNX', KEYS[2], request.grantId .. '.' .. type, alert)
  redis.call('HSET', KEYS[1], 'e', raised .. letter)
  return alert
end
local function revoke_with(type)
  redis.call('HSET', KEYS[1], 'z', 1)
  return raise(type, 'grant_revoked')
end

if not record then return { 'gone' } end
if text('u') ~= request.clientUid then return { 'no_match' } end
if is_ended(watermarks(4)) then return { 'ended' } end
if record.z or record['v' .. request.attemptId] then return { 'gone' } end
-- The refresh token proves that its code was redeemed. A fail-over has lost that: the token is newer than the record.
local is_unknown = not record.g and record.m and record.m ~= history()
if not record.g and not is_unknown then return { 'gone' } end
local current = tonumber(record.g or -1)
if now >= refreshed + request.idleLifetime or now >= created + request.absoluteLifetime then return { 'gone' } end
if request.isPublic then
  -- A fail-over has lost the redemption, and the key with it: that of the code is the same one.
  local key = record.B or is_unknown and record.J
  if key and key ~= request.confirmation or not key and request.rotation == 'Never' then return { 'bad_proof' } end
end

local presented, outcome = request.generation, nil
local retries = {}
for name in pairs(record) do
  if string.sub(name, 1, 1) == 'q' then retries[#retries + 1] = name end
end
local in_grace = request.reuseGrace > 0 and not record.n and now - refreshed <= request.reuseGrace
if record.a == 'r' .. request.attemptId then outcome = 'rotated'
elseif record.a == 'h' .. request.attemptId then outcome = 'healed'
elseif presented == current then outcome = 'rotated'
-- The successor was never delivered: its predecessor is rotated as if for the first time.
elseif presented == current - 1 and record.y and #retries == 0 then outcome = 'rotated'
elseif presented == current - 1 and in_grace then outcome = 'benign_retry'
elseif presented > current then outcome = 'healed'
else return { 'reused', revoke_with('refresh_token.reuse_detected') } end

local covered, scope, audience = narrow(request.access)
if covered ~= 'granted' then return { covered } end
local attempt = string.sub(outcome, 1, 1) .. request.attemptId
local again = record.a == attempt
if not again then write_access_token(scope, audience) end
if again or outcome == 'benign_retry' then
  write_again()
  redis.call('HSET', KEYS[1], 'q' .. ((again or #retries >= 8) and '*' or request.attemptId), '')
  return { outcome, described(), current, scope, audience, false, outcome == 'benign_retry' and record.l }
end

local alert = outcome == 'healed' and raise('state_lost', 'healed_forward')
local rotates = request.rotation == 'Always'
local generation = math.max(current, rotates and presented + 1 or presented)
if record.y or #retries > 0 then redis.call('HDEL', KEYS[1], 'y', unpack(retries)) end
local kept = needed(request.retention)
redis.call('HSET', KEYS[1], 'g', generation, 'f', now - created, 'k', kept, 'l', request.address, 'a', attempt)
if generation == presented then redis.call('HSET', KEYS[1], 'n', 1) elseif record.n then redis.call('HDEL', KEYS[1], 'n') end
if record.N then
  local nonce = { 'N' }
  while record['N' .. #nonce] do nonce[#nonce + 1] = 'N' .. #nonce end
  redis.call('HDEL', KEYS[1], unpack(nonce))
  for _, piece in ipairs(nonce) do record[piece] = nil end
end
if is_unknown then
  redis.call('HDEL', KEYS[1], 'm', 'w')
  -- As at the redemption: without it the next request could have any key.
  if request.isPublic and request.confirmation then redis.call('HSET', KEYS[1], 'B', request.confirmation) end
end
if kept > tonumber(record.k) then expire(KEYS[1], created + kept * 1000) end
return { outcome, described(), generation, scope, audience, alert }
end
return cjson.encode(answer())

-- grantStatus
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
local function answer()

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local record, created, refreshed
local function text(name)
  local value, piece = record[name], 1
  while record[name .. piece] do
    value = value .. record[name .. piece]
    piece = piece + 1
  end
  return value
end
local function described()
  return { text('u'), text('c'), text('s'), text('i') or false, created - record.t, text('o'), text('d'), text('r'),
    record.h or false, created, record.p or false, record.J or false, record.S or false, text('N') or false,
    record.A and tonumber(record.A) or false }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat > 0 then
  record = {}
  for at = 1, #flat, 2 do record[flat[at]] = flat[at + 1] end
  created = tonumber(record.b)
  refreshed = created + (record.f or 0)
  if now >= created + record.k * 1000 then record = nil end
end
local function list(name)
  local all = {}
  for each in string.gmatch(text(name), '[^ ]+') do all[#all + 1] = each end
  return all
end
-- Seconds from creation on, never fewer than before.
local function needed(lifetime)
  return math.max(record.k, math.ceil(lifetime / 1000))
end

if not record then return { false } end
local state = { described(), record.z or false, record.g or false, refreshed }
state[5] = highest(watermarks(2))
return state
end
return cjson.encode(answer())

-- grantStatusApart
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
local function answer()

local function watermarks(first, last)
  return redis.call('MGET', unpack(KEYS, first, last))
end
local function highest(times)
  local found = 0
  for _, time in ipairs(times) do found = math.max(found, time or 0) end
  return found
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end

local record, created, refreshed
local function text(name)
  local value, piece = record[name], 1
  while record[name .. piece] do
    value = value .. record[name .. piece]
    piece = piece + 1
  end
  return value
end
local function described()
  return { text('u'), text('c'), text('s'), text('i') or false, created - record.t, text('o'), text('d'), text('r'),
    record.h or false, created, record.p or false, record.J or false, record.S or false, text('N') or false,
    record.A and tonumber(record.A) or false }
end
local flat = redis.call('HGETALL', KEYS[1])
if #flat > 0 then
  record = {}
  for at = 1, #flat, 2 do record[flat[at]] = flat[at + 1] end
  created = tonumber(record.b)
  refreshed = created + (record.f or 0)
  if now >= created + record.k * 1000 then record = nil end
end
local function list(name)
  local all = {}
  for each in string.gmatch(text(name), '[^ ]+') do all[#all + 1] = each end
  return all
end
-- Seconds from creation on, never fewer than before.
local function needed(lifetime)
  return math.max(record.k, math.ceil(lifetime / 1000))
end

if not record then return { false } end
local state = { described(), record.z or false, record.g or false, refreshed }
state[5] = highest(watermarks(2))
return state
end
return cjson.encode(answer())

-- grantUndelivered
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

local moved, renewed = unpack(redis.call('HMGET', KEYS[1], 'a', 'n'))
if not renewed and (moved == 'r' .. ARGV[2] or moved == 'h' .. ARGV[2]) then redis.call('HSET', KEYS[1], 'y', 1) end
redis.call('HDEL', KEYS[1], 'q' .. ARGV[2])

-- grantVoid
#!lua flags=allow-oom
local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end

if redis.call('EXISTS', KEYS[1]) == 0 then return end
local moved = redis.call('HGET', KEYS[1], 'a') or ''
if string.find(moved, '^[crh]') and string.sub(moved, 2) == ARGV[2] then
  redis.call('HSET', KEYS[1], 'z', 1)
else
  redis.call('HSET', KEYS[1], 'v' .. ARGV[2], '')
end
