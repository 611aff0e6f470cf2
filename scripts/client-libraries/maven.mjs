// Jars from Maven Central: what a POM names, with all that it needs, in one folder.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';

/** Fetches the jars of a POM (its text) into a folder that does not exist yet. @throws where Maven cannot */
export function fetchJars(pom, folder) {
  mkdirSync(dirname(folder), { recursive: true });
  const partial = mkdtempSync(`${folder}-`);
  try {
    writeFileSync(join(partial, 'pom.xml'), pom);
    const jars = join(partial, 'jars');
    runQuietly('mvn', ['-B', '-q', '-f', join(partial, 'pom.xml'), COPY, `-DoutputDirectory=${jars}`]);
    // Of two that fetch them at once the first wins.
    if (!existsSync(folder)) renameSync(jars, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/** Runs a program whose output goes to stderr, but for that of a question for its version. @throws where it fails */
export function runQuietly(program, words) {
  const quiet = words[0] === '-version';
  const { status, error } = spawnSync(program, words, { stdio: quiet ? 'ignore' : ['ignore', 2, 2] });
  if (error?.code === 'ENOENT') throw new Error(`${program} is missing`);
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${words.slice(0, 3).join(' ')} ended with ${status}`);
}
