// Wires the changes of local users to the stores, the audit stream and the log of a token server.

import type { Logger } from 'pino';
import type { LocalUsers } from '../../login/local/local-users.ts';
import { UserChanges } from '../../login/local/user-changes.ts';
import type { Audit } from '../../oauth/ports/audit.ts';
import type { Clock, Stores } from '../../oauth/ports/ports.ts';

/** What {@link assembleUserChanges} takes. */
interface UserChangesParts {
  readonly users: LocalUsers;
  readonly stores: Pick<Stores, 'users'>;
  readonly clock: Clock;
  readonly audit: Audit;
  readonly log: Logger;
  /** How long the list may be older than that of another replica, milliseconds. */
  readonly lag: number;
  /** As of {@link UserChanges}. */
  readonly followedUntil?: () => number;
}

/** Compares nothing before `start`. */
export function assembleUserChanges(parts: UserChangesParts): UserChanges {
  const { users, stores, clock, audit, log, lag, followedUntil } = parts;
  return new UserChanges({
    users,
    store: stores.users,
    clock,
    lag,
    followedUntil,
    onEnded: ({ subject, reason }) => audit.record({ type: 'sessions.ended_all', subject, reason }),
    onFault: (error) => log.warn({ err: error }, 'not all changed users are recorded: the rest is retried'),
  });
}
