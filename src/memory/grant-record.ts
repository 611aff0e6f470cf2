// The record of a grant in the memory store: its code, its refresh family and their state. Immutable: `grants.ts`
// replaces a record in one step, so that a request sees all of a change or none.

import type { Alert } from '../oauth/ports/audit.ts';
import {
  type Grant,
  RETRIES_IN_A_ROW,
  type RedeemAnswer,
  type RedeemRequest,
  type RetryElsewhere,
  type RotateAnswer,
  type RotateRequest,
  type StoredGrant,
} from '../oauth/ports/grant-store.ts';
import type { Confirmation } from '../oauth/ports/token-stores.ts';

/** A grant with the state of its code and of its refresh tokens. */
export interface GrantRecord {
  readonly grant: StoredGrant;
  readonly secretHash: string;
  /**
   * The end of the code's lifetime; from redemption on that of the grant: until then its tombstone detects a replay.
   */
  readonly keepUntil: number;
  readonly wrongVerifiers: number;
  readonly revoked: boolean;
  /** The current refresh generation; undefined while the code is unredeemed. */
  readonly generation: number | undefined;
  readonly refreshedAt: number;
  /** The key that the refresh tokens are bound to, if any. */
  readonly refreshKey: Confirmation | undefined;
  /** When the current generation replaced its predecessor; undefined when no predecessor can be retried. */
  readonly replacedAt: number | undefined;
  /** The address of the last good use. */
  readonly lastAddress: string | undefined;
  readonly alerted: readonly Alert['type'][];
  /** The last generation with a retry from another network, and how many in a row had one. */
  readonly elsewhere: { readonly generation: number; readonly row: number } | undefined;
  /** The attempts of the last transitions, with the answers that a retry with the same attempt id gets. */
  readonly lastRedeem: { readonly attemptId: string; readonly answer: RedeemAnswer } | undefined;
  readonly lastRotate: { readonly attemptId: string; readonly answer: RotateAnswer } | undefined;
}

/** A record whose code has been redeemed. */
export type Redeemed = GrantRecord & { readonly generation: number };

export function isRedeemed(record: GrantRecord): record is Redeemed {
  return record.generation !== undefined;
}

/** A new grant, whose code has not been presented. */
export function issuedRecord(
  grant: Grant,
  { secretHash, now, codeLifetime }: { secretHash: string; now: number; codeLifetime: number },
): GrantRecord {
  return {
    grant: { ...grant, createdAt: now },
    secretHash,
    keepUntil: now + codeLifetime,
    wrongVerifiers: 0,
    revoked: false,
    generation: undefined,
    refreshedAt: now,
    refreshKey: undefined,
    replacedAt: undefined,
    lastAddress: undefined,
    alerted: [],
    elsewhere: undefined,
    lastRedeem: undefined,
    lastRotate: undefined,
  };
}

const ACTIONS: Readonly<Record<Alert['type'], Alert['action']>> = {
  'refresh_token.reuse_detected': 'grant_revoked',
  'refresh_token.retried_elsewhere': 'answered_again',
  'authorization_code.replayed': 'grant_revoked',
  state_lost: 'healed_forward',
};

/** The alert about a request; undefined when this grant has raised the type before: the type is an alert's only name. */
export function alertOf(
  record: Redeemed,
  request: RedeemRequest | RotateRequest | RetryElsewhere,
  { type, now }: { type: Alert['type']; now: number },
): Alert | undefined {
  if (record.alerted.includes(type)) return undefined;
  const { grantId, clientUid, clientId, subject } = record.grant;
  return {
    id: `${grantId}.${type}`,
    type,
    time: now,
    clientUid,
    clientId,
    subject,
    grantId,
    presentedGeneration: 'generation' in request ? request.generation : undefined,
    currentGeneration: record.generation,
    address: request.address,
    lastAddress: 'rotatedFrom' in request ? request.rotatedFrom : record.lastAddress,
    action: ACTIONS[type],
  };
}

/** The types of the alerts that a record has raised, including one raised just now. */
export function withAlert(record: Redeemed, alert: Alert | undefined): readonly Alert['type'][] {
  return alert === undefined ? record.alerted : [...record.alerted, alert.type];
}

/** The record after a retry from another network, and the alert that the retry raises. */
export function withRetryElsewhere(
  record: Redeemed,
  retry: RetryElsewhere,
  now: number,
): { readonly record: Redeemed; readonly alert: Alert | undefined } {
  const { generation: last = -1, row: before = 0 } = record.elsewhere ?? {};
  const { generation } = retry;
  if (generation <= last) return { record, alert: undefined };
  const row = generation === last + 1 ? before + 1 : 1;
  const type = 'refresh_token.retried_elsewhere';
  const alert = row < RETRIES_IN_A_ROW ? undefined : alertOf(record, retry, { type, now });
  return { record: { ...record, elsewhere: { generation, row }, alerted: withAlert(record, alert) }, alert };
}
