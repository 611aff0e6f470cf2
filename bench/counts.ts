// What is counted once and not divided by anything: the scripts of a refresh, and what a refresh family and a person who is
// signed in take in Redis.

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stores } from '../src/oauth/ports/ports.ts';
import { KEY_PATTERNS } from '../src/redis/connection/keys.ts';
import {
  answerRequest,
  type GivenGrant,
  type GrantryState,
  giveConsent,
  inBatches,
  newSession,
  openGrantryState,
} from './grantry-state.ts';
import {
  type Agreement,
  AUDIENCE,
  CLIENT_UID,
  CODE_CHALLENGE,
  CODE_SECONDS,
  REDIRECT_URI,
  refresh,
  requestTokens,
  SCOPE,
} from './load/load-client.ts';
import { LOAD_CORE } from './load/pinned-process.ts';
import { commandCounts, type RedisServer, startRedis, usedBytes } from './redis-server.ts';
import { isAsked, type Verdict, verdictOn } from './rows.ts';
import type { Workload } from './workloads.ts';

/** A figure of the result that is no ratio. */
export interface Count {
  readonly name: string;
  readonly value: number;
  /** Smaller is better. */
  readonly goal?: number;
  readonly verdict?: Verdict;
  /** What it is made of. */
  readonly parts?: Readonly<Record<string, number>>;
}

const SCRIPTS = 'refresh: script calls';
const FAMILIES = 'families: bytes of a live one';
const SIGN_INS = 'families of a sign-in: bytes of a live one';
const LOGINS = 'sessions: bytes of the logins of one';
const REFRESHES = 1000;
const IDLE_SECONDS = 3;
/** So many have logins. */
const SESSIONS = 200;
const CHUNK = 5000;
const DAY = 24 * 3_600_000;

type KeyKind = keyof typeof KEY_PATTERNS;

/** Counts what is asked for. @param options.families how many live at the same time */
export async function countAll(
  texts: readonly string[],
  { families, startRefresh }: { readonly families: number; readonly startRefresh: () => Promise<Workload> },
): Promise<readonly Count[]> {
  const counts: Count[] = [];
  if (isAsked(SCRIPTS, texts)) counts.push(await scriptCalls(await startRefresh()));
  if (isAsked(FAMILIES, texts)) counts.push(...(await familyBytes(families)));
  if (isAsked(SIGN_INS, texts)) counts.push(await signInBytes(families));
  if (isAsked(LOGINS, texts)) counts.push(...(await loginBytes()));
  for (const row of OF_A_PERSON) if (isAsked(row.name, texts)) counts.push(await bytesOfAPerson(row, families));
  return counts;
}

/** Commands in Redis for one refresh, those that are sent and those inside scripts; what runs all the time is taken off. */
async function scriptCalls({ targets: [target], redis }: Workload): Promise<Count> {
  if (target === undefined || redis === undefined) throw new TypeError('no refresh on Redis');
  const bodies = await target.bodies(1, REFRESHES);
  if (bodies.kind !== 'refreshes') throw new TypeError('no refresh');
  const idle = await countsDuring(redis, () => sleep(1000 * IDLE_SECONDS));
  const start = performance.now();
  const busy = await countsDuring(redis, async () => {
    await inBatches(bodies.tokens.slice(0, REFRESHES), (token) => requestTokens(target.url, refresh(token)));
  });
  const idleTimes = (performance.now() - start) / (1000 * IDLE_SECONDS);
  const perRefresh = [...busy].map(([command, calls]) => {
    const each = (calls - idleTimes * (idle.get(command) ?? 0)) / bodies.tokens.length;
    return [command, Math.max(0, Math.round(100 * each) / 100)] as const;
  });
  const parts = Object.fromEntries(perRefresh.filter(([, calls]) => calls > 0));
  return withVerdict({ name: SCRIPTS, value: (parts.evalsha ?? 0) + (parts.eval ?? 0), parts }, 1);
}

async function countsDuring(redis: RedisServer, work: () => Promise<unknown>): Promise<ReadonlyMap<string, number>> {
  const before = await commandCounts(redis);
  await work();
  const after = await commandCounts(redis);
  return new Map([...after].map(([command, calls]) => [command, calls - (before.get(command) ?? 0)]));
}

/** The memory of refresh families, each with the tombstone of its code; what is found by user or client counts apart. */
async function familyBytes(families: number): Promise<readonly Count[]> {
  const { each, indexes } = await bytesOfFamilies(families, 'api');
  return [
    withVerdict({ name: FAMILIES, value: Math.round(each - indexes), parts: { families } }, 600),
    { name: 'families: bytes of the indexes of a live one', value: Math.round(indexes) },
  ];
}

/** The same where the client signed the person in: the record has `sid`, `nonce`, the issuer and more scopes. */
async function signInBytes(families: number): Promise<Count> {
  const { each, indexes } = await bytesOfFamilies(families, 'api and sign-in');
  return { name: SIGN_INS, value: Math.round(each - indexes), parts: { families } };
}

function bytesOfFamilies(families: number, agreement: Agreement) {
  const isIndex = (key: string) => !isOf('grant', key);
  return bytesOf(families, isIndex, async (state, numbers) => {
    const grants = await state.give(numbers.length, agreement);
    const answers = await inBatches(grants, (given) => state.stores.grants.redeem(redeemRequest(given)));
    if (answers.some(({ outcome }) => outcome !== 'redeemed')) throw new Error('a code was not redeemed');
  });
}

/** The key in which a session notes the logins that its end is about, by how many there are. */
async function loginBytes(): Promise<readonly Count[]> {
  const counts: Count[] = [];
  for (const logins of [1, 100]) {
    const isLogin = (key: string) => isOf('loginsOfUser', key);
    const { indexes } = await bytesOf(SESSIONS, isLogin, (state, numbers) =>
      inBatches(numbers, (number) => state.signIn(newSession(`person-${number}`), logins)),
    );
    counts.push({ name: LOGINS, value: Math.round(indexes), parts: { logins } });
  }
  return counts;
}

/** What each of as many people as there are families has beside theirs. */
interface RowOfAPerson {
  readonly name: string;
  /** The keys by which it is found. */
  readonly index?: KeyKind;
  readonly write: (stores: Stores, username: string) => Promise<unknown>;
}

const OF_A_PERSON: readonly RowOfAPerson[] = [
  {
    name: 'sessions: bytes of one, with its index',
    index: 'sessionsOfUser',
    write: ({ sessions }, username) => sessions.create(newSession(username), undefined),
  },
  { name: 'consents: bytes of one', write: giveConsent },
  {
    name: 'requests: bytes of the last one of a session',
    write: (stores, username) => answerRequest(stores, newSession(username)),
  },
];

async function bytesOfAPerson({ name, index, write }: RowOfAPerson, people: number): Promise<Count> {
  const isIndex = (key: string) => index !== undefined && isOf(index, key);
  const { each, indexes } = await bytesOf(people, isIndex, (state, numbers) =>
    inBatches(numbers, (number) => write(state.stores, `person-${number}`)),
  );
  return { name, value: Math.round(each), parts: { people, ...(index && { index: Math.round(indexes) }) } };
}

/**
 * The memory that one of many takes, in a Redis of their own: all of it, and what of it is in keys that are indexes.
 * @param write writes those with these numbers
 */
async function bytesOf(
  count: number,
  isIndex: (key: string) => boolean,
  write: (state: GrantryState, numbers: readonly number[]) => Promise<unknown>,
): Promise<{ readonly each: number; readonly indexes: number }> {
  const redis = await startRedis(LOAD_CORE, { appendOnly: false });
  const state = await openGrantryState(redis.url);
  // The first one loads the scripts.
  await write(state, [0]);
  const before = await usedBytes(redis);
  for (let made = 0; made < count; made += CHUNK) {
    const numbers = Array.from({ length: Math.min(CHUNK, count - made) }, (_, index) => 1 + made + index);
    await write(state, numbers);
  }
  if ((await redis.commands.dbsize()) <= count) throw new Error('less was kept than was written');
  const indexes = await bytesOfKeys(redis, isIndex);
  const all = (await usedBytes(redis)) - before;
  await state.close();
  return { each: all / count, indexes: indexes / count };
}

function redeemRequest({ grant, secretHash }: GivenGrant) {
  return {
    grantId: grant.grantId,
    secretHash,
    clientUid: CLIENT_UID,
    redirectUri: REDIRECT_URI,
    confirmation: undefined,
    bindsRefreshTokens: false,
    verifierChallenge: CODE_CHALLENGE,
    attemptId: randomBytes(16).toString('base64url'),
    retention: 1000 * CODE_SECONDS + 90 * DAY,
    access: {
      scope: undefined,
      resource: undefined,
      defaultAudience: undefined,
      allowedScopes: [SCOPE],
      allowedAudiences: [AUDIENCE],
      at: undefined,
    },
    accessToken: undefined,
    address: '192.0.2.117',
    revokedBefore: 0,
  };
}

async function bytesOfKeys({ commands }: RedisServer, isCounted: (key: string) => boolean): Promise<number> {
  let bytes = 0;
  let cursor = '0';
  do {
    const [next, keys] = await commands.scan(cursor, 'COUNT', 1000);
    for (const key of keys.filter(isCounted)) bytes += (await commands.memory('USAGE', key)) ?? 0;
    cursor = next;
  } while (cursor !== '0');
  return bytes;
}

function isOf(kind: KeyKind, key: string): boolean {
  return key.includes(`}${KEY_PATTERNS[kind].split('}')[1]?.split('<')[0]}`);
}

function withVerdict(count: Count, goal: number): Count {
  return { ...count, goal, verdict: verdictOn(count.value, { floor: goal, goal }) };
}
