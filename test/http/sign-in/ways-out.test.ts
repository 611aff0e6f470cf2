// Each way in which a person leaves, against each thing that the person holds. The replica in which the person signed in
// is gone when the entry changes or when the test reads what is left: what one replica learns outlives it in the store.

import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { hashPassword, type LocalUser, LocalUsers } from '../../../src/login/local/local-users.ts';
import { memoryStores } from '../../../src/memory/stores.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { answerIn } from '../../clients/person.ts';
import { type Grantry, PKCE, startGrantry, TestClock } from '../../grantry.ts';
import { API, TokenCalls, WEB } from '../protocol/token-calls.ts';
import { TestBrowser } from './sign-in-browser.ts';

const ISSUER = 'http://127.0.0.1:9400';
const HOUR = 3_600_000;
const PASSWORD = 'the password of ada';
const NEW_PASSWORD = 'another password of ada';
const OPAQUE = { clientId: 'shop.opaque', secret: 'the-secret-of-the-opaque-application' };
const AUDIENCE = 'https://api.shop.example/';
const TOKENS = {
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 86_400,
  refreshTokenLifetimeSeconds: 86_400,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;
const CLIENTS = [
  { ...WEB, audiences: [AUDIENCE] },
  { ...OPAQUE, audiences: [AUDIENCE], tokens: { ...TOKENS, accessTokenFormat: 'opaque' as const } },
  { ...API, resourceServerAudiences: [AUDIENCE] },
];
const PEPPER = randomBytes(32);

let ada: LocalUser;
let adaAnew: LocalUser;
beforeAll(async () => {
  ada = { username: 'ada', passwordHash: await hashPassword(PASSWORD) };
  adaAnew = { username: 'ada', passwordHash: await hashPassword(NEW_PASSWORD) };
});

/** One Redis, so to speak, one clock, and the replicas that come and go. */
class Deployment {
  readonly clock = new TestClock();
  stores: Stores = memoryStores({ clock: this.clock });
  #users = new LocalUsers({ clock: this.clock, users: [] });
  #replica: Grantry | undefined;

  get replica(): Grantry {
    if (this.#replica === undefined) throw new Error('no replica runs');
    return this.#replica;
  }

  /** Starts a replica with this list of users; the former one ends. */
  async restart(users: readonly LocalUser[]): Promise<Grantry> {
    await this.#replica?.stop();
    this.#replica = await this.another(users);
    return this.#replica;
  }

  /** A replica beside the present one. */
  async another(users: readonly LocalUser[]): Promise<Grantry> {
    const { clock, stores } = this;
    this.#users = new LocalUsers({ clock, users });
    const options = { clock, issuer: ISSUER, pepper: PEPPER, owners: this.#users, wrapStores: () => stores };
    const replica = await startGrantry({ clients: CLIENTS, ...options });
    await replica.usersRecorded();
    return replica;
  }

  /** The present replica reads another list of users. */
  async edit(users: readonly LocalUser[]): Promise<void> {
    this.#users.replace(users);
    await this.replica.usersRecorded();
  }
}

function authorizeUrl(clientId: string): URL {
  const url = new URL(`${ISSUER}/authorize`);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: 'https://app.example/cb',
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
  }).toString();
  return url;
}

const browserOf = ({ port }: Grantry) => new TestBrowser(`http://127.0.0.1:${port}`, ISSUER);

async function codeOf(browser: TestBrowser, clientId: string, password = PASSWORD): Promise<string> {
  const answers = { username: 'ada', password, decision: 'allow' } as const;
  const back = await answerIn(browser, authorizeUrl(clientId), answers);
  return back.searchParams.get('code') ?? '';
}

/** All that the person can hold. @returns what is left of it, asked of another replica */
async function holdings(deployment: Deployment) {
  const { replica, clock } = deployment;
  const [used, unused] = [browserOf(replica), browserOf(replica)];
  const web = new TokenCalls(replica);
  const jwt = (await web.redeem(await codeOf(used, WEB.clientId))).body;
  const opaque = (await web.as(OPAQUE).redeem(await codeOf(used, OPAQUE.clientId))).body;
  await codeOf(unused, WEB.clientId);
  const code = await codeOf(used, WEB.clientId);
  const subject = (await new TokenCalls(replica, API).introspect(jwt.access_token)).body.sub;
  clock.advance(1);

  /** The same browser at another replica. */
  const moved = (browser: TestBrowser, other: Grantry) => {
    const there = browserOf(other);
    for (const [name, value] of browser.cookies) there.cookies.set(name, value);
    return there;
  };
  const isSignedIn = async (browser: TestBrowser, other: Grantry) => {
    const { pathname, search } = authorizeUrl(WEB.clientId);
    return (await moved(browser, other).get(pathname + search)).status === 302;
  };
  return {
    /** A visit to this replica, which notices that the person has left. */
    visit: (other: Grantry) => isSignedIn(used, other),
    async left(other: Grantry) {
      const calls = new TokenCalls(other);
      const api = calls.as(API);
      return {
        'session in use': await isSignedIn(used, other),
        'session not used since': await isSignedIn(unused, other),
        'JWT access token': await api.isActive(jwt.access_token),
        'opaque access token': await api.isActive(opaque.access_token),
        code: (await calls.redeem(code)).status === 200,
        'refresh token': (await calls.refresh(jwt.refresh_token)).status === 200,
        consent: (await deployment.stores.consents.list(String(subject))).length > 0,
      };
    },
  };
}

const ALL = {
  'session in use': true,
  'session not used since': true,
  'JWT access token': true,
  'opaque access token': true,
  code: true,
  'refresh token': true,
  consent: true,
};
const NOTHING = Object.fromEntries(Object.keys(ALL).map((name) => [name, false]));
const CONSENT_ONLY = { ...NOTHING, consent: true };

/** One list of users after the other, and how long each stands. */
type Lists = (now: number) => readonly { readonly users: readonly LocalUser[]; readonly lasts: number }[];

const ID = '1815';
/** The list of users when the person signs in. */
type First = () => readonly LocalUser[];
const WITHOUT_ID: First = () => [ada];

type WayOut = readonly [name: string, lists: Lists, left: Readonly<Record<string, boolean>>, first: First];

const WAYS_OUT: readonly WayOut[] = [
  [
    'is disabled and enabled again',
    () => [
      { users: [{ ...ada, disabled: true }], lasts: 10 },
      { users: [ada], lasts: 10 },
    ],
    CONSENT_ONLY,
    WITHOUT_ID,
  ],
  ['has a new password', () => [{ users: [adaAnew], lasts: 10 }], CONSENT_ONLY, WITHOUT_ID],
  [
    'has tokens revoked before now',
    (now) => [{ users: [{ ...ada, revokeTokensBefore: now }], lasts: 10 }],
    CONSENT_ONLY,
    WITHOUT_ID,
  ],
  [
    'is gone for an hour and back',
    () => [
      { users: [], lasts: HOUR },
      { users: [ada], lasts: 10 },
    ],
    NOTHING,
    WITHOUT_ID,
  ],
  [
    'is gone for a minute and back with another password',
    () => [
      { users: [], lasts: 60_000 },
      { users: [adaAnew], lasts: 10 },
    ],
    NOTHING,
    WITHOUT_ID,
  ],
  [
    'has given the username to another person',
    () => [{ users: [{ ...adaAnew, id: '7' }], lasts: 10 }],
    CONSENT_ONLY,
    WITHOUT_ID,
  ],
  [
    'has given the id to another person',
    () => [{ users: [{ ...adaAnew, username: 'grace', id: ID }], lasts: 10 }],
    CONSENT_ONLY,
    () => [{ ...ada, id: ID }],
  ],
];

describe.each(WAYS_OUT)('a person who %s', (_name, lists, left, first) => {
  it('holds nothing from before, where each list of users is that of new replicas', async () => {
    const deployment = new Deployment();
    await deployment.restart(first());
    const held = await holdings(deployment);
    for (const { users, lasts } of lists(deployment.clock.now())) {
      await deployment.restart(users);
      deployment.clock.advance(lasts);
    }
    expect(await held.left(deployment.replica)).toEqual(left);
  });

  it('holds nothing from before, where one replica reads all lists and another one is asked', async () => {
    const deployment = new Deployment();
    await deployment.restart(first());
    const held = await holdings(deployment);
    let last: readonly LocalUser[] = [];
    for (const { users, lasts } of lists(deployment.clock.now())) {
      await deployment.edit(users);
      await held.visit(deployment.replica);
      deployment.clock.advance(lasts);
      await deployment.replica.usersRecorded();
      last = users;
    }
    expect(await held.left(await deployment.restart(last))).toEqual(left);
  });
});

describe('a person', () => {
  it('who is gone for ten minutes, as from a file that was cut off, finds everything again', async () => {
    const deployment = new Deployment();
    await deployment.restart([ada]);
    const held = await holdings(deployment);
    await deployment.edit([]);
    expect(await held.visit(deployment.replica)).toBe(false);
    deployment.clock.advance(10 * 60_000);
    await deployment.replica.usersRecorded();
    const left = await held.left(await deployment.restart([ada]));
    // Codes and access tokens are older than their lifetimes by now.
    const expired = { code: false, 'JWT access token': false, 'opaque access token': false };
    expect(left).toEqual({ ...ALL, ...expired });
  });

  it.each([
    ['disabled', () => ({ ...ada, disabled: true })],
    ['revoked before now', (now: number) => ({ ...ada, revokeTokensBefore: now })],
  ])('who is %s holds nothing, also where the store was emptied', async (_name, entry) => {
    const deployment = new Deployment();
    await deployment.restart([ada]);
    const held = await holdings(deployment);
    deployment.stores = memoryStores({ clock: deployment.clock });
    expect(await held.left(await deployment.restart([entry(deployment.clock.now())]))).toEqual(NOTHING);
  });

  it('with a new password signs in by it only, is signed out once, and a replica with the old list refuses for now', async () => {
    const deployment = new Deployment();
    const slow = await deployment.restart([ada]);
    const old = await deployment.another([ada]);
    const fast = await deployment.another([adaAnew]);
    await expect(codeOf(browserOf(slow), WEB.clientId, PASSWORD)).rejects.toThrow();
    const refusal = slow.logs().findLast(({ route }) => route === 'login');
    expect(refusal).toMatchObject({ status: 503, reason: 'users_outdated' });
    await expect(codeOf(browserOf(fast), WEB.clientId, PASSWORD)).rejects.toThrow();
    const browser = browserOf(fast);
    deployment.clock.advance(1);
    expect(await codeOf(browser, WEB.clientId, NEW_PASSWORD)).not.toBe('');
    deployment.clock.advance(60_000);
    // Another replica starts with the new list a minute later: the session of the new password lives on.
    await deployment.restart([adaAnew]);
    const { status } = await browser.get(`/authorize${authorizeUrl(WEB.clientId).search}`);
    expect(status).toBe(302);
    const ends = [slow, old, fast, deployment.replica].flatMap((replica) => replica.audits());
    expect(ends.filter(({ event }) => event === 'sessions.ended_all')).toHaveLength(1);
  });

  it('whose tokens are revoked before now loses a grant of an earlier sign-in, also one that was made since', async () => {
    const deployment = new Deployment();
    await deployment.restart([ada]);
    const browser = browserOf(deployment.replica);
    await codeOf(browser, WEB.clientId);
    deployment.clock.advance(10);
    const revokeTokensBefore = deployment.clock.now();
    deployment.clock.advance(10);
    // This replica has not read the list yet.
    const { body } = await new TokenCalls(deployment.replica).redeem(await codeOf(browser, WEB.clientId));
    const calls = new TokenCalls(await deployment.restart([{ ...ada, revokeTokensBefore }]));
    expect((await calls.refresh(body.refresh_token)).status).toBe(400);
    expect(await calls.as(API).isActive(body.access_token)).toBe(false);
  });
});
