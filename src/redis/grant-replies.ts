// What the scripts of grants answer, read: lists of Redis become the answers of the store.

import type { Alert } from '../oauth/audit.ts';
import type { RedeemAnswer, RotateAnswer, StoredGrant } from '../oauth/grant-store.ts';
import { split } from './spaced-list.ts';

/** A grant as the scripts give it: the fields in the order of `described()`. */
type GrantReply = readonly [
  clientUid: string,
  clientId: string,
  subject: string,
  sessionId: string | null,
  authTime: number,
  scope: string,
  audiences: string,
  redirectUri: string,
  codeChallenge: string | null,
  createdAt: number,
];

/** What the scripts of a redemption answer. */
export type RedeemReply =
  | readonly ['redeemed', GrantReply, readonly string[], string]
  | readonly ['replayed', string | null]
  | readonly ['gone' | 'no_match' | 'bad_proof' | 'wrong_verifier' | 'scope_exceeded' | 'target_exceeded' | 'ended'];

/** What those of a rotation answer. */
export type RotateReply =
  | readonly ['rotated' | 'benign_retry' | 'healed', GrantReply, number, readonly string[], string, string | null]
  | readonly ['reused', string | null]
  | readonly ['gone' | 'no_match' | 'scope_exceeded' | 'target_exceeded' | 'ended'];

/** What the script that reads a grant answers. */
export type ReadReply =
  | readonly [GrantReply, revoked: string | null, generation: string | null, refreshedAt: number]
  | null;

/** An alert as the scripts write it. */
export function parseAlert(json: string): Alert {
  const alert = JSON.parse(json) as Alert;
  const { presentedGeneration, currentGeneration, lastAddress } = alert;
  return { ...alert, presentedGeneration, currentGeneration, lastAddress };
}

/** The answer in what a redemption replied. */
export function redeemAnswer(grantId: string, reply: RedeemReply): RedeemAnswer {
  switch (reply[0]) {
    case 'redeemed': {
      const [outcome, grant, scope, audience] = reply;
      return { outcome, grant: storedGrant(grantId, grant), scope, audience };
    }
    case 'replayed':
      return { outcome: reply[0], alert: alertIn(reply[1]) };
    default:
      return { outcome: reply[0] };
  }
}

/** The answer in what a rotation replied. */
export function rotateAnswer(grantId: string, reply: RotateReply): RotateAnswer {
  switch (reply[0]) {
    case 'rotated':
    case 'benign_retry':
    case 'healed': {
      const [outcome, grant, generation, scope, audience, alert] = reply;
      return { outcome, grant: storedGrant(grantId, grant), generation, scope, audience, alert: alertIn(alert) };
    }
    case 'reused':
      return { outcome: reply[0], alert: alertIn(reply[1]) };
    default:
      return { outcome: reply[0] };
  }
}

function alertIn(json: string | null): Alert | undefined {
  return json === null ? undefined : parseAlert(json);
}

/** A grant in what a script replied. */
export function storedGrant(grantId: string, reply: GrantReply): StoredGrant {
  const [clientUid, clientId, subject, sessionId, authTime, scope, audiences, redirectUri, challenge, createdAt] =
    reply;
  return {
    ...{ grantId, clientUid, clientId, subject, authTime, redirectUri, createdAt },
    sessionId: sessionId ?? undefined,
    scope: split(scope),
    audiences: split(audiences),
    codeChallenge: challenge ?? undefined,
  };
}
