// The deadline of a script. A script that was delayed, for example in the socket of a stopped server, would run after
// its request was refused and a retry has succeeded elsewhere. A script that must not run late gets a deadline in the
// server's own time.

/**
 * Lua that first compares the server's time with the last ARGV, in milliseconds, and refuses with LATE if it is past. The
 * script takes its own time from the same `time`, by `NOW`.
 */
export function withinDeadline(lua: string): string {
  return `local time = redis.call('TIME')
if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[#ARGV]) then
  return redis.error_reply('LATE the deadline of the request has passed')
end
${lua}`;
}
