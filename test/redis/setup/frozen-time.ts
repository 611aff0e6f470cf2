// Time that stands still in Redis, too: for histories whose every millisecond a model predicts. Only the line that reads
// the server's clock is replaced; the time travels where else the clock's offset does.

import { expect } from 'vitest';
import type { Clock } from '../../../src/oauth/ports/ports.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import type { Action, PlainRead, Script } from '../../../src/redis/scripts/script.ts';
import { methodsOf } from './connect.ts';
import { connectPatiently } from './patience.ts';

const READS_CLOCK = /^local now = .*$/m;

/** A connection whose scripts take the offset they are given for the time itself. */
export function frozen(connection: ManagedConnection): ManagedConnection {
  const scripts = new Map<Script, Script>();
  function still<Of extends Script | PlainRead>(action: Action<Of>): Action<Of | Script> {
    return { ...action, script: 'lua' in action.script ? stillScript(action.script) : action.script };
  }
  function stillScript(script: Script): Script {
    const known = scripts.get(script);
    if (known !== undefined) return known;
    if (/'TIME'|\btime\[/.test(script.lua)) expect(script.lua).toMatch(READS_CLOCK);
    const made = { ...script, lua: script.lua.replace(READS_CLOCK, 'local now = tonumber(ARGV[1])') };
    scripts.set(script, made);
    return made;
  }
  return Object.assign(methodsOf(connection), {
    run: (action, deadline) => connection.run(still(action), deadline),
    runDurably: (action, deadline) => connection.runDurably(still(action), deadline),
    recordForReplay: (action) => connection.recordForReplay(still(action)),
  } satisfies Partial<ManagedConnection>);
}

/** Connects to a server whose time is that of this clock: what stands still here must not go on there meanwhile. */
export async function connectFrozen(server: { readonly url: string }, clock: Clock): Promise<ManagedConnection> {
  return frozen(await connectPatiently(server, { clockOffset: () => clock.now() }));
}
