// The clock of a script. The clock of Redis decides, so that the clocks of grantry's replicas need not agree. The TTL
// of keys is housekeeping only: every script compares with `now`.

/**
 * Lua: `now` in epoch milliseconds (the server's time plus the clock offset in ARGV[1]), and `expire(key, at)`, which
 * sets the TTL of a key so that Redis drops it at or after `at`; `lifetime(at)` is that TTL for other commands, in
 * milliseconds. For a script with a deadline, which has read `time` already (`script-deadline.ts`).
 */
export const NOW = `
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local function lifetime(at)
  return math.max(1, math.min(math.ceil(at - now), 1e13))
end
local function expire(key, at)
  redis.call('PEXPIRE', key, lifetime(at))
end
`;

/** Lua: the same for a script without a deadline. */
export const CLOCK = `
local time = redis.call('TIME')${NOW}`;
