// A lock between runs of a script: a file that names its process.

import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits until no other run holds the lock, and says once what it waits for. Answers the function that gives it back. A
 * lock whose process is gone, or that is an hour old, is passed over, so what it guards must bear two runs at once.
 */
export async function lock(file, waitsFor) {
  mkdirSync(dirname(file), { recursive: true });
  const mine = `${file}-${process.pid}`;
  writeFileSync(mine, String(process.pid));
  for (let said = false; !tryLink(mine, file); await sleep(500)) {
    if (isStale(file)) rmSync(file, { force: true });
    else if (!said) console.error(`grantry: ${waitsFor}; waiting for it`);
    said = true;
  }
  rmSync(mine);
  return () => rmSync(file, { force: true });
}

/** A link, unlike a new file, has its content from the first moment. */
function tryLink(from, to) {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function isStale(file) {
  try {
    if (Date.now() - statSync(file).mtimeMs > 3_600_000) return true;
    process.kill(Number(readFileSync(file, 'utf8')), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}
