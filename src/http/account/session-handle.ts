// What a page calls a session by: neither its id, which is a key of the store, nor its `sid`, which clients know.

import { createHash } from 'node:crypto';
import type { Session } from '../../oauth/ports/login-stores.ts';

/** The handle: 132 bits in base64url. No id of a session can be found by it. */
export function sessionHandle({ sessionId }: Pick<Session, 'sessionId'>): string {
  return createHash('sha256').update(`grantry session handle\0${sessionId}`).digest('base64url').slice(0, 22);
}
