import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, matchesGlob } from 'node:path';
import { defineConfig } from 'vitest/config';
import { isolatedFiles } from './test/isolation/isolated-files.ts';

// Temporary files of the tests, and of the programs that they start, end with the run, also after Ctrl-C.
const temporary = mkdtempSync(join(tmpdir(), 'grantry-tests-'));
// Some programs of tests run as another user, and pass through it.
chmodSync(temporary, 0o711);
process.env.TMPDIR = temporary;
// The workers and the programs that tests start share what Node has compiled.
process.env.NODE_COMPILE_CACHE = join(temporary, 'compiled');
process.on('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }));

// `fast` opens no socket; `servers` runs grantry over real HTTP; `redis` starts redis-server; `cluster` starts a
// Kubernetes API server; `chart` runs Helm; `browser` drives the system's Chromium; `consumers` signs in to programs of others; `e2e` needs a whole cluster and runs by `npm run test:e2e` alone.
const servers = [
  'http',
  'clients',
  'kubernetes',
  'cluster-registry',
  'controller',
  'delivery',
  'folder-registry',
  'local-state',
  'processes',
  'scripts',
  'webhook',
  'outbound',
  'resource-server',
  'examples',
  'conformance',
].map((folder) => `test/${folder}/**/*.test.ts`);
const redis = ['test/redis/**/*.test.ts'];
const cluster = ['test/cluster/**/*.test.ts'];
const chart = ['test/chart/**/*.test.ts'];
const browser = ['test/browser/**/*.test.ts'];
const consumers = ['test/consumers/**/*.test.ts'];
const e2e = ['test/e2e/**/*.test.ts'];

// Only a test that hangs runs so long, on a busy machine too. How long a thing may take is the assertion of a test.
const PATIENCE = { testTimeout: 60_000, hookTimeout: 60_000 };
/** Runs the hooks of helpers for each file. */
const SET_UP = 'test/isolation/set-up.ts';
const COMMON = { ...PATIENCE, setupFiles: SET_UP };
// Of the first projects, which share them. By itself vitest leaves a core free, so it would use one of two.
const FIRST = {
  ...COMMON,
  maxWorkers: Math.max(2, availableParallelism() - 1),
  // One after the other: what comes first ends last.
  sequence: { groupOrder: 0, setupFiles: 'list' as const },
};

/** What opens no socket: all that no other project has. */
const fast = ['test/**/*.test.ts'];
const others = [...servers, ...redis, ...cluster, ...chart, ...browser, ...consumers, ...e2e];
const isolated = isolatedFiles(fast, import.meta.dirname);
const isolatedServers = isolated.filter((file) => servers.some((pattern) => matchesGlob(file, pattern)));

/** Files that share the modules which a worker has loaded; a file that leaves its process changed fails. */
const SHARED = { ...FIRST, isolate: false, setupFiles: ['test/isolation/left-behind.ts', SET_UP] };

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'fast', ...SHARED, include: fast, exclude: [...others, ...isolated] } },
      { test: { name: 'fast-isolated', ...FIRST, include: isolated, exclude: others } },
      { test: { name: 'servers', ...SHARED, include: servers, exclude: isolated } },
      { test: { name: 'servers-isolated', ...FIRST, include: isolatedServers } },
      // Most of their time is waiting for servers: more files at once than there are cores.
      {
        test: {
          name: 'redis',
          include: redis,
          ...COMMON,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
      // One API server for all files; a test waits for processes that start and reconcile.
      {
        test: {
          name: 'cluster',
          include: cluster,
          globalSetup: 'test/cluster/setup/global-setup.ts',
          ...PATIENCE,
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      // One API server for the file that needs it, and Helm as a process of its own each time. Beside cluster, as many at once.
      {
        test: {
          name: 'chart',
          include: chart,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      { test: { name: 'browser', ...FIRST, include: browser } },
      // After all others: the first run builds the programs, which keeps all cores busy, and a JVM starts slowly beside that.
      {
        test: {
          name: 'consumers',
          include: consumers,
          setupFiles: SET_UP,
          testTimeout: 60_000,
          hookTimeout: 150_000,
          maxWorkers: 3,
          sequence: { groupOrder: 4 },
        },
      },
      // One story after the other: they share an install and disturb it.
      {
        test: {
          name: 'e2e',
          include: e2e,
          globalSetup: 'test/e2e/setup/global-setup.ts',
          setupFiles: 'test/e2e/setup/diagnose-failures.ts',
          testTimeout: 300_000,
          hookTimeout: 300_000,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
