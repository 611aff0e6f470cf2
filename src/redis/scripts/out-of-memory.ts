// The error by which Redis refuses a write while its memory is full (`maxmemory` with `noeviction`), for scripts that
// can do without the write.

/** Lua: `is_out_of_memory(reply)`, whether a reply of `redis.pcall` is that error. */
export const OUT_OF_MEMORY = `
local function is_out_of_memory(reply)
  return type(reply) == 'table' and string.find(reply.err or '', '^-?OOM') ~= nil
end
`;
