// The grant store over a Map: the readable form of the state tables in `oauth/ports/grant-store.ts`. One record per
// grant: issued, then redeemed, then replayed; its generation only grows and `revoked` is final. No method awaits
// anything, so each is one atomic action.

import { timingSafeEqual } from 'node:crypto';
import { cappedToken, narrowAccess } from '../oauth/access/access.ts';
import type { Alert } from '../oauth/ports/audit.ts';
import type {
  Grant,
  GrantParties,
  GrantState,
  GrantStatus,
  GrantStore,
  IssueAnswer,
  NewGrant,
  RedeemAnswer,
  RedeemRequest,
  RetryElsewhere,
  RotateAnswer,
  RotateRequest,
  StoredGrant,
} from '../oauth/ports/grant-store.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { StoredAccessToken } from '../oauth/ports/token-stores.ts';
import { reportedAuthTime } from '../oauth/tokens/auth-time.ts';
import { keepAccessToken } from './access-tokens.ts';
import type { ExpiringMap } from './expiring-map.ts';
import {
  alertOf,
  type GrantRecord,
  isRedeemed,
  issuedRecord,
  type Redeemed,
  withAlert,
  withRetryElsewhere,
} from './grant-record.ts';
import type { GrantsOfPerson } from './grants-of-person.ts';
import type { MemoryLogins } from './logins.ts';
import type { SessionRecord } from './sessions.ts';
import type { MemoryUses } from './uses.ts';
import type { MemoryWatermarks } from './watermarks.ts';

/** Wrong verifiers that kill a code (OAuth 2.1 §7.5.2). */
const MAX_WRONG_VERIFIERS = 5;

/** {@link GrantStore} in this process. */
export class MemoryGrants implements GrantStore {
  readonly #clock: Clock;
  readonly #records: ExpiringMap<GrantRecord>;
  readonly #accessTokens: ExpiringMap<StoredAccessToken>;
  readonly #watermarks: MemoryWatermarks;
  readonly #sessions: ExpiringMap<SessionRecord>;
  readonly #logins: MemoryLogins;
  readonly #ofPerson: GrantsOfPerson;
  readonly #uses: MemoryUses;

  /** @param accessTokens the map of the opaque tokens: redeem and rotate write theirs in the same action. */
  constructor(fields: {
    clock: Clock;
    records: ExpiringMap<GrantRecord>;
    accessTokens: ExpiringMap<StoredAccessToken>;
    watermarks: MemoryWatermarks;
    sessions: ExpiringMap<SessionRecord>;
    logins: MemoryLogins;
    ofPerson: GrantsOfPerson;
    uses: MemoryUses;
  }) {
    this.#clock = fields.clock;
    this.#records = fields.records;
    this.#accessTokens = fields.accessTokens;
    this.#watermarks = fields.watermarks;
    this.#sessions = fields.sessions;
    this.#logins = fields.logins;
    this.#ofPerson = fields.ofPerson;
    this.#uses = fields.uses;
  }

  async issue(
    { login, ...grant }: NewGrant,
    secretHash: string,
    codeLifetime: number,
    retention: number,
  ): Promise<IssueAnswer> {
    const { grantId, clientUid, subject, authTime } = grant;
    // Idempotent: an existing grant keeps its state.
    if (this.#records.get(grantId) !== undefined) return { outcome: 'issued', evicted: [] };
    if (authTime <= this.#watermarks.highestOfPerson(clientUid, subject)) return { outcome: 'outdated' };
    let forgotten: string | undefined;
    if (login !== undefined) {
      const session = this.#sessions.get(login.sessionId);
      if (session?.session.subject !== subject) return { outcome: 'signed_out' };
      const { sid, offline, namespace, mac } = login;
      const recorded = { clientUid, grantId, offline, namespace, mac };
      const leaving = this.#logins.note({ subject, sid }, recorded, session.endsAt);
      if (leaving?.offline === false && this.#end(leaving.grantId)) forgotten = leaving.grantId;
    }
    const now = this.#clock.now();
    this.#keep(issuedRecord(grant, { secretHash, now, codeLifetime }));
    const leaving = this.#ofPerson.add(grant, now + retention);
    for (const each of leaving) this.#records.delete(each.grant.grantId);
    this.#uses.recordUse(subject, clientUid);
    const evicted = leaving.filter(({ revoked }) => !revoked).map((each) => each.grant.grantId);
    return { outcome: 'issued', evicted, forgotten };
  }

  async redeem(request: RedeemRequest): Promise<RedeemAnswer> {
    // An expired code is missing: the record of an unredeemed one ends with it.
    const record = this.#records.get(request.grantId);
    if (record === undefined || record.revoked || record.wrongVerifiers >= MAX_WRONG_VERIFIERS) {
      return { outcome: 'gone' };
    }
    if (!sameDigest(record.secretHash, request.secretHash) || record.grant.clientUid !== request.clientUid) {
      return { outcome: 'no_match' };
    }
    const proof = verifyProof(record.grant, request);
    if (proof === 'bad_proof' || (proof === 'wrong_verifier' && isRedeemed(record))) return { outcome: 'bad_proof' };
    if (record.lastRedeem?.attemptId === request.attemptId) return record.lastRedeem.answer;
    if (proof === 'wrong_verifier') return this.#countWrongVerifier(record, request.attemptId);
    if (isRedeemed(record)) {
      return { outcome: 'replayed', alert: this.#revokeWith(record, request, 'authorization_code.replayed') };
    }
    const answer = this.#redeemFirst(record, request);
    return answer.outcome === 'redeemed' && this.#isEnded(record, request) ? { outcome: 'ended' } : answer;
  }

  async rotate(request: RotateRequest): Promise<RotateAnswer> {
    const record = this.#records.get(request.grantId);
    if (record === undefined) return { outcome: 'gone' };
    if (record.grant.clientUid !== request.clientUid) return { outcome: 'no_match' };
    if (this.#isEnded(record, request)) return { outcome: 'ended' };
    if (record.revoked || !isRedeemed(record) || this.#isExpired(record, request)) return { outcome: 'gone' };
    if (request.isPublic && !isKeyRight(record, request)) return { outcome: 'bad_proof' };
    if (record.lastRotate?.attemptId === request.attemptId) return record.lastRotate.answer;
    if (request.generation === record.generation) return this.#advance(record, request, 'rotated');
    if (request.generation === record.generation - 1 && this.#withinGrace(record, request.reuseGrace)) {
      return this.#retry(record, request);
    }
    if (request.generation > record.generation) return this.#advance(record, request, 'healed');
    return { outcome: 'reused', alert: this.#revokeWith(record, request, 'refresh_token.reuse_detected') };
  }

  async noteRetryElsewhere(retry: RetryElsewhere): Promise<Alert | undefined> {
    const record = this.#records.get(retry.grantId);
    if (record === undefined || record.revoked || !isRedeemed(record)) return undefined;
    const recorded = withRetryElsewhere(record, retry, this.#clock.now());
    this.#keep(recorded.record);
    return recorded.alert;
  }

  async subjectOf(grantId: string): Promise<string | undefined> {
    return this.#records.get(grantId)?.grant.subject;
  }

  async revoke(grantId: string): Promise<void> {
    this.#end(grantId);
  }

  async read(grantId: string): Promise<GrantState | undefined> {
    const record = this.#records.get(grantId);
    if (record === undefined) return undefined;
    const { grant, revoked, generation, refreshedAt } = record;
    return { grant, revoked, generation, refreshedAt };
  }

  async status(grantId: string, { clientUid, subject }: GrantParties): Promise<GrantStatus | undefined> {
    const state = await this.read(grantId);
    return state && { ...state, watermark: this.#watermarks.highest(clientUid, subject) };
  }

  /** @returns whether the grant lived */
  #end(grantId: string): boolean {
    const record = this.#records.get(grantId);
    if (record === undefined) return false;
    this.#keep({ ...record, revoked: true });
    return !record.revoked;
  }

  #countWrongVerifier(record: GrantRecord, attemptId: string): RedeemAnswer {
    const answer: RedeemAnswer = { outcome: 'wrong_verifier' };
    this.#keep({ ...record, wrongVerifiers: record.wrongVerifiers + 1, lastRedeem: { attemptId, answer } });
    return answer;
  }

  #redeemFirst(record: GrantRecord, request: RedeemRequest): RedeemAnswer {
    const access = narrowAccess(record.grant, request.access);
    if (access.outcome !== 'granted') return access;
    this.#writeAccessToken(record.grant, request, access);
    const answer: RedeemAnswer = { ...access, outcome: 'redeemed', grant: record.grant };
    this.#keep({
      ...record,
      keepUntil: Math.max(record.keepUntil, record.grant.createdAt + request.retention),
      generation: 0,
      refreshKey: request.bindsRefreshTokens ? request.confirmation : undefined,
      refreshedAt: this.#clock.now(),
      lastAddress: request.address,
      lastRedeem: { attemptId: request.attemptId, answer },
    });
    return answer;
  }

  /** The presented generation is good and new: its successor becomes current. `Never` keeps the presented one current. */
  #advance(record: Redeemed, request: RotateRequest, outcome: 'rotated' | 'healed'): RotateAnswer {
    const access = narrowAccess(record.grant, request.access);
    if (access.outcome !== 'granted') return access;
    this.#writeAccessToken(record.grant, request, access);
    const now = this.#clock.now();
    const rotates = request.rotation === 'Always';
    const generation = rotates ? request.generation + 1 : request.generation;
    const alert = outcome === 'healed' ? alertOf(record, request, { type: 'state_lost', now }) : undefined;
    const grant = withoutNonce(record.grant);
    const answer: RotateAnswer = { ...access, outcome, grant, generation, alert: undefined };
    this.#keep({
      ...record,
      grant,
      keepUntil: Math.max(record.keepUntil, record.grant.createdAt + request.retention),
      generation,
      refreshedAt: now,
      replacedAt: rotates ? now : undefined,
      lastAddress: request.address,
      alerted: withAlert(record, alert),
      lastRotate: { attemptId: request.attemptId, answer },
    });
    return { ...answer, alert };
  }

  /**
   * The predecessor again gets the same successor, so that a lost response does not fork the family. The grace is not
   * extended.
   */
  #retry(record: Redeemed, request: RotateRequest): RotateAnswer {
    const access = narrowAccess(record.grant, request.access);
    if (access.outcome !== 'granted') return access;
    this.#writeAccessToken(record.grant, request, access);
    const { grant, generation, lastAddress: rotatedFrom } = record;
    return { ...access, outcome: 'benign_retry', grant, generation, alert: undefined, rotatedFrom };
  }

  #revokeWith(record: Redeemed, request: RedeemRequest | RotateRequest, type: Alert['type']): Alert | undefined {
    const alert = alertOf(record, request, { type, now: this.#clock.now() });
    this.#keep({ ...record, revoked: true, alerted: withAlert(record, alert) });
    return alert;
  }

  #isEnded({ grant }: GrantRecord, { revokedBefore }: RedeemRequest | RotateRequest): boolean {
    return grant.createdAt <= Math.max(revokedBefore, this.#watermarks.highest(grant.clientUid, grant.subject));
  }

  #isExpired(record: Redeemed, request: RotateRequest): boolean {
    const now = this.#clock.now();
    const idleUntil = record.refreshedAt + request.idleLifetime;
    const livesUntil = record.grant.createdAt + request.absoluteLifetime;
    return now >= idleUntil || now >= livesUntil;
  }

  #withinGrace(record: Redeemed, reuseGrace: number): boolean {
    if (reuseGrace === 0 || record.replacedAt === undefined) return false;
    return this.#clock.now() - record.replacedAt <= reuseGrace;
  }

  // Called before the transition is stored: if the map is full, the request is refused and nothing is consumed.
  #writeAccessToken(
    grant: StoredGrant,
    { accessToken, access }: RedeemRequest | RotateRequest,
    { scope, audience }: { readonly scope: readonly string[]; readonly audience: string },
  ): void {
    if (accessToken === undefined) return;
    const token = cappedToken(accessToken, audience, access);
    const { clientUid, clientId, subject, grantId } = grant;
    const authTime = reportedAuthTime(grant);
    keepAccessToken(this.#accessTokens, { ...token, clientUid, clientId, subject, scope, audience, grantId, authTime });
  }

  #keep(record: GrantRecord): void {
    this.#records.set(record.grant.grantId, record, record.keepUntil);
  }
}

/** RFC 9449 §5: a bound refresh token needs its key. RFC 9700 §4.14.2: an unbound one of a public client needs rotation. */
function isKeyRight({ refreshKey }: GrantRecord, { confirmation, rotation }: RotateRequest): boolean {
  return refreshKey === undefined ? rotation === 'Always' : refreshKey === confirmation;
}

/** RFC 6749 §4.1.3 and RFC 7636 §4.6; a code without challenge cannot be redeemed (PKCE downgrade). */
function verifyProof(grant: Grant, request: RedeemRequest): 'right' | 'bad_proof' | 'wrong_verifier' {
  if (grant.redirectUri !== request.redirectUri) return 'bad_proof';
  if (grant.confirmation !== undefined && grant.confirmation !== request.confirmation) return 'bad_proof';
  if (grant.codeChallenge === undefined || request.verifierChallenge === undefined) return 'bad_proof';
  return sameDigest(grant.codeChallenge, request.verifierChallenge) ? 'right' : 'wrong_verifier';
}

function sameDigest(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** OpenID Connect Core §12.2: only the first ID token of a grant has the nonce. */
function withoutNonce(grant: StoredGrant): StoredGrant {
  return grant.openid?.nonce === undefined ? grant : { ...grant, openid: { ...grant.openid, nonce: undefined } };
}
