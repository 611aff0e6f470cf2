// The hooks of helpers over several files of one process.

import { beforeEach, expect, test, vi } from 'vitest';

type Module = typeof import('./file-hooks.ts');

/** As a process has loaded it before its first file. */
let hooks: Module;
beforeEach(async () => {
  vi.resetModules();
  hooks = await import('./file-hooks.ts');
});

test('given a helper that is loaded once → its hooks run after each test, and after each file', async () => {
  const calls: string[] = [];
  hooks.afterEachTest(() => void calls.push('test'));
  hooks.afterEachFile(() => void calls.push('file'));
  for (const tests of [2, 1]) {
    hooks.fileHooks.begin();
    for (let ended = 0; ended < tests; ended++) await hooks.fileHooks.testEnded();
    await hooks.fileHooks.fileEnded();
  }
  expect(calls).toEqual(['test', 'test', 'file', 'test', 'file']);
});

test('given no set-up, or none for a second file → what needs the hooks is refused', async () => {
  expect(hooks.requireFileHooks).toThrow('set-up.ts');
  hooks.fileHooks.begin();
  expect(hooks.requireFileHooks).not.toThrow();
  await hooks.fileHooks.fileEnded();
  expect(hooks.requireFileHooks).toThrow('set-up.ts');
});
