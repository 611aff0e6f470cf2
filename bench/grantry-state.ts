// grantry's state in Redis as the run writes it outside the measured time: through the product's own stores, with what a
// real sign-in puts into a grant, and what it leaves beside it.

import { createHash, randomBytes } from 'node:crypto';
import type { Grant } from '../src/oauth/ports/grant-store.ts';
import type { Session } from '../src/oauth/ports/login-stores.ts';
import type { NewAssertedRecord } from '../src/oauth/ports/person-store.ts';
import type { Stores } from '../src/oauth/ports/ports.ts';
import { sealedStores } from '../src/oauth/sealed-stores/sealed-stores.ts';
import { Handles } from '../src/oauth/tokens/handles.ts';
import { RecordMacs } from '../src/oauth/tokens/record-macs.ts';
import { shardOfPerson } from '../src/oauth/values/shard.ts';
import { connectRedis } from '../src/redis/connection/connection.ts';
import { RedisKeys } from '../src/redis/connection/keys.ts';
import { parseRedisUrl } from '../src/redis/link/redis-url.ts';
import { redisStores } from '../src/redis/stores.ts';
import {
  type Agreement,
  AUDIENCE,
  CLIENT_ID,
  CLIENT_UID,
  CODE_CHALLENGE,
  CODE_SECONDS,
  ISSUER,
  OPENID_SCOPES,
  PEOPLE,
  PEPPER,
  PERSON,
  PROVIDER,
  REDIRECT_URI,
  SCOPE,
  usernameOf,
} from './load/load-client.ts';

/** Writes made at a time. */
const BATCH = 50;
const HOUR = 3_600_000;
/** As long as the client's refresh tokens live by default. */
const RETENTION = 2160 * HOUR;

/** A grant that a person has just given, and its code. */
export interface GivenGrant {
  readonly code: string;
  readonly secretHash: string;
  readonly grant: Grant;
}

export interface GrantryState {
  readonly stores: Stores;
  /**
   * As the authorization endpoint does it once each of so many people has agreed.
   * @param provider the issuer of the provider that asserts them; without it they are local users
   */
  give(count: number, agreement: Agreement, provider?: string): Promise<readonly GivenGrant[]>;
  /** The person of a new session signs in so many times, each time at the client. */
  signIn(session: Session, times: number): Promise<void>;
  /** A session of this person, with consent to all that the client asks for. @returns its cookie, as a header has it */
  openSession(username: string): Promise<string>;
  close(): Promise<void>;
}

/**
 * Connects to a Redis that grantry uses, with its default prefix.
 * @param people how many users give grants in turn
 */
export async function openGrantryState(redisUrl: string, people = PEOPLE): Promise<GrantryState> {
  const connection = connectRedis({ target: parseRedisUrl(redisUrl) });
  await connection.ready(5000);
  const madeWith = { issuer: ISSUER, peppers: [Buffer.from(PEPPER)] as const };
  const stores = sealedStores(redisStores({ connection, keys: new RedisKeys('grantry:') }), {
    macs: new RecordMacs(madeWith),
    onForged: (kind) => {
      throw new Error(`a ${kind} of this run is forged`);
    },
  });
  const handles = new Handles({ ...madeWith, random: { bytes: (count: number) => randomBytes(count) } });
  let given = 0;
  return {
    stores,
    give(count, agreement, provider) {
      const usernames = Array.from({ length: count }, () => usernameOf(given++ % people));
      return inBatches(usernames, async (username) => {
        const subject = provider === undefined ? subjectOf(username) : subjectAt(provider, username);
        if (provider !== undefined) await stores.persons.remember(vouchedFor(username, provider), 24 * HOUR);
        const { code, grantId, secretHash } = handles.newCode(subject);
        const grant = newGrant(grantId, { subject, agreement });
        await stores.grants.issue(grant, secretHash, 1000 * CODE_SECONDS, RETENTION);
        return { code, secretHash, grant };
      });
    },
    async signIn(session, times) {
      await stores.sessions.create(session, undefined);
      const { subject, sessionId, sid } = session;
      for (let time = 0; time < times; time += 1) {
        const { grantId, secretHash } = handles.newCode(subject);
        const grant = newGrant(grantId, { subject, agreement: 'sign-in' });
        const login = { sessionId, sid, offline: false, namespace: 'bench' };
        await stores.grants.issue({ ...grant, sessionId, login }, secretHash, 1000 * CODE_SECONDS, RETENTION);
      }
    },
    async openSession(username) {
      const subject = subjectOf(username);
      const agreed = new Map<string, readonly string[]>([
        [AUDIENCE, [SCOPE]],
        [ISSUER, OPENID_SCOPES],
      ]);
      await stores.consents.give(subject, CLIENT_UID, agreed, 365 * 24 * HOUR);
      const cookie = `${shardOfPerson(subject)}.${randomDigest()}`;
      const digest = createHash('sha256').update(`grantry session\0${cookie}`).digest('base64url');
      await stores.sessions.create(
        { ...newSession(username), sessionId: `${cookie.slice(0, 3)}.${digest}` },
        undefined,
      );
      return `grantry-session=${cookie}`;
    },
    close: () => connection.close(),
  };
}

/** Does the work for each, some at a time, and answers in the same order. */
export async function inBatches<Each, Done>(
  all: readonly Each[],
  work: (each: Each) => Promise<Done>,
): Promise<readonly Done[]> {
  const done: Done[] = [];
  for (let from = 0; from < all.length; from += BATCH) {
    done.push(...(await Promise.all(all.slice(from, from + BATCH).map(work))));
  }
  return done;
}

/** What `grantry dev` calls the person of this name. */
function subjectOf(username: string): string {
  return `usr_${createHash('sha256').update(`local\0${username}`).digest('base64url').slice(0, 22)}`;
}

/** What grantry calls the person of this name at a provider. */
export function subjectAt(issuer: string, username: string): string {
  return `usr_${createHash('sha256').update(`upstream\0${issuer}\0${username}`).digest('base64url').slice(0, 22)}`;
}

/** What a sign-in there leaves of the person. */
function vouchedFor(username: string, issuer: string): NewAssertedRecord {
  const { displayName, email } = PERSON;
  const subject = subjectAt(issuer, username);
  return { subject, provider: PROVIDER.name, issuer, type: 'OIDC', username, displayName, email, groups: [] };
}

/** What the person of this name has let the client do. */
export function giveConsent({ consents }: Stores, username: string): Promise<void> {
  return consents.give(subjectOf(username), CLIENT_UID, new Map([[AUDIENCE, [SCOPE]]]), 365 * 24 * HOUR);
}

/** The browser of the person of this name, just signed in. */
export function newSession(username: string): Session {
  return {
    sessionId: `${shardOfPerson(subjectOf(username))}.${randomDigest()}`,
    sid: randomDigest(),
    subject: subjectOf(username),
    username,
    displayName: username,
    authTime: Date.now(),
    idleLifetime: HOUR,
    absoluteLifetime: 12 * HOUR,
  };
}

/** A request of the client that its person has agreed to, and that has gone back to it. */
export async function answerRequest(
  { interactions }: Stores,
  { sessionId, subject, authTime }: Session,
): Promise<void> {
  const interactionId = randomDigest();
  const request = {
    clientUid: CLIENT_UID,
    clientId: CLIENT_ID,
    redirectUri: REDIRECT_URI,
    codeChallenge: CODE_CHALLENGE,
    scope: [SCOPE],
    audiences: [AUDIENCE],
    state: randomDigest(),
  };
  await interactions.create({ interactionId, sessionId, subject, authTime, request }, HOUR / 6);
  await interactions.decide(interactionId, sessionId, 'allow');
  const attemptId = randomBytes(16).toString('base64url');
  const taken = await interactions.take(interactionId, sessionId, { attemptId, after: [] });
  if (taken === undefined) throw new Error('a request did not go back');
}

/** As long as a digest, and as random. */
function randomDigest(): string {
  return randomBytes(32).toString('base64url');
}

/** What a grant covers, by what its person has agreed to. */
const COVERED = {
  api: { scope: [SCOPE], audiences: [AUDIENCE] },
  'api and sign-in': { scope: [...OPENID_SCOPES, SCOPE], audiences: [AUDIENCE, ISSUER] },
  'sign-in': { scope: OPENID_SCOPES, audiences: [ISSUER] },
} as const satisfies Record<Agreement, Pick<Grant, 'scope' | 'audiences'>>;

function newGrant(grantId: string, { subject, agreement }: Pick<Grant, 'subject'> & { agreement: Agreement }): Grant {
  return {
    ...COVERED[agreement],
    grantId,
    clientUid: CLIENT_UID,
    clientId: CLIENT_ID,
    redirectUri: REDIRECT_URI,
    codeChallenge: CODE_CHALLENGE,
    subject,
    sessionId: randomDigest(),
    authTime: Date.now(),
    openid: agreement === 'api' ? undefined : { sid: randomDigest(), nonce: randomDigest() },
  };
}
