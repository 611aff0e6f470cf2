// Parses the replies of the grant scripts: JSON lists become the answers of the store. An absent value is `false`.

import type { Alert } from '../../oauth/ports/audit.ts';
import type {
  GrantState,
  GrantStatus,
  RedeemAnswer,
  RotateAnswer,
  StoredGrant,
} from '../../oauth/ports/grant-store.ts';
import type { Confirmation } from '../../oauth/ports/token-stores.ts';
import { split } from '../stores/spaced-list.ts';

/** A grant as the scripts return it: the fields in the order of `described()`. */
type GrantReply = readonly [
  clientUid: string,
  clientId: string,
  subject: string,
  sessionId: string | false,
  authTime: number,
  scope: string,
  audiences: string,
  redirectUri: string,
  codeChallenge: string | false,
  createdAt: number,
  mac: string | false,
  confirmation: Confirmation | false,
  sid: string | false,
  nonce: string | false,
  upstreamAuthTime: number | false,
];

/** What the redemption scripts reply. */
type RedeemReply =
  | readonly ['redeemed', GrantReply, readonly string[], string, isNewer: boolean]
  | readonly ['replayed', string | false]
  | readonly ['gone' | 'no_match' | 'bad_proof' | 'wrong_verifier' | 'scope_exceeded' | 'target_exceeded' | 'ended'];

/** What the rotation scripts reply. */
type RotateReply =
  | readonly [
      outcome: 'rotated' | 'benign_retry' | 'healed',
      grant: GrantReply,
      generation: number,
      scope: readonly string[],
      audience: string,
      alert: string | false,
      rotatedFrom?: string | false,
    ]
  | readonly ['reused', string | false]
  | readonly ['gone' | 'no_match' | 'bad_proof' | 'scope_exceeded' | 'target_exceeded' | 'ended'];

/** What the scripts that read a grant reply; one of them ends with the watermark. */
type ReadReply =
  | readonly [GrantReply, revoked: string | false, generation: string | false, refreshedAt: number, watermark?: number]
  | readonly [false, revoked?: undefined, generation?: undefined, refreshedAt?: undefined, watermark?: undefined];

/** An alert as the scripts write it: JSON leaves out what is undefined. */
export function writtenAlert(alert: Alert): Alert {
  const { presentedGeneration, currentGeneration, lastAddress } = alert;
  return { ...alert, presentedGeneration, currentGeneration, lastAddress };
}

/** The reply of a redemption, parsed. */
export interface Redemption {
  readonly answer: RedeemAnswer;
  /** Whether the grant is newer than every person's watermark in its shard; false unless it was redeemed. */
  readonly isNewer: boolean;
}

/** Parses the reply of a redemption. */
export function redemptionIn(grantId: string, json: string): Redemption {
  const reply = JSON.parse(json) as RedeemReply;
  switch (reply[0]) {
    case 'redeemed': {
      const [outcome, grant, scope, audience, isNewer] = reply;
      return { answer: { outcome, grant: storedGrant(grantId, grant), scope, audience }, isNewer };
    }
    case 'replayed':
      return { answer: { outcome: reply[0], alert: alertIn(reply[1]) }, isNewer: false };
    default:
      return { answer: { outcome: reply[0] }, isNewer: false };
  }
}

/** Parses the reply of a rotation. */
export function rotateAnswer(grantId: string, json: string): RotateAnswer {
  const reply = JSON.parse(json) as RotateReply;
  switch (reply[0]) {
    case 'rotated':
    case 'benign_retry':
    case 'healed': {
      const [outcome, grant, generation, scope, audience, alert, rotatedFrom] = reply;
      const answer = {
        outcome,
        grant: storedGrant(grantId, grant),
        generation,
        scope,
        audience,
        alert: alertIn(alert),
      };
      return rotatedFrom ? { ...answer, rotatedFrom } : answer;
    }
    case 'reused':
      return { outcome: reply[0], alert: alertIn(reply[1]) };
    default:
      return { outcome: reply[0] };
  }
}

/** Parses the reply of a read; undefined where there is no grant. */
export function grantState(grantId: string, json: string): GrantState | undefined {
  return stateIn(grantId, JSON.parse(json) as ReadReply);
}

/** As {@link grantState}, with the watermark that ends the reply. */
export function grantStatus(grantId: string, json: string): GrantStatus | undefined {
  const reply = JSON.parse(json) as ReadReply;
  const state = stateIn(grantId, reply);
  return state && { ...state, watermark: reply[4] ?? 0 };
}

function stateIn(grantId: string, [grant, revoked, generation, refreshedAt]: ReadReply): GrantState | undefined {
  if (grant === false) return undefined;
  return {
    grant: storedGrant(grantId, grant),
    revoked: revoked !== false,
    generation: generation === false ? undefined : Number(generation),
    refreshedAt,
  };
}

/** The alert in the reply of a script, if there is one. */
export function alertIn(json: string | false): Alert | undefined {
  return json === false ? undefined : writtenAlert(JSON.parse(json) as Alert);
}

/** Parses a grant in the reply of a script. */
function storedGrant(grantId: string, reply: GrantReply): StoredGrant {
  const [clientUid, clientId, subject, sessionId, authTime, scope, audiences, redirectUri, challenge, createdAt] =
    reply;
  const [mac, confirmation, sid, nonce, upstreamAuthTime] = reply.slice(10) as [
    GrantReply[10],
    GrantReply[11],
    GrantReply[12],
    GrantReply[13],
    GrantReply[14],
  ];
  return {
    grantId,
    clientUid,
    clientId,
    subject,
    authTime,
    redirectUri,
    createdAt,
    sessionId: sessionId === false ? undefined : sessionId,
    scope: split(scope),
    audiences: split(audiences),
    codeChallenge: challenge === false ? undefined : challenge,
    ...(upstreamAuthTime !== false && { upstreamAuthTime }),
    ...(confirmation !== false && { confirmation }),
    ...(sid !== false && { openid: { sid, nonce: nonce === false ? undefined : nonce } }),
    ...(mac !== false && { mac }),
  };
}
