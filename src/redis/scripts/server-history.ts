// The replication id by which a script recognises its server: a server gets a new one with every promotion and restart.

/**
 * Lua: `history()`, the `master_replid` of the server: the name of the replication history that it writes, from the
 * `replication` of `primary-only.ts`.
 */
export const HISTORY = `
local function history()
  return string.match(replication, 'master_replid:(%x+)')
end
`;
