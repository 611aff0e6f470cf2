// Redis lets a replica run whatever only reads, and what would write up to its first write. One that was just made a replica,
// or came back as one, may be behind or empty: what it says is no answer.

/** Lua that refuses with READONLY where it does not run on a primary, before anything else. */
export function primaryOnly(lua: string): string {
  return `local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY a replica is not asked')
end
${lua}`;
}
