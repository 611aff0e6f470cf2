// `npm test`: installs what is missing and most tests need, runs the tests, and says what ran, what was left out and how to have it.
// `--all` runs everything and installs for it what is missing. CI=true is the same, and a missing program is then a failure. Other
// arguments go to vitest: `npm test -- test/oauth`; a path into a part that is left out otherwise runs that part.

import { readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { NO_FETCHING } from './tests/fetching.mjs';
import { setUpNeeded, setUpPrograms } from './tests/set-up.mjs';
import { fail, installPackages, modernNode, root, run } from './toolchain.mjs';

const VITEST = join('node_modules', 'vitest', 'vitest.mjs');
const REPORT = join('test-results', 'vitest.json');

/** The projects that need more than packages of npm and redis-server, and what they try. */
const PARTS = {
  cluster: 'against an API server of Kubernetes',
  chart: 'what the Helm chart renders',
  consumers: 'sign-in to programs of others',
};

const isCi = process.env.CI === 'true';
const filters = process.argv.slice(2).filter((argument) => argument !== '--all');
const isNamed = (part) => filters.some((filter) => filter.includes(`test/${part}`));
const isAll = isCi || process.argv.includes('--all') || Object.keys(PARTS).some(isNamed);

installPackages();
const node = modernNode();

const { missing, environment } = isAll
  ? await setUpPrograms()
  : { missing: (await setUpNeeded()).map((sentence) => ({ sentence })), environment: NO_FETCHING };
for (const { sentence } of missing) console.error(`grantry: ${sentence}`);
if (missing.length > 0 && isCi) fail('with CI=true a missing program is a failure');
const left = isAll ? missing.flatMap(({ project }) => project ?? []) : Object.keys(PARTS);

rmSync(join(root, REPORT), { force: true });
// A whole cluster is not part of this: `npm run test:e2e`.
const without = [...left, 'e2e'].map((project) => `--project=!${project}`);
const reporters = ['default', 'json', './scripts/tests/time-report.mjs'].map((name) => `--reporter=${name}`);
reporters.push(`--outputFile.json=${REPORT}`);
const exitCode = run(node, [VITEST, 'run', ...without, ...reporters, ...filters], environment);

const report = readReport();
const ran = filesOf(report, ({ status }) => status === 'passed' || status === 'failed');
const skipped = filesOf(report, ({ status }) => status !== 'passed' && status !== 'failed');
// A file that does not even load fails without a failed test in it.
const failed = Math.max(report.numFailedTests, exitCode === 0 ? 0 : 1);

console.log('\nRan:');
for (const [folder, count] of counted(ran.map((file) => dirname(file)))) console.log(`  ${folder}: ${count}`);
if (skipped.length > 0)
  console.log('Skipped, each for a program that is missing (`npm run test:setup`) or for its system:');
for (const [file, count] of counted(skipped)) console.log(`  ${file}: ${count}`);
// Of a folder or file, nothing is left out that was asked for.
const leftOut = [
  ...(filters.length === 0 ? left.map((part) => `test/${part}: ${PARTS[part]}`) : []),
  ...missing.map(({ sentence }) => sentence),
];
if (leftOut.length > 0) console.log('Left out; `npm test -- --all` installs what is needed, and runs it:');
for (const part of leftOut) console.log(`  ${part}`);
console.log(`\n${report.numPassedTests} passed, ${failed} failed, ${skipped.length} skipped`);
process.exitCode = exitCode;

function readReport() {
  try {
    return JSON.parse(readFileSync(join(root, REPORT), 'utf8'));
  } catch {
    return fail('vitest wrote no report; its own message is above');
  }
}

/** The file of each test that passes `wanted`. */
function filesOf({ testResults }, wanted) {
  return testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.filter(wanted).map(() => relative(root, name)),
  );
}

/** How often each stands there, in alphabetical order. */
function counted(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort();
}
