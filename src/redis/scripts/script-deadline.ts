// A script that waited, in the socket of a server that was stopped, say, would run when its request has long been refused and
// somebody else has done what was asked. One that must not do so is told until when it may run, in the server's own time.

/** Lua that refuses with LATE, before anything else, once the time in the last ARGV is over; milliseconds. */
export function withinDeadline(lua: string): string {
  return `local clock = redis.call('TIME')
if clock[1] * 1000 + clock[2] / 1000 > tonumber(ARGV[#ARGV]) then
  return redis.error_reply('LATE nobody waits for this any more')
end
${lua}`;
}
