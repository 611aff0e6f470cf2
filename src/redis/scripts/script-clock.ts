// What time it is in a script. Redis' own clock decides, so that replicas of grantry need not agree; its expiry of keys is
// housekeeping only, and every script judges by `now`.

/**
 * Lua: `now` in epoch milliseconds (the server's time and the offset that each script gets first), and
 * `expire(key, at)`, which lets Redis drop a key some time after `at`; `lifetime(at)` is what its own commands take for that.
 */
export const CLOCK = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end
`;
