// The grant store in Redis: codes and refresh families, one hash per grant. `grant-scripts.ts` holds the Lua of each
// action, `grant-replies.ts` parses the replies. This file runs the scripts, and refuses a request whose write too few
// replicas of Redis acknowledged.

import type { Alert } from '../../oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import {
  type GrantParties,
  type GrantState,
  type GrantStatus,
  type GrantStore,
  type IssueAnswer,
  MOST_RECORDS,
  type NewGrant,
  type RedeemAnswer,
  type RedeemRequest,
  type RetryElsewhere,
  type RotateAnswer,
  type RotateRequest,
  type StoredGrant,
} from '../../oauth/ports/grant-store.ts';
import type { Login } from '../../oauth/ports/logout-store.ts';
import { shardOf, shardOfPerson } from '../../oauth/values/shard.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { endOf, newDeadline } from '../link/deadline.ts';
import { mayHaveRun, unacknowledged } from '../link/redis-errors.ts';
import type { Action, PlainRead, Script } from '../scripts/script.ts';
import { joined } from '../stores/spaced-list.ts';
import type { RedisWatermarks } from '../stores/watermarks.ts';
import { raiseAgain } from './alert-outbox.ts';
import { GrantCache } from './grant-cache.ts';
import { alertIn, grantState, grantStatus, redemptionIn, rotateAnswer } from './grant-replies.ts';
import {
  READ,
  REDEEM,
  REDEEM_CROSS_SLOT,
  REVOKE,
  ROTATE,
  ROTATE_CROSS_SLOT,
  STATUS,
  STATUS_CROSS_SLOT,
  UNDELIVERED,
  VOID,
} from './grant-scripts.ts';
import { ISSUE, ISSUE_EVICTING } from './issue-script.ts';
import { RETRIED_ELSEWHERE } from './retries-elsewhere.ts';

const PEEK: PlainRead = { name: 'grantPeek', command: 'HMGET', keys: 1 };

/** The subject and its first continuation. A longer subject is read by the script: it may be cut within a character. */
const SUBJECT_FIELDS = ['s', 's1'];

/**
 * The shortest grace in which a refused client can retry, in milliseconds. The client is refused within a second of the
 * rotation, and its retry comes a second later.
 */
const MIN_RETRY_GRACE_MS = 2000;

/** {@link GrantStore} in Redis. */
export class RedisGrants implements GrantStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #watermarks: RedisWatermarks;
  readonly #cache: GrantCache;

  constructor(parts: StoreParts & { readonly watermarks: RedisWatermarks }) {
    this.#connection = parts.connection;
    this.#keys = parts.keys;
    this.#watermarks = parts.watermarks;
    this.#cache = new GrantCache(parts);
  }

  /**
   * @throws TypeError if the grant is not in the shard of its person: the scripts could not read the person's
   *   watermarks
   */
  async issue(grant: NewGrant, secretHash: string, codeLifetime: number, retention: number): Promise<IssueAnswer> {
    if (shardOf(grant.grantId) !== shardOfPerson(grant.subject))
      throw new TypeError('the grant is not in the shard of its person');
    const { clientUid, clientId, subject, sessionId, authTime, upstreamAuthTime, scope, audiences } = grant;
    const { redirectUri, codeChallenge, mac } = grant;
    const fields = {
      u: clientUid,
      c: clientId,
      s: subject,
      i: sessionId,
      A: upstreamAuthTime?.toString(),
      o: joined(scope),
      d: joined(audiences),
      r: redirectUri,
      h: codeChallenge,
      p: mac,
      J: grant.confirmation,
      S: grant.openid?.sid,
      N: grant.openid?.nonce,
    };
    const written = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
    const own = [this.#keys.grant(grant.grantId), this.#keys.grantsOfPerson(clientUid, subject)];
    const { login } = grant;
    // The session of another person.
    if (login !== undefined && shardOf(login.sessionId) !== shardOf(grant.grantId)) return { outcome: 'signed_out' };
    const ofPerson = [
      // A script's keys are fixed in number.
      login === undefined ? this.#keys.grant(grant.grantId) : this.#keys.session(login.sessionId),
      this.#keys.sessionsOfUser(subject),
      this.#keys.loginsOfUser(subject),
      this.#keys.usesOfUser(subject),
    ];
    const keys = [...own, ...this.#watermarks.keysOfPerson(clientUid, subject), ...ofPerson];
    const args = [codeLifetime, retention, authTime, secretHash, clientUid, ...loginWords(login), ...written];
    const shard = shardOf(grant.grantId);
    const { outcome, forgotten, others } = await this.#issue({ script: ISSUE, keys, args });
    if (outcome === 'full') return await this.#issueEvicting({ script: ISSUE_EVICTING, keys, args }, shard, others);
    if (outcome !== 'issued') return { outcome };
    return { outcome, evicted: [], forgotten: await this.#ended(shard, forgotten) };
  }

  /** Issues where the index is full. @param inIndex the ids in it, without their shard */
  async #issueEvicting(action: Action, shard: string, inIndex: readonly string[]): Promise<IssueAnswer> {
    const keyOf = (id: string) => this.#keys.grant(`${shard}.${id}`);
    const known = inIndex.map(keyOf);
    // A script's keys are fixed in number.
    const filling = Array.from({ length: MOST_RECORDS - known.length }, () => action.keys[0] as string);
    const answer = await this.#issue({ ...action, keys: [...action.keys, ...known, ...filling] });
    const { outcome, forgotten, others } = answer;
    if (outcome !== 'issued') return { outcome: outcome === 'signed_out' ? outcome : 'outdated' };
    // A fail-over may lose the removal.
    for (const id of others) this.#connection.recordForReplay({ script: REVOKE, keys: [keyOf(id)] });
    const evicted = others.map((id) => `${shard}.${id}`);
    return { outcome, evicted, forgotten: await this.#ended(shard, forgotten) };
  }

  async #issue(action: Action): Promise<IssueReply> {
    const [outcome, forgotten = '', ...others] = (await this.#connection.run(action)) as [
      IssueReply['outcome'],
      ...string[],
    ];
    return { outcome, forgotten, others };
  }

  /** Ends the grant of a login that is no longer recorded. @param id without its shard, empty for none @returns the grant if it was active */
  async #ended(shard: string, id: string): Promise<string | undefined> {
    const grantId = `${shard}.${id}`;
    return id !== '' && (await this.#end(grantId)) ? grantId : undefined;
  }

  /**
   * @throws StoreUnavailableError, not retriable, when too few replicas of Redis acknowledge the redemption, or a kill
   *   switch in another shard cannot be read: the code is void then. When no answer came, a retry may find the code
   *   void, too: the redemption is compensated as soon as Redis can be reached.
   */
  async redeem(request: RedeemRequest): Promise<RedeemAnswer> {
    const { grantId, clientUid } = request;
    const deadline = newDeadline();
    const script = this.#watermarks.crossSlot ? REDEEM_CROSS_SLOT : REDEEM;
    const keys = this.#keysOf(request, this.#watermarks.keysWithoutSubject(clientUid, shardOf(grantId)));
    const { reply, acknowledged } = await this.#transition(request, { script, keys, payload: request, deadline });
    const { answer, isNewer } = redemptionIn(grantId, reply);
    this.#recordAlertForReplay(answer);
    if (answer.outcome !== 'redeemed') return answer;
    this.#cache.setSubject(grantId, answer.grant.subject);
    // The subject was unknown before the script ran. Most grants are newer than every person's watermark of the shard.
    return await this.#confirmed(request, answer, { acknowledged, hasReadPersonWatermarks: isNewer, script, deadline });
  }

  /**
   * @throws StoreUnavailableError also when too few replicas of Redis acknowledge the rotation, or a kill switch in
   *   another shard cannot be read: the client may retry, however late, unless a retry was answered. Without a grace,
   *   or with one that is too short, the family is ended as `redeem` ends a code.
   */
  async rotate(request: RotateRequest): Promise<RotateAnswer> {
    const { grantId, clientUid } = request;
    const deadline = newDeadline();
    const { crossSlot } = this.#watermarks;
    const watermark = crossSlot ? await this.#watermarks.read(clientUid, undefined, deadline) : 0;
    const script = crossSlot ? ROTATE_CROSS_SLOT : ROTATE;
    const keys = this.#keysOf(request, this.#cache.watermarkKeysOf(grantId, request));
    const payload = crossSlot ? { ...request, watermark } : request;
    const { reply, acknowledged } = await this.#transition(request, { script, keys, payload, deadline });
    const answer = rotateAnswer(grantId, reply);
    this.#recordAlertForReplay(answer);
    if (!('generation' in answer)) return answer;
    return await this.#confirmed(request, answer, { acknowledged, hasReadPersonWatermarks: true, script, deadline });
  }

  async noteRetryElsewhere(retry: RetryElsewhere): Promise<Alert | undefined> {
    const keys = [this.#keys.grant(retry.grantId), this.#keys.raisedAlerts(shardOf(retry.grantId))];
    const reply = await this.#connection.run({ script: RETRIED_ELSEWHERE, keys, args: [JSON.stringify(retry)] });
    const alert = alertIn((reply as string | null) ?? false);
    this.#recordAlertForReplay({ alert });
    return alert;
  }

  /** May read from a replica of Redis: the subject never changes, so a stale read has either the same one or none. */
  async subjectOf(grantId: string): Promise<string | undefined> {
    const cached = this.#cache.subjectOf(grantId);
    if (cached !== undefined) return cached;
    const reply = await this.#connection.run({ script: PEEK, keys: [this.#keys.grant(grantId)], args: SUBJECT_FIELDS });
    const [first, rest] = reply as readonly (string | null)[];
    const subject = first && rest === null ? first : (await this.read(grantId))?.grant.subject;
    if (subject !== undefined) this.#cache.setSubject(grantId, subject);
    return subject;
  }

  async revoke(grantId: string): Promise<void> {
    await this.#end(grantId);
  }

  /** @returns whether the grant lived */
  async #end(grantId: string): Promise<boolean> {
    const revocation = { script: REVOKE, keys: [this.#keys.grant(grantId)] };
    const { reply, acknowledged } = await this.#connection.runDurably(revocation);
    this.#connection.recordForReplay(revocation);
    if (!acknowledged) throw unacknowledged(REVOKE);
    return reply === 1;
  }

  async read(grantId: string): Promise<GrantState | undefined> {
    const reply = await this.#connection.run({ script: READ, keys: [this.#keys.grant(grantId)] });
    return grantState(grantId, reply as string);
  }

  async status(grantId: string, parties: GrantParties): Promise<GrantStatus | undefined> {
    const { clientUid, subject } = parties;
    const { crossSlot } = this.#watermarks;
    // A script reads keys of one slot, and no grant is outside the shard of its person.
    if (crossSlot && shardOf(grantId) !== shardOfPerson(subject)) return undefined;
    const script = crossSlot ? STATUS_CROSS_SLOT : STATUS;
    const keys = [this.#keys.grant(grantId), ...this.#cache.watermarkKeysOf(grantId, parties)];
    const [reply, ofClient] = await Promise.all([
      this.#connection.run({ script, keys }),
      crossSlot ? this.#watermarks.read(clientUid, undefined) : 0,
    ]);
    const status = grantStatus(grantId, reply as string);
    return status && { ...status, watermark: Math.max(status.watermark, ofClient) };
  }

  async #transition(
    request: RedeemRequest | RotateRequest,
    { script, keys, payload, deadline }: Transition,
  ): Promise<{ reply: string; acknowledged: boolean }> {
    try {
      const { reply, acknowledged } = await this.#connection.runDurably(
        { script, keys, args: [JSON.stringify(payload)] },
        deadline,
      );
      return { reply: reply as string, acknowledged };
    } catch (error) {
      const hasUnknownOutcome = error instanceof StoreUnavailableError && mayHaveRun(error.cause);
      // Not awaited. Sent now, the compensation arrives right after the attempt, wherever that is delayed.
      if (hasUnknownOutcome) this.#compensate(request).catch(() => {});
      throw error;
    }
  }

  /**
   * The answer to a transition, unless the transition may be lost, or a kill switch that its script did not read ends
   * the grant.
   * @throws StoreUnavailableError when too few replicas of Redis acknowledge it, or a kill switch cannot be read
   */
  async #confirmed<Answer extends { readonly grant: StoredGrant }>(
    request: RedeemRequest | RotateRequest,
    answer: Answer,
    { acknowledged, hasReadPersonWatermarks, script, deadline }: TransitionResult,
  ): Promise<Answer | { readonly outcome: 'ended' }> {
    const watermarks = this.#watermarks;
    if (acknowledged && hasReadPersonWatermarks && !watermarks.crossSlot) return answer;
    try {
      if (!acknowledged) throw unacknowledged(script);
      const { clientUid, subject, createdAt } = answer.grant;
      const watermark = await watermarks.read(clientUid, hasReadPersonWatermarks ? undefined : subject, deadline);
      return createdAt <= watermark ? { outcome: 'ended' } : answer;
    } catch (error) {
      // The transition happened without an answer: uncompensated, a retry would count as a replay or, after the grace,
      // as reuse.
      await this.#compensate(request, endOf(deadline));
      if (isRepeatable(request) || !(error instanceof StoreUnavailableError)) throw error;
      throw new StoreUnavailableError(error.operation, error.cause, { reason: error.reason, retriable: false });
    }
  }

  /** Compensates an attempt whose answer was not delivered: now, and again by the replay of recent revocations. */
  async #compensate(request: RedeemRequest | RotateRequest, deadline?: number): Promise<void> {
    const { grantId, attemptId } = request;
    const script = isRepeatable(request) ? UNDELIVERED : VOID;
    const action = { script, keys: [this.#keys.grant(grantId)], args: [attemptId] };
    this.#connection.recordForReplay(action);
    try {
      await this.#connection.run(action, deadline);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
    }
  }

  // A fail-over loses the revocation, the outbox entry and the record of the alert together.
  #recordAlertForReplay(answer: RedeemAnswer | RotateAnswer | { readonly alert: Alert | undefined }): void {
    if (!('alert' in answer) || answer.alert === undefined) return;
    this.#connection.recordForReplay(raiseAgain(this.#keys, answer.alert));
  }

  #keysOf({ grantId, accessToken }: RedeemRequest | RotateRequest, watermarks: readonly string[]): readonly string[] {
    // A script's keys are fixed: without an access token the third names one that is never written.
    const tokenId = accessToken?.tokenId ?? grantId;
    const own = [this.#keys.grant(grantId), this.#keys.raisedAlerts(shardOf(grantId)), this.#keys.accessToken(tokenId)];
    return own.concat(watermarks);
  }
}

type IssueOutcome = IssueAnswer['outcome'];

/** What the script that issues replies. */
interface IssueReply {
  readonly outcome: IssueOutcome | 'full';
  /** The grant of a login that is no longer recorded, without its shard; empty for none. */
  readonly forgotten: string;
  /** Where it is `full` the ids in the index, else those of the evicted grants. */
  readonly others: readonly string[];
}

/** The arguments of the script about a login: session id, `sid`, whether its grant survives, MAC, namespace. */
function loginWords(login: Login | undefined): readonly (string | number)[] {
  if (login === undefined) return ['', '', '', '', ''];
  return [login.sessionId, login.sid, login.offline ? 1 : 0, login.mac ?? '', login.namespace];
}

/** A script that redeems or rotates a grant, with its deadline. */
interface Transition {
  readonly script: Script;
  readonly keys: readonly string[];
  /** The request that the script receives as JSON. */
  readonly payload: object;
  readonly deadline: number;
}

/** A transition that ran, and what is known of it. */
interface TransitionResult extends Pick<Transition, 'script' | 'deadline'> {
  readonly acknowledged: boolean;
  /** Whether the script has compared the grant with the person's watermarks, or with their upper bound. */
  readonly hasReadPersonWatermarks: boolean;
}

/** Whether the client may send the same request again soon without it being taken for reuse or a replay. */
function isRepeatable(request: RedeemRequest | RotateRequest): boolean {
  if (!('generation' in request)) return false;
  return request.rotation === 'Never' || request.reuseGrace >= MIN_RETRY_GRACE_MS;
}
