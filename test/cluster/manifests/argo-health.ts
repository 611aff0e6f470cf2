// The health of an object as Argo CD reports it: a Lua script of its ConfigMap, run by a real Lua 5.1 with what Argo CD gives a
// script and nothing else.

import { spawnSync } from 'node:child_process';
import type { Manifest } from '../setup/cluster.ts';

/** What a script comes to. */
export interface ArgoHealth {
  readonly status: string;
  readonly message: string;
}

/** Whether there is a Lua to run scripts with. */
export const hasLua = spawnSync('lua5.1', ['-v']).status === 0;

/** Argo CD opens the basic functions, `table` and a narrowed `os` for the scripts of users; ours needs no `os`. */
const CLOSED = ['string', 'math', 'io', 'os', 'debug', 'coroutine', 'require', 'package', 'dofile', 'loadfile'];

/** Runs a health check of argocd-cm. @throws what Lua says of a script that fails */
export function argoHealth(script: string, object: Manifest): ArgoHealth {
  // Argo CD asks no script about what is being deleted.
  if (object.metadata.deletionTimestamp !== undefined) return { status: 'Progressing', message: 'Pending deletion' };
  const program = `
    local write, load = io.write, loadstring
    local script = ${luaString(script)}
    obj = ${luaValue(object)}
    getmetatable("").__index = nil
    for _, name in ipairs({ ${CLOSED.map(luaString).join(', ')} }) do _G[name] = nil end
    local health = assert(load(script, "health"))()
    write(health.status, "\\n", health.message or "")
  `;
  const { status, stdout, stderr } = spawnSync('lua5.1', ['-'], { input: program, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  const [said = '', ...message] = stdout.split('\n');
  return { status: said, message: message.join('\n') };
}

function luaValue(value: unknown): string {
  if (value === null || value === undefined) return 'nil';
  if (typeof value === 'string') return luaString(value);
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `{ ${value.map(luaValue).join(', ')} }`;
  const fields = Object.entries(value).map(([name, member]) => `[${luaString(name)}] = ${luaValue(member)}`);
  return `{ ${fields.join(', ')} }`;
}

function luaString(text: string): string {
  const bytes = [...Buffer.from(text)].map((byte) => `\\${String(byte).padStart(3, '0')}`);
  return `"${bytes.join('')}"`;
}
