// The lock files of the project, those of tests and examples too: `npm ci` verifies a package by its `integrity` alone, and
// takes one without a hash as it comes. `npm run check` runs this.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, root } from '../toolchain.mjs';

/** What is wrong with the packages of a lock file (`package-lock.json`, version 3), a line each. */
export function faultsOfLockFile(text) {
  return Object.entries(JSON.parse(text).packages).flatMap(([path, entry]) => {
    // The project itself, its workspaces and links to them; what a package has within its own archive has the hash of that.
    if (!path.includes('node_modules/') || entry.link || entry.inBundle) return [];
    const faults = [];
    if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(entry.integrity ?? '')) faults.push(`${path}: no sha512 integrity`);
    if (entry.resolved !== undefined) faults.push(`${path}: a download address (resolved)`);
    return faults;
  });
}

if (import.meta.main) {
  const files = globSync('**/package-lock.json', { cwd: root, exclude: ['**/node_modules/**'] });
  const faults = files.flatMap((file) =>
    faultsOfLockFile(readFileSync(join(root, file), 'utf8')).map((fault) => `${file}: ${fault}`),
  );
  for (const fault of faults.slice(0, 20)) console.error(fault);
  if (faults.length > 0) fail(`${faults.length} faults in lock files: npm ci verifies a package by its hash alone`);
  console.log(`every package of ${files.join(', ')} has its hash`);
}
