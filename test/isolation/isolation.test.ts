import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, watch, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { until } from '../until.ts';
import { isolatedFiles } from './isolated-files.ts';
import { changedSince, processState } from './process-state.ts';

/** The paths that the rule selects of a folder with these files. */
function isolated(files: Record<string, string>): readonly string[] {
  const root = mkdtempSync(join(tmpdir(), 'grantry-isolation-'));
  mkdirSync(join(root, 'test/oauth'), { recursive: true });
  for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text);
  return isolatedFiles(['test/**/*.test.ts'], root);
}

describe('a test file has a process of its own', () => {
  test.each([
    "vi.mock('node:crypto');",
    "vi.doMock('node:crypto');",
    'vi.useFakeTimers();',
    "vi.stubGlobal('fetch', answer);",
    "vi.stubEnv('HOME', folder);",
    "vi.spyOn(process, 'getuid');",
    "vi.spyOn(AbortSignal, 'timeout');",
    "vi.spyOn(LocalUsers.prototype, 'authenticate');",
    "process.env.HTTPS_PROXY = 'http://127.0.0.1:1';",
    "process.env['HOME'] = folder;",
    'delete process.env.HOME;',
    "process.on('unhandledRejection', record);",
    'process.chdir(folder);',
    'const used = process.memoryUsage().heapUsed;',
  ])('given %s', (line) => {
    expect(isolated({ 'test/oauth/a.test.ts': line, 'test/b.test.ts': '' })).toEqual(['test/oauth/a.test.ts']);
  });

  test.each([
    'const spy = vi.fn();',
    "vi.spyOn(stores, 'redeem');",
    'expect(process.env.HOME === folder).toBe(true);',
    'const options = { env: { ...process.env, HOME: folder } };',
  ])('not given %s', (line) => {
    expect(isolated({ 'test/a.test.ts': line })).toEqual([]);
  });

  test('not for a file that is no test', () => {
    expect(isolated({ 'test/a.ts': 'vi.useFakeTimers();' })).toEqual([]);
  });
});

describe('what a file leaves behind is named', () => {
  afterEach(() => {
    delete process.env.GRANTRY_LEFT_BEHIND;
    Reflect.deleteProperty(globalThis, 'leftBehind');
    process.removeAllListeners('SIGUSR2');
    vi.useRealTimers();
  });

  test('given nothing → nothing', () => {
    expect(changedSince(processState())).toEqual([]);
  });

  test.each([
    ['the variable GRANTRY_LEFT_BEHIND', () => Object.assign(process.env, { GRANTRY_LEFT_BEHIND: 'yes' })],
    ['the global leftBehind', () => void Reflect.set(globalThis, 'leftBehind', 1)],
    ['a listener for SIGUSR2', () => void process.on('SIGUSR2', () => {})],
    ['fake timers', () => void vi.useFakeTimers()],
  ])('given %s → it', (change, leave) => {
    const before = processState();
    leave();
    expect(changedSince(before)).toEqual([change]);
  });

  test('given a variable that is another one, and one that is gone → both', () => {
    process.env.GRANTRY_LEFT_BEHIND = 'before';
    const before = processState();
    process.env.GRANTRY_LEFT_BEHIND = 'after';
    expect(changedSince(before)).toEqual(['the variable GRANTRY_LEFT_BEHIND']);
    delete process.env.GRANTRY_LEFT_BEHIND;
    expect(changedSince(before)).toEqual(['the variable GRANTRY_LEFT_BEHIND']);
  });

  test('given a second listener for one event → it', () => {
    process.on('SIGUSR2', () => {});
    const before = processState();
    process.on('SIGUSR2', () => {});
    expect(changedSince(before)).toEqual(['a listener for SIGUSR2']);
  });

  test('given a server that listens, a child process and a watched folder → each, until its end', async () => {
    const before = processState();
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const child = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)']);
    const watcher = watch(tmpdir());
    expect(changedSince(before)).toEqual(['a server that listens', 'a child process', 'a watched folder']);
    watcher.close();
    child.kill('SIGKILL');
    server.close();
    await until('all is closed', () => changedSince(before).length === 0);
  });

  test('given another directory → it', () => {
    const directory = process.cwd();
    const before = processState();
    try {
      process.chdir(tmpdir());
      expect(changedSince(before)).toEqual(['another directory']);
    } finally {
      process.chdir(directory);
    }
  });
});
