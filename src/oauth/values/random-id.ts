// Random identifiers and secrets.

import type { Random } from '../ports/ports.ts';

/** `byteCount` random bytes in base64url. */
export function randomId(random: Random, byteCount: number): string {
  return Buffer.from(random.bytes(byteCount)).toString('base64url');
}
