// By what a server is known again: what it writes is another history after every promotion and restart.

/** Lua: `history()`, the name of the history that this server writes. */
export const HISTORY = `
local function history()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end
`;
