// The record of a grant in the memory store: its code, its refresh family and their state. Immutable: `grants.ts`
// replaces a record in one step, so that a request sees all of a change or none.

import type { Alert } from '../oauth/ports/audit.ts';
import type {
  Grant,
  RedeemAnswer,
  RedeemRequest,
  RotateAnswer,
  RotateRequest,
  StoredGrant,
} from '../oauth/ports/grant-store.ts';

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
  /** When the current generation replaced its predecessor; undefined when no predecessor can be retried. */
  readonly replacedAt: number | undefined;
  /** The address of the last good use. */
  readonly lastAddress: string | undefined;
  readonly alerted: readonly Alert['type'][];
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
    replacedAt: undefined,
    lastAddress: undefined,
    alerted: [],
    lastRedeem: undefined,
    lastRotate: undefined,
  };
}

/** The alert about a request; undefined when this grant has raised the type before: the type is an alert's only name. */
export function alertOf(
  record: Redeemed,
  request: RedeemRequest | RotateRequest,
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
    lastAddress: record.lastAddress,
    action: type === 'state_lost' ? 'healed_forward' : 'grant_revoked',
  };
}

/** The types of the alerts that a record has raised, including one raised just now. */
export function withAlert(record: Redeemed, alert: Alert | undefined): readonly Alert['type'][] {
  return alert === undefined ? record.alerted : [...record.alerted, alert.type];
}
