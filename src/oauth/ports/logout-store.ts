// The logins that a session records, and the logouts that its end makes pending: each client that a person has signed in to
// by OpenID Connect is notified, and its grants end, but those that survive a sign-out.

import type { Outbox } from './outbox.ts';

/** A sign-in of a client by a session (OpenID Connect Core §3.1.3). */
export interface Login {
  readonly sessionId: string;
  /** The `sid` of the session. */
  readonly sid: string;
  /** Whether the grant has the scope `offline_access`: it survives the end of the session. */
  readonly offline: boolean;
  /** That of the client. */
  readonly namespace: string;
  /** The MAC of who signed in where; a store keeps it as it is. */
  readonly mac?: string | undefined;
}

/**
 * So many logins of one session are recorded. With one more the namespace with the most of them loses one, the oldest of its
 * client with the most: no tenant makes a session forget the logins of another.
 */
export const RECORDED_LOGINS = 100;

/** The logout of one client that the end of a session leads to; one at most for each session and client. */
export interface PendingLogout {
  readonly clientUid: string;
  readonly subject: string;
  readonly sid: string;
  /** The grants to revoke, without those that have `offline_access`. */
  readonly grantIds: readonly string[];
  /** When the session ended, by the clock of the store. */
  readonly since: number;
  /** That of its newest {@link Login}. */
  readonly mac?: string | undefined;
}

/** What names an {@link PendingLogout}. */
export type LogoutName = Pick<PendingLogout, 'clientUid' | 'subject' | 'sid'>;

/** The pending logouts, in the shards of their people, until they are acknowledged. */
export type LogoutStore = Outbox<PendingLogout, LogoutName>;
