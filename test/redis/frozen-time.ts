// Time that stands still in Redis, too: for histories whose every millisecond a model predicts. Only the line that reads
// the server's clock is replaced; the time travels where else the clock's offset does.

import { expect } from 'vitest';
import type { RedisConnection } from '../../src/redis/connection.ts';
import type { PlainRead, Script } from '../../src/redis/script.ts';

const READS_CLOCK = /^local now = .*$/m;

/** A connection whose scripts take the offset they are given for the time itself. */
export function frozen(connection: RedisConnection): RedisConnection {
  const scripts = new Map<Script, Script>();
  function stillAction(action: Script | PlainRead): Script | PlainRead {
    return 'lua' in action ? still(action) : action;
  }
  function still(script: Script): Script {
    const known = scripts.get(script);
    if (known !== undefined) return known;
    if (script.lua.includes("'TIME'")) expect(script.lua).toMatch(READS_CLOCK);
    const made = { ...script, lua: script.lua.replace(READS_CLOCK, 'local now = tonumber(ARGV[1])') };
    scripts.set(script, made);
    return made;
  }
  return {
    crossesSlots: connection.crossesSlots,
    run: (action, keys, args) => connection.run(stillAction(action), keys, args),
    runDurably: (script, keys, args) => connection.runDurably(still(script), keys, args),
    remember: (script, keys, args) => connection.remember(still(script), keys, args),
    close: () => connection.close(),
  };
}
