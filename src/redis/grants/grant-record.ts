// The record of a grant in Redis, and the Lua that the scripts about grants share: it reads the record, evaluates it
// and writes the access token and the alerts that belong to a transition. The scripts are in `grant-scripts.ts`.
//
// A grant is one hash, small enough for the compact encoding of Redis (no value over 64 bytes: a long one continues
// under `o1`, `o2` …). Its fields:
//
//   u client uid       s subject             o scope             r redirect_uri      x of the code's secret
//   c client id        i session id, if any  d audiences         h code challenge    b created at
//   t how long before b the person signed in            k for how many seconds from b the record is needed
//   A when at the identity provider, if that is known
//   m master_replid at birth, until redemption          w wrong verifiers
//   g current generation, from redemption on            f how long after b it was last used or made
//   n 1 when it was only renewed (no rotation): its predecessor is not answered again
//   l address of the last good use                      z 1 once revoked
//   a the last transition: w wrong verifier, c redeemed, r rotated or h healed, then the attempt id
//   y the undelivered flag: 1 once the successor of the attempt in a is known not to have reached the client
//   q and an attempt id: a concurrent retry that returned the same successor; q* for retries that are not compensated
//   v and an attempt id: an attempt that was abandoned before its transition, which must not happen any more
//   j the last generation that was retried from another network, and how many in a row were: absent before the first
//   S sid, of OpenID Connect   N nonce with its MAC, until the first rotation
//   J the key that the code is bound to, if any          B that of the refresh tokens of a public client, if any
//   e alerts raised: c code replayed, r refresh token reused, a retried from another address, s state lost
//
// `x` holds the first 162 bits of the SHA-256 of the secret, no fewer than the secret itself has (160).
// Lists are joined by spaces, which neither scopes (RFC 6749 §3.3) nor resources can hold; times are milliseconds.

import { WATERMARKS } from '../stores/watermarks.ts';

/**
 * Lua: `record`, the unexpired grant of KEYS[1] or nil, and its times; `text(name)` joins the pieces of a long value.
 */
export const RECORD = `
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
`;

/**
 * Lua: `narrow(access)` is `narrowAccess` of oauth/access/access.ts over the record: outcome, scope, audience. Membership is
 * looked up in sets: a grant for many resources has a thousand scopes, and Redis runs one script at a time.
 */
export const NARROW = `
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
`;

/** Lua: the letters by which the field `e` of a grant records the alerts that were raised. */
export const LETTERS = `
local LETTERS = {
  ['authorization_code.replayed'] = 'c', ['refresh_token.reuse_detected'] = 'r', ['state_lost'] = 's',
  ['refresh_token.retried_elsewhere'] = 'a',
}
`;

/** Lua: `is_ended(times)`, whether a kill switch ends the grant: one in the request, or one of these watermarks. */
export const KILL_SWITCHES = `${WATERMARKS}
local function is_ended(times)
  return created <= math.max(request.revokedBefore, request.watermark or 0, highest(times))
end
`;

/**
 * Lua: what redeem and rotate write in addition to the grant: the opaque access token (KEYS[3]) and alerts (KEYS[2]).
 * `cap(token, audience)` is `cappedToken` of oauth/access/access.ts.
 */
export const EFFECTS = `${LETTERS}
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
`;
