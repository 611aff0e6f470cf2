// Codes and refresh families in Redis, one hash per grant. What each action does is the Lua of `grant-scripts.ts`; here it
// is called, its reply read by `grant-replies.ts`, and what replicas did not acknowledge is refused.

import { StoreUnavailableError } from '../oauth/error.ts';
import type {
  Grant,
  GrantState,
  GrantStore,
  RedeemAnswer,
  RedeemRequest,
  RotateAnswer,
  RotateRequest,
  StoredGrant,
} from '../oauth/grant-store.ts';
import { shardOf, shardOfPerson } from '../oauth/shard.ts';
import type { RedisConnection } from './connection.ts';
import { endOf, newDeadline } from './deadline.ts';
import { grantState, redemptionIn, rotateAnswer } from './grant-replies.ts';
import {
  ISSUE,
  READ,
  REDEEM,
  REDEEM_AND_LOOK,
  REVOKE,
  ROTATE,
  ROTATE_AND_LOOK,
  raiseAgain,
  UNDELIVERED,
  VOID,
} from './grant-scripts.ts';
import type { RedisKeys } from './keys.ts';
import { KnownGrants } from './known-grants.ts';
import type { PlainRead, Script } from './script.ts';
import { joined } from './spaced-list.ts';
import { mayHaveRun, unacknowledged } from './unanswered.ts';
import { type RedisWatermarks, watermarkBounds } from './watermarks.ts';

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
  readonly #known: KnownGrants;

  constructor(parts: { connection: RedisConnection; keys: RedisKeys; watermarks: RedisWatermarks }) {
    this.#connection = parts.connection;
    this.#keys = parts.keys;
    this.#watermarks = parts.watermarks;
    this.#known = new KnownGrants(parts);
  }

  async issue(grant: Grant, secretHash: string, codeLifetime: number): Promise<void> {
    const { clientUid, clientId, subject, sessionId, authTime, scope, audiences, redirectUri, codeChallenge } = grant;
    const fields = {
      ...{ u: clientUid, c: clientId, s: subject, i: sessionId, o: joined(scope), d: joined(audiences) },
      ...{ r: redirectUri, h: codeChallenge },
    };
    const written = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
    await this.#connection.run(
      ISSUE,
      [this.#keys.grant(grant.grantId)],
      [codeLifetime, authTime, secretHash, ...written],
    );
  }

  /**
   * @throws StoreUnavailableError, not retriable, when too few replicas have the redemption, or a kill switch elsewhere cannot
   *   be looked at: the code is void then. When no answer came, a repeat may find it void, too: what that try redeemed is
   *   ended as soon as Redis can be reached.
   */
  async redeem(request: RedeemRequest): Promise<RedeemAnswer> {
    const { grantId, clientUid, revokedBefore } = request;
    const deadline = newDeadline();
    const shard = shardOf(grantId);
    const looks = revokedBefore !== undefined && this.#connection.crossesSlots;
    const script = looks ? REDEEM_AND_LOOK : REDEEM;
    const keys = this.#keysOf(request, looks ? watermarkBounds(this.#keys, clientUid, shard) : []);
    const { reply, acknowledged } = await this.#move(request, { script, keys, told: request, deadline });
    const { answer, isNewer } = redemptionIn(grantId, reply);
    this.#rememberAlert(answer);
    if (answer.outcome !== 'redeemed') return answer;
    const { subject } = answer.grant;
    this.#known.learn(grantId, subject);
    // Whose grant it is nobody knew before; most were made after anything was last ended for any person of the shard.
    if (acknowledged && isNewer && shardOfPerson(subject) === shard) return answer;
    return await this.#confirmed(request, answer, { acknowledged, script, deadline });
  }

  /**
   * @throws StoreUnavailableError also when too few replicas have the rotation, or a kill switch elsewhere cannot be looked at:
   *   it may be repeated, however late, unless a repetition was answered. Where there is no grace, or it is too short, the
   *   family is ended as `redeem` ends a code.
   */
  async rotate(request: RotateRequest): Promise<RotateAnswer> {
    const { grantId, clientUid, subject, revokedBefore } = request;
    const deadline = newDeadline();
    const isJudged = revokedBefore !== undefined;
    const looks = isJudged && this.#connection.crossesSlots;
    const isTold = isJudged && !looks;
    const watermark = isTold ? await this.#watermarks.read(clientUid, subject, deadline) : undefined;
    const script = looks ? ROTATE_AND_LOOK : ROTATE;
    const keys = this.#keysOf(request, looks ? this.#known.watermarksOf(grantId, { clientUid, subject }) : []);
    const told = watermark === undefined ? request : { ...request, watermark };
    const { reply, acknowledged } = await this.#move(request, { script, keys, told, deadline });
    const answer = rotateAnswer(grantId, reply);
    this.#rememberAlert(answer);
    if (!('generation' in answer) || (acknowledged && looks)) return answer;
    return await this.#confirmed(request, answer, { acknowledged, script, deadline });
  }

  /** A replica may be asked: it knows no other subject, and at worst none. */
  async subjectOf(grantId: string): Promise<string | undefined> {
    const known = this.#known.subjectOf(grantId);
    if (known !== undefined) return known;
    const reply = await this.#connection.run(PEEK, [this.#keys.grant(grantId)], SUBJECT_FIELDS);
    const [first, rest] = reply as readonly (string | null)[];
    const subject = first && rest === null ? first : (await this.read(grantId))?.grant.subject;
    if (subject !== undefined) this.#known.learn(grantId, subject);
    return subject;
  }

  async revoke(grantId: string): Promise<void> {
    const keys = [this.#keys.grant(grantId)];
    const { acknowledged } = await this.#connection.runDurably(REVOKE, keys, []);
    this.#connection.remember(REVOKE, keys, []);
    if (!acknowledged) throw unacknowledged(REVOKE);
  }

  async read(grantId: string): Promise<GrantState | undefined> {
    const reply = await this.#connection.run(READ, [this.#keys.grant(grantId)], []);
    return grantState(grantId, reply as string);
  }

  async #move(
    request: RedeemRequest | RotateRequest,
    { script, keys, told, deadline }: Move,
  ): Promise<{ reply: string; acknowledged: boolean }> {
    try {
      const { reply, acknowledged } = await this.#connection.runDurably(script, keys, [JSON.stringify(told)], deadline);
      return { reply: reply as string, acknowledged };
    } catch (error) {
      const isUnsure = error instanceof StoreUnavailableError && mayHaveRun(error.cause);
      // Nobody waits for it: sent now it is right behind the try, wherever that one is held up.
      if (isUnsure) this.#giveUp(request).catch(() => {});
      throw error;
    }
  }

  /**
   * The answer to what has moved the grant by a script that did not look at its watermarks, unless it may be lost, or a kill
   * switch has ended it. @throws StoreUnavailableError; also where the script did look, and too few replicas have it
   */
  async #confirmed<Answer extends { readonly grant: StoredGrant }>(
    request: RedeemRequest | RotateRequest,
    answer: Answer,
    { acknowledged, script, deadline }: { acknowledged: boolean } & Pick<Move, 'script' | 'deadline'>,
  ): Promise<Answer | { readonly outcome: 'ended' }> {
    try {
      if (!acknowledged) throw unacknowledged(script);
      return (await this.#isEnded(request, answer, deadline)) ? { outcome: 'ended' } : answer;
    } catch (error) {
      // It has moved, and nobody is given anything: the same again would pass for a replay, or in time for reuse.
      await this.#giveUp(request, endOf(deadline));
      if (isRepeatable(request) || !(error instanceof StoreUnavailableError)) throw error;
      throw new StoreUnavailableError(error.operation, error.cause, { reason: error.reason, retriable: false });
    }
  }

  /** Whether a watermark ends the grant, where that is to be judged. */
  async #isEnded(
    { revokedBefore, clientUid }: RedeemRequest | RotateRequest,
    { grant: { subject, createdAt } }: { readonly grant: StoredGrant },
    deadline: number,
  ): Promise<boolean> {
    return revokedBefore !== undefined && createdAt <= (await this.#watermarks.read(clientUid, subject, deadline));
  }

  // Nobody was given anything by this try. Now, and again after a reconnect.
  async #giveUp(request: RedeemRequest | RotateRequest, deadline?: number): Promise<void> {
    const [script, keys] = [isRepeatable(request) ? UNDELIVERED : VOID, [this.#keys.grant(request.grantId)]];
    this.#connection.remember(script, keys, [request.attemptId]);
    try {
      await this.#connection.run(script, keys, [request.attemptId], deadline);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
    }
  }

  // What raised it and its entry in the outbox have the same fate in a fail-over.
  #rememberAlert(answer: RedeemAnswer | RotateAnswer): void {
    if (!('alert' in answer) || answer.alert === undefined) return;
    this.#connection.remember(...raiseAgain(this.#keys, answer.alert, { isTold: false }));
  }

  /** @param watermarks what the script looks at */
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
  readonly told: object;
  readonly deadline: number;
}

/** Whether the same request may come again, soon, without being taken for another's. */
function isRepeatable(request: RedeemRequest | RotateRequest): boolean {
  if (!('generation' in request)) return false;
  return request.rotation === 'Never' || request.reuseGrace >= SHORTEST_HEALING_GRACE;
}
