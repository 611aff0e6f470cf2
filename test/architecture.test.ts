// Holds src/ to the layer table, and holds the reader of the table to account: each kind of wrong arrow is tried on a
// small tree made for it.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { FOLDERS, filesInCircles, layerFaults } from './layers.ts';

const ROOT = join(import.meta.dirname, '..');
/** Folders are read from top to bottom, and no further than this. */
const MOST_FILES = 20;
/** Rows for folders that do not exist yet. */
const PLANNED: readonly string[] = [];

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

/** For each folder of a part one neighbour that it may not import; the last in a part may import all. */
function forbiddenArrows(): readonly (readonly [string, string])[] {
  return Object.entries(FOLDERS).flatMap(([folder, below]) => {
    const part = `${folder.split('/')[0]}/`;
    const neighbour = Object.keys(FOLDERS).find(
      (other) => other.startsWith(part) && other !== folder && !below.includes(other),
    );
    return folder.startsWith(part) && neighbour !== undefined ? [[folder, neighbour] as const] : [];
  });
}

describe('the sources', () => {
  it('import only what lies below them, and the protocol reaches for nothing outside', () => {
    expect(layerFaults(join(ROOT, 'src'))).toEqual([]);
  });

  it('have no circle of imports', () => {
    expect(filesInCircles(join(ROOT, 'src'))).toEqual([]);
  });

  it('have no row for a folder that is gone', () => {
    const gone = Object.keys(FOLDERS).filter((folder) => !existsSync(join(ROOT, 'src', folder)));
    expect(gone).toEqual(PLANNED);
  });

  it('lie in folders of at most twenty files, and so do tests, benchmarks and scripts', () => {
    const listed = execFileSync('git', ['ls-files', '-z', 'src', 'test', 'bench', 'scripts'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    const counts = new Map<string, number>();
    for (const file of listed.split('\0').filter(Boolean))
      counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > MOST_FILES)).toEqual([]);
  });
});

it('a circle of imports, through a type and over a folder → its files, and none that only lead to it or away', () => {
  const src = tree({
    'oauth/a.ts': "import '../oauth/b/b.ts';",
    'oauth/b/b.ts': "import type { C } from '../c.ts';",
    'oauth/c.ts': "export * from './b/../a.ts'; import './end.ts';",
    'oauth/end.ts': "import 'node:fs';",
    'oauth/begin.ts': "import './a.ts';",
  });
  expect(filesInCircles(src)).toEqual(['oauth/a.ts', 'oauth/b/b.ts', 'oauth/c.ts']);
});

describe('the layer table', () => {
  it.each([
    ['the protocol imports an adapter', 'oauth/access/scope.ts', "import { a } from '../../http/server/form.ts';"],
    ['the protocol imports admission', 'oauth/access/scope.ts', "import { a } from '../../admission/kinds/glob.ts';"],
    ['an adapter imports its sibling', 'http/protocol/token.ts', "import { a } from '../../memory/stores.ts';"],
    ['an adapter imports its sibling for a type', 'login/a.ts', "import type { A } from '../http/server/endpoint.ts';"],
    ['an adapter re-exports its sibling', 'memory/stores.ts', "export { a } from '../redis/stores.ts';"],
    ['an adapter re-exports all of its sibling', 'memory/stores.ts', "export * from '../redis/stores.ts';"],
    ['an adapter imports a process', 'manifests/folder.ts', "import { a } from '../processes/config/config.ts';"],
    ['a store imports admission', 'memory/stores.ts', "import { a } from '../admission/kinds/conditions.ts';"],
    [
      'the controller imports the registry of token servers',
      'controller/install/a.ts',
      "import '../../cluster-registry/b.ts';",
    ],
    [
      'the registry of token servers imports the controller',
      'cluster-registry/a.ts',
      "import '../controller/install/b.ts';",
    ],
    ['an import runs late', 'oauth/access/scope.ts', "export const late = () => import('../../http/server/form.ts');"],
    ['an import hides in a type', 'oauth/access/scope.ts', "export type A = import('../../http/server/form.ts').A;"],
    ['an import is computed', 'oauth/access/scope.ts', 'export const late = (name: string) => import(name);'],
    ['an import has no names', 'admission/keys/admit.ts', "import '../../manifests/folder.ts';"],
    ['a path takes a detour', 'http/protocol/token.ts', "import { a } from '../../oauth/../memory/stores.ts';"],
    ['a process imports the commands', 'processes/dev/dev.ts', "import { a } from '../../main.ts';"],
    ['the commands import an adapter', 'main.ts', "import { a } from './http/server/server.ts';"],
    [
      'the published library imports an adapter',
      'resource-server/verify.ts',
      "import { a } from '../memory/stores.ts';",
    ],
    ['the published library imports a package', 'resource-server/verify.ts', "import { a } from 'jose';"],
    ['the published library opens a socket', 'resource-server/verify.ts', "import { a } from 'node:http';"],
    [
      'the published library imports the tokens of the server',
      'resource-server/verify.ts',
      "import { a } from '../oauth/tokens/tokens.ts';",
    ],
    ['a file lies outside every part', 'utils/strings.ts', 'export const a = 1;'],
    ['a file lies in a part and in none of its folders', 'oauth/strings.ts', 'export const a = 1;'],
    ['a folder has no row', 'oauth/strings/strings.ts', 'export const a = 1;'],
  ])('refuses it when %s', (_, path, text) => {
    expect(layerFaults(tree({ [path]: text }))).toEqual([expect.stringContaining(`${path}: `)]);
  });

  it.each(forbiddenArrows())('refuses an import from %s to %s', (folder, forbidden) => {
    const file = folder.endsWith('.ts') ? folder : `${folder}/file.ts`;
    const target = forbidden.endsWith('.ts') ? forbidden : `${forbidden}/other.ts`;
    const text = `import { a } from '${relative(dirname(file), target).replace(/^(?!\.)/, './')}';`;
    expect(layerFaults(tree({ [file]: text }))).toEqual([
      `${file}: imports ${target}: ${folder} may not import ${forbidden}`,
    ]);
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
    expect(layerFaults(tree({ 'oauth/access/scope.ts': text }))).toEqual([
      expect.stringContaining('oauth/access/scope.ts: '),
    ]);
    expect(layerFaults(tree({ 'admission/keys/admit.ts': text }))).toEqual([
      expect.stringContaining('admission/keys/admit.ts: '),
    ]);
  });

  it('lets the configuration read the environment, and the commands hand it on and end the process', () => {
    const files = { 'processes/dev/dev.ts': 'process.exit(1); export const a = process.env.HOME;' };
    expect(layerFaults(tree(files))).toHaveLength(2);
    const allowed = {
      'processes/config/config.ts': 'export const a = process.env;',
      'main.ts': 'process.exit(1); run(process.env);',
    };
    expect(layerFaults(tree(allowed))).toEqual([]);
  });

  it('allows every arrow that points down, packages, and what only looks like an import', () => {
    const files = {
      'main.ts': "import { a } from './processes/dev/dev.ts';",
      'processes/dev/dev.ts':
        "import { a } from '../../http/server/server.ts'; import { b } from '../../admission/keys/admit.ts'; import '../log/log.ts';",
      'http/protocol/token.ts':
        "import { a } from '../../oauth/access/scope.ts'; import { b } from '../server/form.ts'; import net from 'node:net';",
      'manifests/folder.ts': "import { a } from '../admission/keys/admit.ts'; import { b } from 'yaml';",
      'redis/stores.ts': "import { a } from './stores/sessions.ts';",
      'admission/keys/admit.ts': "import { a } from '../../oauth/access/scope.ts'; import { z } from 'zod';",
      'oauth/grants/index.ts':
        "import { a } from '../access/scope.ts'; import { createHash } from 'node:crypto'; import 'jose';",
      'oauth/access/scope.ts': `
        // import { a } from '../../http/server/form.ts';
        export const text = "import { a } from '../../http/server/form.ts'; Date.now()";
        export const later = new Date(0);
        export const now = (clock: { now(): number }) => clock.now();
        export const process = (a: number) => a;`,
    };
    expect(layerFaults(tree(files))).toEqual([]);
  });
});
