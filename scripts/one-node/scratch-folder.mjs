// A folder for the moment.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Answers what `use` answers, which is handed a folder that is gone afterwards. */
export function inScratchFolder(use, parent = tmpdir()) {
  const folder = mkdtempSync(join(parent, 'grantry-image-'));
  try {
    // What is in it becomes the root of an image, which every user may enter.
    chmodSync(folder, 0o755);
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
