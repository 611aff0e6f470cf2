// The limits on what requests store, as the protocol has them: of a namespace, and of a person at a client.

import type { NamespaceLimiter } from './namespace-state.ts';
import type { PersonLimiter } from './person-rate.ts';

/** The limits of a process. */
export interface StateLimits {
  readonly namespaces: NamespaceLimiter;
  readonly people: PersonLimiter;
}

/** Limits nothing (`GRANTRY_RATE_LIMITS=off`). */
export const UNLIMITED_STATE: StateLimits = {
  namespaces: { hold: (_client, _record, write) => write() },
  people: { take: () => 0 },
};
