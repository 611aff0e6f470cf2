// `npm test`: installs what is missing, runs every vitest project and says what ran and what could not.
// Arguments go to vitest: `npm test -- test/oauth`. With CI=true a missing program is a failure, not a skip.

import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setUpPrograms } from './test-setup.mjs';
import { fail, installPackages, modernNode, root, run } from './toolchain.mjs';

const VITEST = join('node_modules', 'vitest', 'vitest.mjs');
const REPORT = join('test-results', 'vitest.json');

installPackages();
const node = modernNode();

const { missing, environment } = await setUpPrograms();
for (const { sentence } of missing) console.error(`grantry: ${sentence}`);
if (missing.length > 0 && process.env.CI === 'true') fail('with CI=true a missing program is a failure');
const left = missing.map(({ project }) => project).filter((project) => project !== undefined);

const filters = process.argv.slice(2);
rmSync(join(root, REPORT), { force: true });
// A whole cluster is not part of this: `npm run test:e2e`.
const without = [...left, 'e2e'].map((project) => `--project=!${project}`);
const reporters = ['default', 'json', './scripts/tests/time-report.mjs'].map((name) => `--reporter=${name}`);
reporters.push(`--outputFile.json=${REPORT}`);
const exitCode = run(node, [VITEST, 'run', ...without, ...reporters, ...filters], environment);

const report = readReport();
const notRun = left.flatMap((project) => testsOf(project));
const skipped = [...namesOf(report, (status) => status !== 'passed' && status !== 'failed'), ...notRun];
// A file that does not even load fails without a failed test in it.
const failed = Math.max(report.numFailedTests, exitCode === 0 ? 0 : 1);

console.log('\nRan:');
for (const [folder, count] of countByFolder(report)) console.log(`  ${folder}: ${count}`);
if (skipped.length > 0) console.log('Skipped:');
for (const name of skipped) console.log(`  ${name}`);
console.log(`\n${report.numPassedTests} passed, ${failed} failed, ${skipped.length} skipped`);
process.exitCode = exitCode;

function readReport() {
  try {
    return JSON.parse(readFileSync(join(root, REPORT), 'utf8'));
  } catch {
    return fail('vitest wrote no report; its own message is above');
  }
}

/** The tests that pass `wanted`, as `file > name`. */
function namesOf({ testResults }, wanted) {
  return testResults.flatMap((file) =>
    file.assertionResults
      .filter((test) => wanted(test.status))
      .map((test) => `${relative(root, file.name)} > ${test.fullName}`),
  );
}

/** How many tests ran in each folder below test/. */
function countByFolder(results) {
  const counts = new Map();
  for (const name of namesOf(results, (status) => status === 'passed' || status === 'failed')) {
    const folder = name.split(' > ', 1)[0].split(/[\\/]/).slice(0, -1).join('/');
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts].sort();
}

/** Every test of a project that is not run, by name: vitest can list without running. */
function testsOf(project) {
  const listed = spawnSync(node, [VITEST, 'list', `--project=${project}`, ...filters], { cwd: root, encoding: 'utf8' });
  if (listed.status !== 0) return [`every test of the ${project} project`];
  return listed.stdout.split('\n').filter((line) => line !== '');
}
