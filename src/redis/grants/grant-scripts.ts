// The Lua scripts of grants: the state tables of `oauth/ports/grant-store.ts`, one script per action; `issue-script.ts` has
// the one that begins a grant.
// `memory/grants.ts` is the same in TypeScript; `grants.ts` calls the scripts.

import type { Script } from '../scripts/script.ts';
import { CLOCK, NOW } from '../scripts/script-clock.ts';
import { HISTORY } from '../scripts/server-history.ts';
import { WATERMARKS } from '../stores/watermarks.ts';
import { EFFECTS, KILL_SWITCHES, NARROW, RECORD } from './grant-record.ts';

/**
 * A script that replies with one string, its list as JSON: ioredis spends as much time on parsing a list reply value by
 * value as on all the rest of the call.
 */
function answering(lua: string): string {
  return `local function answer()\n${lua}end\nreturn cjson.encode(answer())`;
}

const REDEMPTION = answering(`${NOW}${RECORD}${HISTORY}local request = cjson.decode(ARGV[2])
${KILL_SWITCHES}${NARROW}${EFFECTS}
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
`);

/**
 * KEYS grant, outbox, access token; ARGV offset, the RedeemRequest as JSON. After those keys come the client's
 * watermark, the global one, and the upper bound of the watermarks of all people of the shard. The script reads them in
 * the same atomic action; the reply says whether the grant is newer than that bound.
 */
export const REDEEM: Script = { name: 'grantRedeem', keys: 6, lua: REDEMPTION, hasDeadline: true };

/** {@link REDEEM} without the client's watermark, for a Cluster, where that is in another slot. */
export const REDEEM_CROSS_SLOT: Script = { ...REDEEM, name: 'grantRedeemApart', keys: 5 };

/**
 * How many concurrent retries of one successor are recorded by attempt id; with one more, `q*` rules out their
 * compensation.
 */
const MAX_CONCURRENT_RETRIES = 8;

const ROTATION = answering(`${NOW}${RECORD}${HISTORY}local request = cjson.decode(ARGV[2])
${KILL_SWITCHES}${NARROW}${EFFECTS}
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
  redis.call('HSET', KEYS[1], 'q' .. ((again or #retries >= ${MAX_CONCURRENT_RETRIES}) and '*' or request.attemptId), '')
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
`);

/**
 * KEYS grant, outbox, access token; ARGV offset, the RotateRequest as JSON. After those keys come the four watermarks
 * of the grant, which the script reads in the same atomic action.
 */
export const ROTATE: Script = { name: 'grantRotate', keys: 7, lua: ROTATION, hasDeadline: true };

/**
 * {@link ROTATE} for a Cluster, where the client's watermark is in another slot: the caller reads it and passes it as
 * `watermark` of the request. The global one is the copy in the person's shard.
 */
export const ROTATE_CROSS_SLOT: Script = { ...ROTATE, name: 'grantRotateApart', keys: 6 };

/**
 * KEYS grant; ARGV offset, attempt id. Compensates a redemption or rotation whose answer was not delivered: the grant
 * is revoked, so that a client that presents the same again gets `gone` and raises no alert. An attempt that has not
 * run yet, and may still be in flight, is blocked by its `v` field. Other attempts are not affected, so the script is
 * safe to apply late or twice.
 */
export const VOID: Script = {
  name: 'grantVoid',
  keys: 1,
  allowsOom: true,
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
 * KEYS grant; ARGV offset, attempt id. Records that the answer of this attempt was not delivered: its predecessor may
 * be rotated again unless a concurrent retry returned the same successor. An attempt that is not the last transition
 * only loses its `q` field, so the script is safe to apply late or twice.
 */
export const UNDELIVERED: Script = {
  name: 'grantUndelivered',
  keys: 1,
  allowsOom: true,
  lua: `
local moved, renewed = unpack(redis.call('HMGET', KEYS[1], 'a', 'n'))
if not renewed and (moved == 'r' .. ARGV[2] or moved == 'h' .. ARGV[2]) then redis.call('HSET', KEYS[1], 'y', 1) end
redis.call('HDEL', KEYS[1], 'q' .. ARGV[2])
`,
};

/** KEYS grant; ARGV offset. A missing grant was never issued, or is past every lifetime: there is nothing to revoke. */
export const REVOKE: Script = {
  name: 'grantRevoke',
  keys: 1,
  allowsOom: true,
  lua: "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('HSET', KEYS[1], 'z', 1) end return 0",
};

/** Lua: `state`, that of the grant, in the order of the reply. */
const STATE = `${CLOCK}${RECORD}
if not record then return { false } end
local state = { described(), record.z or false, record.g or false, refreshed }
`;

/** KEYS grant; ARGV offset. */
export const READ: Script = { name: 'grantRead', keys: 1, lua: answering(`${STATE}return state\n`) };

/** KEYS grant, the four watermarks of its parties; ARGV offset. */
export const STATUS: Script = {
  name: 'grantStatus',
  keys: 5,
  lua: answering(`${WATERMARKS}${STATE}state[5] = highest(watermarks(2))\nreturn state\n`),
};

/** {@link STATUS} without the client's watermark, for a Cluster, where that is in another slot. */
export const STATUS_CROSS_SLOT: Script = { ...STATUS, name: 'grantStatusApart', keys: 4 };
