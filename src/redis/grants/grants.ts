// Codes and refresh families in Redis, one hash per grant. What each action does is the Lua of `grant-scripts.ts`; here it
// is called, its reply read by `grant-replies.ts`, and what replicas of Redis did not acknowledge is refused.

import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import type {
  Grant,
  GrantState,
  GrantStore,
  RedeemAnswer,
  RedeemRequest,
  RotateAnswer,
  RotateRequest,
  StoredGrant,
} from '../../oauth/ports/grant-store.ts';
import { shardOf, shardOfPerson } from '../../oauth/values/shard.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { endOf, newDeadline } from '../link/deadline.ts';
import { mayHaveRun, unacknowledged } from '../link/redis-errors.ts';
import type { PlainRead, Script } from '../scripts/script.ts';
import { joined } from '../stores/spaced-list.ts';
import type { RedisWatermarks } from '../stores/watermarks.ts';
import { GrantCache } from './grant-cache.ts';
import { grantState, redemptionIn, rotateAnswer } from './grant-replies.ts';
import {
  ISSUE,
  READ,
  REDEEM,
  REDEEM_APART,
  REVOKE,
  ROTATE,
  ROTATE_APART,
  raiseAgain,
  UNDELIVERED,
  VOID,
} from './grant-scripts.ts';

const PEEK: PlainRead = { name: 'grantPeek', command: 'HMGET', keys: 1 };

/** The subject, and what a longer one goes on in. Such a one is read by the script: it may be cut within a character. */
const SUBJECT_FIELDS = ['s', 's1'];

/**
 * A client that is told to come back comes a second after it was refused, which is a second after the rotation at most; a
 * shorter grace is over by then. Milliseconds.
 */
const SHORTEST_HEALING_GRACE = 2000;

/** {@link GrantStore} in Redis. */
export class RedisGrants implements GrantStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #watermarks: RedisWatermarks;
  readonly #known: GrantCache;

  constructor(parts: StoreParts & { readonly watermarks: RedisWatermarks }) {
    this.#connection = parts.connection;
    this.#keys = parts.keys;
    this.#watermarks = parts.watermarks;
    this.#known = new GrantCache(parts);
  }

  /** @throws TypeError where the grant is not in the shard of its person: nothing would look at what ends it */
  async issue(grant: Grant, secretHash: string, codeLifetime: number): Promise<void> {
    if (shardOf(grant.grantId) !== shardOfPerson(grant.subject))
      throw new TypeError('the grant is not with its person');
    const { clientUid, clientId, subject, sessionId, authTime, scope, audiences, redirectUri, codeChallenge } = grant;
    const fields = {
      u: clientUid,
      c: clientId,
      s: subject,
      i: sessionId,
      o: joined(scope),
      d: joined(audiences),
      r: redirectUri,
      h: codeChallenge,
    };
    const written = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
    await this.#connection.run({
      script: ISSUE,
      keys: [this.#keys.grant(grant.grantId)],
      args: [codeLifetime, authTime, secretHash, ...written],
    });
  }

  /**
   * @throws StoreUnavailableError, not retriable, when too few replicas of Redis have the redemption, or a kill switch elsewhere
   *   cannot be looked at: the code is void then. When no answer came, a repeat may find it void, too: what that try redeemed
   *   is ended as soon as Redis can be reached.
   */
  async redeem(request: RedeemRequest): Promise<RedeemAnswer> {
    const { grantId, clientUid } = request;
    const deadline = newDeadline();
    const script = this.#watermarks.crossSlot ? REDEEM_APART : REDEEM;
    const keys = this.#keysOf(request, this.#watermarks.keysWithoutSubject(clientUid, shardOf(grantId)));
    const { reply, acknowledged } = await this.#move(request, { script, keys, payload: request, deadline });
    const { answer, isNewer } = redemptionIn(grantId, reply);
    this.#rememberAlert(answer);
    if (answer.outcome !== 'redeemed') return answer;
    this.#known.learn(grantId, answer.grant.subject);
    // Whose grant it is nobody knew before; most were made after anything was last ended for any person of the shard.
    return await this.#confirmed(request, answer, { acknowledged, isPersonSeen: isNewer, script, deadline });
  }

  /**
   * @throws StoreUnavailableError also when too few replicas of Redis have the rotation, or a kill switch elsewhere cannot be
   *   looked at: it may be repeated, however late, unless a repetition was answered. Where there is no grace, or it is too
   *   short, the family is ended as `redeem` ends a code.
   */
  async rotate(request: RotateRequest): Promise<RotateAnswer> {
    const { grantId, clientUid } = request;
    const deadline = newDeadline();
    const { crossSlot } = this.#watermarks;
    const watermark = crossSlot ? await this.#watermarks.read(clientUid, undefined, deadline) : 0;
    const script = crossSlot ? ROTATE_APART : ROTATE;
    const keys = this.#keysOf(request, this.#known.watermarkKeysOf(grantId, request));
    const payload = crossSlot ? { ...request, watermark } : request;
    const { reply, acknowledged } = await this.#move(request, { script, keys, payload, deadline });
    const answer = rotateAnswer(grantId, reply);
    this.#rememberAlert(answer);
    if (!('generation' in answer)) return answer;
    return await this.#confirmed(request, answer, { acknowledged, isPersonSeen: true, script, deadline });
  }

  /** A replica of Redis may be asked: it knows no other subject, and at worst none. */
  async subjectOf(grantId: string): Promise<string | undefined> {
    const known = this.#known.subjectOf(grantId);
    if (known !== undefined) return known;
    const reply = await this.#connection.run({ script: PEEK, keys: [this.#keys.grant(grantId)], args: SUBJECT_FIELDS });
    const [first, rest] = reply as readonly (string | null)[];
    const subject = first && rest === null ? first : (await this.read(grantId))?.grant.subject;
    if (subject !== undefined) this.#known.learn(grantId, subject);
    return subject;
  }

  async revoke(grantId: string): Promise<void> {
    const revocation = { script: REVOKE, keys: [this.#keys.grant(grantId)] };
    const { acknowledged } = await this.#connection.runDurably(revocation);
    this.#connection.remember(revocation);
    if (!acknowledged) throw unacknowledged(REVOKE);
  }

  async read(grantId: string): Promise<GrantState | undefined> {
    const reply = await this.#connection.run({ script: READ, keys: [this.#keys.grant(grantId)] });
    return grantState(grantId, reply as string);
  }

  async #move(
    request: RedeemRequest | RotateRequest,
    { script, keys, payload, deadline }: Move,
  ): Promise<{ reply: string; acknowledged: boolean }> {
    try {
      const { reply, acknowledged } = await this.#connection.runDurably(
        { script, keys, args: [JSON.stringify(payload)] },
        deadline,
      );
      return { reply: reply as string, acknowledged };
    } catch (error) {
      const isUnsure = error instanceof StoreUnavailableError && mayHaveRun(error.cause);
      // Nobody waits for it: sent now it is right behind the try, wherever that one is held up.
      if (isUnsure) this.#giveUp(request).catch(() => {});
      throw error;
    }
  }

  /**
   * The answer to what has moved the grant, unless it may be lost, or a kill switch that its script did not see has ended it.
   * @throws StoreUnavailableError where too few replicas of Redis have it, or the kill switch cannot be looked at
   */
  async #confirmed<Answer extends { readonly grant: StoredGrant }>(
    request: RedeemRequest | RotateRequest,
    answer: Answer,
    { acknowledged, isPersonSeen, script, deadline }: Moved,
  ): Promise<Answer | { readonly outcome: 'ended' }> {
    const watermarks = this.#watermarks;
    if (acknowledged && isPersonSeen && !watermarks.crossSlot) return answer;
    try {
      if (!acknowledged) throw unacknowledged(script);
      const { clientUid, subject, createdAt } = answer.grant;
      const watermark = await watermarks.read(clientUid, isPersonSeen ? undefined : subject, deadline);
      return createdAt <= watermark ? { outcome: 'ended' } : answer;
    } catch (error) {
      // It has moved, and nobody is given anything: the same again would pass for a replay, or in time for reuse.
      await this.#giveUp(request, endOf(deadline));
      if (isRepeatable(request) || !(error instanceof StoreUnavailableError)) throw error;
      throw new StoreUnavailableError(error.operation, error.cause, { reason: error.reason, retriable: false });
    }
  }

  // Nobody was given anything by this try. Now, and again after a reconnect.
  async #giveUp(request: RedeemRequest | RotateRequest, deadline?: number): Promise<void> {
    const { grantId, attemptId } = request;
    const script = isRepeatable(request) ? UNDELIVERED : VOID;
    const action = { script, keys: [this.#keys.grant(grantId)], args: [attemptId] };
    this.#connection.remember(action);
    try {
      await this.#connection.run(action, deadline);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
    }
  }

  // What raised it and its entry in the outbox have the same fate in a fail-over.
  #rememberAlert(answer: RedeemAnswer | RotateAnswer): void {
    if (!('alert' in answer) || answer.alert === undefined) return;
    this.#connection.remember(raiseAgain(this.#keys, answer.alert, { isTold: false }));
  }

  #keysOf({ grantId, accessToken }: RedeemRequest | RotateRequest, watermarks: readonly string[]): readonly string[] {
    // A script's keys are fixed: without an access token the third names one that is never written.
    const tokenId = accessToken?.tokenId ?? grantId;
    const own = [this.#keys.grant(grantId), this.#keys.outbox(shardOf(grantId)), this.#keys.accessToken(tokenId)];
    return own.concat(watermarks);
  }
}

/** What is to move a grant, by when. */
interface Move {
  readonly script: Script;
  readonly keys: readonly string[];
  /** What the script is told as JSON. */
  readonly payload: object;
  readonly deadline: number;
}

/** What has moved it. */
interface Moved extends Pick<Move, 'script' | 'deadline'> {
  readonly acknowledged: boolean;
  /** Whether the script has looked at the watermarks of the person, or at what they do not exceed. */
  readonly isPersonSeen: boolean;
}

/** Whether the same request may come again, soon, without being taken for another's. */
function isRepeatable(request: RedeemRequest | RotateRequest): boolean {
  if (!('generation' in request)) return false;
  return request.rotation === 'Never' || request.reuseGrace >= SHORTEST_HEALING_GRACE;
}
