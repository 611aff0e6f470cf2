// Where scripts keep what takes long to make: outside the checkout, where every clone finds it.

import { homedir } from 'node:os';
import { join } from 'node:path';

/** A path in the person's cache. */
export function cacheFolder(...names) {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), ...names);
}
