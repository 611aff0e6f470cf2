// Holds src/ to the layer table, and holds the reader of the table to account: each kind of wrong arrow is tried on a
// small tree made for it.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { layerFaults } from './layers.ts';

const made: string[] = [];

afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true });
});

/** A source tree with these files; every file that is only imported exists as an empty module. */
function tree(files: Record<string, string>): string {
  const src = mkdtempSync(join(tmpdir(), 'grantry-layers-'));
  made.push(src);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(src, path)), { recursive: true });
    writeFileSync(join(src, path), text);
  }
  return src;
}

describe('the sources', () => {
  it('import only what lies below them, and the protocol reaches for nothing outside', () => {
    expect(layerFaults(join(import.meta.dirname, '..', 'src'))).toEqual([]);
  });
});

describe('the layer table', () => {
  it.each([
    ['the protocol imports an adapter', 'oauth/scope.ts', "import { a } from '../http/form.ts';"],
    ['the protocol imports the judge', 'oauth/scope.ts', "import { a } from '../admission/conditions.ts';"],
    ['an adapter imports its sibling', 'http/token.ts', "import { a } from '../memory/stores.ts';"],
    ['an adapter imports its sibling for a type', 'login/users.ts', "import type { A } from '../http/endpoint.ts';"],
    ['an adapter re-exports its sibling', 'memory/stores.ts', "export { a } from '../redis/stores.ts';"],
    ['an adapter re-exports all of its sibling', 'memory/stores.ts', "export * from '../redis/stores.ts';"],
    ['an adapter imports a process', 'manifests/folder.ts', "import { a } from '../processes/config.ts';"],
    ['a store imports the judge', 'memory/stores.ts', "import { a } from '../admission/conditions.ts';"],
    ['an import runs late', 'oauth/scope.ts', "export const late = () => import('../http/form.ts');"],
    ['an import hides in a type', 'oauth/scope.ts', "export type A = import('../http/form.ts').A;"],
    ['an import is computed', 'oauth/scope.ts', 'export const late = (name: string) => import(name);'],
    ['an import has no names', 'admission/admit.ts', "import '../manifests/folder.ts';"],
    ['a path takes a detour', 'http/token.ts', "import { a } from '../oauth/../memory/stores.ts';"],
    ['a process imports the commands', 'processes/dev.ts', "import { a } from '../main.ts';"],
    ['the commands import an adapter', 'main.ts', "import { a } from './http/server.ts';"],
    ['the published library imports an adapter', 'resource-server/verify.ts', "import { a } from '../http/form.ts';"],
    ['a file lies outside every part', 'utils/strings.ts', 'export const a = 1;'],
  ])('refuses it when %s', (_, path, text) => {
    expect(layerFaults(tree({ [path]: text }))).toEqual([expect.stringContaining(`${path}: `)]);
  });

  it.each([
    ['sockets', "import { createServer } from 'node:http';"],
    ['TCP', "import net from 'net';"],
    ['files', "import { readFile } from 'node:fs/promises';"],
    ['the environment', 'export const a = process.env.HOME;'],
    ['the clock', 'export const a = Date.now();'],
    ['the clock, as a function', 'export const a = Date.now;'],
    ['the clock, as a date', 'export const a = new Date();'],
    ['chance', 'export const a = Math.random();'],
    ['chance of the platform', 'export const a = crypto.randomUUID();'],
    ['a log', "console.log('a');"],
    ['a timer', 'setTimeout(() => {}, 1);'],
    ['the network', "export const a = fetch('https://example.com');"],
  ])('refuses a protocol that reaches for %s', (_, text) => {
    expect(layerFaults(tree({ 'oauth/scope.ts': text }))).toEqual([expect.stringContaining('oauth/scope.ts: ')]);
    expect(layerFaults(tree({ 'admission/admit.ts': text }))).toEqual([
      expect.stringContaining('admission/admit.ts: '),
    ]);
  });

  it('lets the configuration read the environment, and the commands hand it on and end the process', () => {
    const files = { 'processes/dev.ts': 'process.exit(1); export const a = process.env.HOME;' };
    expect(layerFaults(tree(files))).toHaveLength(2);
    const allowed = {
      'processes/config/config.ts': 'export const a = process.env;',
      'main.ts': 'process.exit(1); run(process.env);',
    };
    expect(layerFaults(tree(allowed))).toEqual([]);
  });

  it('allows every arrow that points down, packages, and what only looks like an import', () => {
    const files = {
      'main.ts': "import { a } from './processes/dev.ts';",
      'processes/dev.ts': "import { a } from '../http/server.ts'; import { b } from '../admission/admit.ts';",
      'http/token.ts':
        "import { a } from '../oauth/scope.ts'; import { b } from './form.ts'; import net from 'node:net';",
      'manifests/folder.ts': "import { a } from '../admission/admit.ts'; import { b } from 'yaml';",
      'admission/admit.ts': "import { a } from '../oauth/scope.ts'; import { z } from 'zod';",
      'oauth/grants/index.ts':
        "import { a } from '../scope.ts'; import { createHash } from 'node:crypto'; import 'jose';",
      'oauth/scope.ts': `
        // import { a } from '../http/form.ts';
        export const text = "import { a } from '../http/form.ts'; Date.now()";
        export const later = new Date(0);
        export const now = (clock: { now(): number }) => clock.now();
        export const process = (a: number) => a;`,
    };
    expect(layerFaults(tree(files))).toEqual([]);
  });
});
