// The guard that lets a script run on a primary only. A replica of Redis runs scripts up to their first write, but one
// that was just demoted, or has just started, may be behind or empty, and its answer would be a stale read.

/**
 * Lua that first checks the role of the server and refuses with READONLY on a replica. `replication` is the reply of
 * INFO: neither role nor history of a server changes within a script, so it is read once.
 */
export function primaryOnly(lua: string): string {
  return `local replication = redis.pcall('INFO', 'replication')
if replication.err then return redis.error_reply("NOPERM scripts may not run 'info'") end
if string.find(replication, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this script runs on a primary only')
end
${lua}`;
}
