// `npm run test:mutate -- FILE…`: puts small faults into these files of src/, one at a time in a copy of the checkout, runs
// the tests that reach each, and reports the faults that no test fails for. Without --tests these are the tests of the
// mirrored folder, and those of test/http where the file answers requests. It gates nothing: survivors are to be read.

import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fail, installPackages, modernNode, root, run } from '../toolchain.mjs';

/** Relative to the checkout, and ignored by Git. */
const RESULTS = 'test-results/mutation';
/** What test/http tries through a running server. */
const ON_THE_WIRE = /^src\/(?:http|login|oauth)\//;
/** A runner has tests, their servers and a compiler: two keep two cores busy, and more would make tests wait too long. */
const RUNNERS = 2;

installPackages();
const node = modernNode();
if (node === process.execPath) await reportSurvivors(chosen());
else process.exitCode = run(node, [import.meta.filename, ...process.argv.slice(2)]);

async function reportSurvivors({ files, tests }) {
  const { Stryker } = await import('@stryker-mutator/core');
  process.chdir(root);
  const stryker = new Stryker({
    mutate: files,
    testRunner: 'vitest',
    plugins: [fileURLToPath(import.meta.resolve('@stryker-mutator/vitest-runner'))],
    concurrency: RUNNERS,
    tempDirName: `${RESULTS}/copies`,
    cleanTempDir: 'always',
    // A fault that hangs counts as found, so what is only slow on a busy machine must not.
    timeoutMS: 20_000,
    // The copy has these tests alone. By `testFiles` a fault in what a module makes while it loads would never be active.
    ignorePatterns: ['dist', 'test-results', 'test/**/*.test.ts', ...tests.map(unignored)],
    // Types are stripped, not checked. With a file of that name Stryker would need an API that TypeScript 7 does not have.
    disableTypeChecks: false,
    tsconfigFile: 'none',
    reporters: [process.stdout.isTTY ? 'progress' : 'progress-append-only', 'clear-text', 'html', 'json'],
    clearTextReporter: { logTests: false, reportTests: false },
    htmlReporter: { fileName: `${RESULTS}/report.html` },
    jsonReporter: { fileName: `${RESULTS}/report.json` },
    logLevel: 'warn',
    fileLogLevel: 'off',
  });
  await stryker.runMutationTest().catch(({ message }) => fail(message));
}

function unignored(path) {
  return path.endsWith('.ts') ? `!${path}` : `!${path}/**/*.test.ts`;
}

/** The files and the folders or files of tests, relative to the checkout. */
function chosen() {
  const { positionals, values } = parsed();
  const files = positionals.map(pathInCheckout);
  if (files.length === 0)
    fail('name one or more files of src/; --tests names a folder or file of test/ instead of the usual');
  const strange = files.find((file) => !/^src\/.+\.ts$/.test(file) || !existsSync(join(root, file)));
  if (strange !== undefined) fail(`${strange} is no file of src/`);
  return { files, tests: values.tests?.map(pathInCheckout) ?? testsOf(files) };
}

function parsed() {
  try {
    return parseArgs({ options: { tests: { type: 'string', multiple: true } }, allowPositionals: true });
  } catch (error) {
    return fail(error.message);
  }
}

function pathInCheckout(path) {
  return relative(root, path).replaceAll('\\', '/');
}

function testsOf(files) {
  const folders = files.flatMap((file) => {
    const [, folder] = /^src\/(.+)\//.exec(file) ?? [];
    const isMirrored = folder !== undefined && existsSync(join(root, 'test', folder));
    return [...(isMirrored ? [`test/${folder}`] : []), ...(ON_THE_WIRE.test(file) ? ['test/http'] : [])];
  });
  if (folders.length === 0) fail(`no folder of tests mirrors ${files.join(', ')}: name one after --tests`);
  return [...new Set(folders)];
}
