// The Lua of grants: the state tables of `oauth/grant-store.ts`, one script per action. `memory/grants.ts` is the same in
// TypeScript; the call and the answers are in `grants.ts`.
//
// A grant is one hash, small enough for the compact encoding of Redis (no value over 64 bytes: a long one continues
// under `o1`, `o2` …). Its fields:
//
//   u client uid       s subject             o scope             r redirect_uri      x of the code's secret
//   c client id        i session id, if any  d audiences         h code challenge    b created at
//   t how long before b the person signed in            k for how many seconds from b the record is needed
//   m master_replid at birth, until redemption          w wrong verifiers
//   g current generation, from redemption on            f how long after b it was last used or made
//   n 1 when it was only renewed (no rotation): its predecessor is not answered again
//   l address of the last good use                      z 1 once revoked
//   a the try that last moved the record: w wrong verifier, c redeemed, r rotated or h healed, then its id
//   v and the id of a try: it was given up before it moved the record, and must not do so any more
//   e alerts raised: c code replayed, r refresh token reused, s state lost
//
// Of the SHA-256 of the secret `x` has the first 162 bits, no fewer than the secret itself has (160).
// Lists are joined by spaces, which neither scopes (RFC 6749 §3.3) nor resources can hold; times are milliseconds.

import type { Script } from './script.ts';
import { CLOCK } from './script-clock.ts';
import { HIGHEST_WATERMARK } from './watermarks.ts';

/** Lua: `record`, the living grant of KEYS[1] or nil, and its times; `text(name)` joins the pieces of a long value. */
const RECORD = `
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
    record.h or false, created }
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
`;

/** Lua: the name of the history this server writes; another one after every promotion and restart. */
const HISTORY = `
local function history()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end
`;

/** Lua: `narrow(access)` is `narrowAccess` of oauth/access.ts over the record: outcome, scope, audience. */
const NARROW = `
local function has(list, wanted)
  for _, each in ipairs(list) do
    if each == wanted then return true end
  end
  return false
end
local function common(list, other)
  local both = {}
  for _, each in ipairs(list) do
    if has(other, each) then both[#both + 1] = each end
  end
  return both
end
local function narrow(access)
  local living = common(list('o'), access.allowedScopes)
  local scope = access.scope or living
  if #scope == 0 or #common(scope, living) < #scope then return 'scope_exceeded' end
  local audiences = common(list('d'), access.allowedAudiences)
  local preferred = has(audiences, access.defaultAudience) and access.defaultAudience or audiences[1]
  local audience = access.resource or preferred
  if not has(audiences, audience) then return 'target_exceeded' end
  return 'granted', scope, audience
end
`;

/** Lua: what a grant remembers an alert by. */
const LETTERS = `
local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
}
`;

/** Lua: `is_ended()`, whether a kill switch ends the grant, where the request wants that judged; `watermarks` are KEYS from 4 on. */
const KILL_SWITCHES = `${HIGHEST_WATERMARK}
local function is_ended()
  if not request.revokedBefore then return false end
  local seen = #KEYS > 3 and highest_watermark(4) or request.watermark or 0
  return created <= math.max(request.revokedBefore, seen)
end
`;

/** Lua: what redeem and rotate write besides the grant: the opaque access token (KEYS[3]) and alerts (KEYS[2]). */
const EFFECTS = `${LETTERS}
local function write_access_token(scope, audience)
  local token = request.accessToken
  if not token then return end
  token.clientUid, token.clientId, token.subject = text('u'), text('c'), text('s')
  token.scope, token.audience = scope, audience
  token.grantId, token.authTime = request.grantId, created - record.t
  redis.call('SET', KEYS[3], cjson.encode(token), 'PX', lifetime(token.expiresAtSeconds * 1000))
end
-- What was done before is written again where it is answered again: WAIT waits for what its own connection wrote.
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
`;

/** KEYS grant; ARGV offset, code lifetime, authTime, SHA-256 of the secret, then the other fields of the record, name and value in turn. */
export const ISSUE: Script = {
  name: 'grantIssue',
  keys: 1,
  lua: `${CLOCK}${HISTORY}
-- Written twice, a grant stays what it has become.
if redis.call('EXISTS', KEYS[1]) == 1 then return end
local fields = { 'b', now, 'k', math.ceil(ARGV[2] / 1000), 't', now - ARGV[3], 'x', string.sub(ARGV[4], 1, 27), 'm', history() }
for at = 5, #ARGV, 2 do
  local name, value = ARGV[at], ARGV[at + 1]
  for from = 1, math.max(1, #value), 63 do
    fields[#fields + 1] = from == 1 and name or name .. (from - 1) / 63
    fields[#fields + 1] = string.sub(value, from, from + 62)
  end
end
redis.call('HSET', KEYS[1], unpack(fields))
expire(KEYS[1], now + ARGV[2])
`,
};

const REDEMPTION = `${CLOCK}${RECORD}${HISTORY}local request = cjson.decode(ARGV[2])
${KILL_SWITCHES}${NARROW}${EFFECTS}
if not record or record.z or tonumber(record.w or 0) >= 5 then return { 'gone' } end
if record['v' .. request.attemptId] then return { 'gone' } end
local is_match = record.x == string.sub(request.secretHash, 1, 27) and text('u') == request.clientUid
local is_here = text('r') == request.redirectUri
local right = record.h and record.h == request.verifierChallenge
-- A fail-over may have lost the redemption of this code; one that is known to be redeemed tells a replay by itself. What a
-- lost one has given, if anything, ends with the replay all the same.
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
  redis.call('HDEL', KEYS[1], 'm', 'w')
  expire(KEYS[1], created + kept * 1000)
end
if is_ended() then return { 'ended' } end
return { 'redeemed', described(), scope, audience }
`;

/** KEYS grant, outbox, access token; ARGV offset, the RedeemRequest as JSON. */
export const REDEEM: Script = { name: 'grantRedeem', keys: 3, lua: REDEMPTION };

/** The same and, after those keys, the four watermarks of the grant, read in the moment of the redemption. */
export const REDEEM_AND_LOOK: Script = { name: 'grantRedeemAndLook', keys: 7, lua: REDEMPTION };

const ROTATION = `${CLOCK}${RECORD}local request = cjson.decode(ARGV[2])
${KILL_SWITCHES}${NARROW}${EFFECTS}
if not record then return { 'gone' } end
if text('u') ~= request.clientUid then return { 'no_match' } end
if is_ended() then return { 'ended' } end
if record.z or not record.g or record['v' .. request.attemptId] then return { 'gone' } end
local current = tonumber(record.g)
if now >= refreshed + request.idleLifetime or now >= created + request.absoluteLifetime then return { 'gone' } end

local presented, outcome = request.generation, nil
local in_grace = request.reuseGrace > 0 and not record.n and now - refreshed <= request.reuseGrace
if record.a == 'r' .. request.attemptId then outcome = 'rotated'
elseif record.a == 'h' .. request.attemptId then outcome = 'healed'
elseif presented == current then outcome = 'rotated'
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
  return { outcome, described(), current, scope, audience, false }
end

local alert = outcome == 'healed' and raise('state_lost', 'healed_forward')
local rotates = request.rotation == 'Always'
local generation = rotates and presented + 1 or presented
local kept = needed(request.absoluteLifetime)
redis.call('HSET', KEYS[1], 'g', generation, 'f', now - created, 'k', kept, 'l', request.address, 'a', attempt)
if not rotates then redis.call('HSET', KEYS[1], 'n', 1) elseif record.n then redis.call('HDEL', KEYS[1], 'n') end
if kept > tonumber(record.k) then expire(KEYS[1], created + kept * 1000) end
return { outcome, described(), generation, scope, audience, alert }
`;

/** KEYS grant, outbox, access token; ARGV offset, the RotateRequest as JSON, with `watermark` where no key says it. */
export const ROTATE: Script = { name: 'grantRotate', keys: 3, lua: ROTATION };

/** The same and, after those keys, the four watermarks of the grant, read in the moment of the rotation. */
export const ROTATE_AND_LOOK: Script = { name: 'grantRotateAndLook', keys: 7, lua: ROTATION };

/**
 * KEYS grant; ARGV offset, attempt id. Ends what this try redeemed or rotated and nobody was told of: the grant is `gone`
 * then, and a client that presents the same again raises nothing. A try that has not moved it, it may be on its way still,
 * never will; to all others the record stays what it is, so this may be applied late or again.
 */
export const VOID: Script = {
  name: 'grantVoid',
  keys: 1,
  lua: `
if redis.call('EXISTS', KEYS[1]) == 0 then return end
local moved = redis.call('HGET', KEYS[1], 'a') or ''
if string.find(moved, '^[crh]') and string.sub(moved, 2) == ARGV[2] then
  redis.call('HSET', KEYS[1], 'z', 1)
else
  redis.call('HSET', KEYS[1], 'v' .. ARGV[2], '')
end
`,
};

/**
 * KEYS grant, outbox; ARGV offset, an alert. Does again what raised it, where a fail-over has lost that. A grant that
 * remembers the alert has lost nothing: it waits in the outbox, or is delivered.
 */
export const RAISE_AGAIN: Script = {
  name: 'grantRaiseAgain',
  keys: 2,
  lua: `${LETTERS}
if redis.call('EXISTS', KEYS[1]) == 0 then return end
local alert = cjson.decode(ARGV[2])
if alert.action == 'grant_revoked' then redis.call('HSET', KEYS[1], 'z', 1) end
local raised, letter = redis.call('HGET', KEYS[1], 'e') or '', LETTERS[alert.type]
if string.find(raised, letter, 1, true) then return end
redis.call('HSETNX', KEYS[2], alert.id, ARGV[2])
redis.call('HSET', KEYS[1], 'e', raised .. letter)
`,
};

/** KEYS grant; ARGV offset. A grant that is not there was never issued, or is past every lifetime: nothing to wait for. */
export const REVOKE: Script = {
  name: 'grantRevoke',
  keys: 1,
  lua: "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'z', 1) end",
};

/** KEYS grant; ARGV offset. */
export const READ: Script = {
  name: 'grantRead',
  keys: 1,
  lua: `${CLOCK}${RECORD}
if not record then return false end
return { described(), record.z or false, record.g or false, refreshed }
`,
};
