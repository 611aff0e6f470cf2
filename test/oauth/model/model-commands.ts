// What clients, people, thieves and time do in the model-based run. Each command asks the model for the answer that must come
// and compares; after each the invariants are checked on the grant it touched.

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { TokenResponse } from '../../../src/oauth/endpoints/token-endpoint.ts';
import {
  accessTokenLives,
  beEmptied,
  failOver,
  type Model,
  type ModelGrant,
  redeem,
  refresh,
  refreshTokenLives,
  revokeAccessToken,
  revokeRefreshToken,
  type Verdict,
} from './grant-model.ts';
import {
  type Answer,
  API,
  bindsToKeys,
  type CastName,
  clientIdOf,
  isConfidential,
  type KeyName,
  PERSON,
  type ProtocolWorld,
  redirectUriOf,
  SCOPES,
  thumbprintOf,
} from './protocol-world.ts';

/** The server under test and the hand that moves its clock. */
export interface ModelReal {
  readonly world: ProtocolWorld;
  setTime(now: number): void;
  /** What can befall the stores; undefined where nothing can. */
  readonly faults?: { crash(): Promise<void>; failOver(): Promise<void>; empty(): Promise<void> } | undefined;
}

type Command = fc.AsyncCommand<Model, ModelReal>;
type Act = (model: Model, real: ModelReal) => Promise<ModelGrant | undefined>;

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;

function command(name: string, act: Act, check: (model: Model) => boolean = () => true): Command {
  return {
    check,
    async run(model, real) {
      const touched = await act(model, real);
      if (touched) await checkInvariants(model, real, touched, 4);
    },
    toString: () => name,
  };
}

/** A command on one of the grants there are. */
function onGrant(
  name: string,
  pick: number,
  act: (grant: ModelGrant, model: Model, real: ModelReal) => Promise<void>,
  suits: (grant: ModelGrant) => boolean = () => true,
): Command {
  const chosen = (model: Model) => model.grants.filter(suits);
  return command(
    `${name}(${pick})`,
    async (model, real) => {
      const grants = chosen(model);
      const grant = grants.at(-1 - (pick % grants.length)) as ModelGrant;
      await act(grant, model, real);
      return grant;
    },
    (model) => chosen(model).length > 0,
  );
}

function issue(client: CastName, scope: readonly string[], isCodeBound = false): Command {
  const codeKey = isCodeBound ? 'own' : undefined;
  return command(`issue(${client}, ${scope.join(' ')}${isCodeBound ? ', bound' : ''})`, async (model, { world }) => {
    const verifier = randomBytes(32).toString('base64url');
    const code = await world.authorize(client, { scope, verifier, codeKey });
    const grant: ModelGrant = {
      name: model.grants.length,
      client,
      scope,
      codeKey,
      refreshKey: undefined,
      code,
      verifier,
      createdAt: model.now,
      wrongVerifiers: 0,
      redemptions: 0,
      revoked: false,
      generation: undefined,
      refreshedAt: model.now,
      replacedAt: undefined,
      accessTokens: [],
      refreshTokens: [],
      alerts: [],
      lost: false,
    };
    model.grants.push(grant);
    return grant;
  });
}

type Redemption = Parameters<typeof redeem>[2];

interface Prover {
  readonly client: CastName;
  /** The key that the code or refresh token is bound to. */
  readonly boundTo: KeyName | undefined;
}

/**
 * The key that a client proves. Only public ones do here: the proof of another client is a record in the store, of which this
 * model knows nothing.
 * @param key null for none; undefined for the one that is needed, if any
 */
function provenKey({ client, boundTo }: Prover, key?: KeyName | null): KeyName | undefined {
  if (isConfidential(client) || key === null) return undefined;
  return key ?? (bindsToKeys(client) ? 'own' : boundTo);
}

function sendCode(grant: ModelGrant, { client, verifier, redirectUri, key }: Redemption, { world }: ModelReal) {
  const form = {
    grant_type: 'authorization_code',
    code: grant.code,
    redirect_uri: redirectUri === 'right' ? redirectUriOf(grant.client) : redirectUriOf('thief'),
    ...(verifier === 'right' && { code_verifier: grant.verifier }),
    ...(verifier === 'wrong' && { code_verifier: randomBytes(32).toString('base64url') }),
  };
  return world.token(client, form, key);
}

const refreshable = (grant: ModelGrant) => grant.refreshTokens.length > 0;
const isUnredeemed = (grant: ModelGrant) => grant.generation === undefined;

function redeemWith(
  name: string,
  pick: number,
  change: Partial<Omit<Redemption, 'key'>> & { readonly key?: KeyName | null },
  times = 1,
  suits?: (grant: ModelGrant) => boolean,
): Command {
  const act = async (grant: ModelGrant, model: Model, real: ModelReal) => {
    const { client = grant.client, verifier = 'right', redirectUri = 'right' } = change;
    const key = provenKey({ client, boundTo: grant.codeKey }, change.key);
    const sent: Redemption = { client, verifier, redirectUri, key };
    const answers = await Promise.all(Array.from({ length: times }, () => sendCode(grant, sent, real)));
    const verdicts = answers.map(() => redeem(model, grant, sent));
    compare(model, grant, { answers, verdicts, key });
    grant.redemptions += answers.filter((answer) => !('error' in answer)).length;
  };
  return onGrant(name, pick, act, suits);
}

function guess(pick: number, times: number): Command {
  return redeemWith(`guess a verifier ${times} times`, pick, { verifier: 'wrong' }, times);
}

interface Renewal {
  readonly client?: CastName;
  readonly scope?: (grant: ModelGrant) => readonly string[];
  /** The key that is proven; null for none. Default: the usual one. */
  readonly key?: KeyName | null;
  /** How far behind the current generation the presented token is. */
  readonly age?: number;
  readonly times?: number;
}

function refreshWith(name: string, pick: number, { client, scope, key, age = 0, times = 1 }: Renewal = {}): Command {
  return onGrant(
    name,
    pick,
    async (grant, model, real) => {
      const presented = grant.refreshTokens.at(-1 - Math.min(age, grant.refreshTokens.length - 1));
      if (presented === undefined) return;
      const { token, generation } = presented;
      const caller = client ?? grant.client;
      const proven = provenKey({ client: caller, boundTo: grant.refreshKey }, key);
      const sent = { client: caller, generation, scope: scope?.(grant), key: proven };
      const parameters = {
        grant_type: 'refresh_token',
        refresh_token: token,
        ...(sent.scope && { scope: sent.scope.join(' ') }),
      };
      const answers = await Promise.all(
        Array.from({ length: times }, () => real.world.token(sent.client, parameters, sent.key)),
      );
      const verdicts = answers.map(() => refresh(model, grant, sent));
      compare(model, grant, { answers, verdicts, key: proven });
    },
    refreshable,
  );
}

function steal(pick: number, age: number): Command {
  return refreshWith(`stolen refresh aged ${age}`, pick, { age, client: 'thief' });
}

function revokeWith(pick: number, what: 'refresh' | 'access', which: number, client?: CastName): Command {
  const name = `revoke ${what} ${which} by ${client ?? 'its client'}`;
  return onGrant(
    name,
    pick,
    async (grant, model, { world }) => {
      const caller = client ?? grant.client;
      if (what === 'refresh') {
        const { token } = grant.refreshTokens[which % grant.refreshTokens.length] as { token: string };
        expect(await world.revoke(caller, token)).toEqual(revokeRefreshToken(model, grant, caller));
      } else {
        const token = grant.accessTokens[which % grant.accessTokens.length] as ModelGrant['accessTokens'][number];
        expect(await world.revoke(caller, token.token)).toEqual(revokeAccessToken(model, grant, token, caller));
      }
    },
    refreshable,
  );
}

function tick(milliseconds: number): Command {
  return command(`tick(${milliseconds})`, async (model, real) => {
    model.now += milliseconds;
    real.setTime(model.now);
    return model.grants.at(-1);
  });
}

function withdraw(client: CastName): Command {
  return command(`withdraw(${client})`, async (model, { world }) => {
    await world.withdraw(client);
    model.withdrawnAt.set(client, model.now);
    return model.grants.find((grant) => grant.client === client);
  });
}

interface Compared {
  readonly answers: readonly Answer<TokenResponse>[];
  readonly verdicts: readonly Verdict[];
  /** The key that the requests prove. */
  readonly key: KeyName | undefined;
}

/**
 * The answers to requests sent at once, against what must come; the order among them is the server's.
 * Whatever a client got is remembered: a thief may have seen it, too.
 */
function compare(model: Model, grant: ModelGrant, { answers, verdicts, key }: Compared): void {
  expect(answers.map(inWords).sort()).toEqual(verdicts.map(verdictInWords).sort());
  const generations = verdicts.flatMap((verdict) => ('good' in verdict ? [verdict.generation] : []));
  for (const answer of answers) {
    if ('error' in answer) continue;
    const generation = generations.shift() as number;
    remember(model, grant, { answer, generation, key });
  }
}

function inWords(answer: Answer<TokenResponse>): string {
  return 'error' in answer ? `${answer.error} ${answer.reason}` : 'tokens';
}

function verdictInWords(verdict: Verdict): string {
  return 'error' in verdict ? `${verdict.error} ${verdict.reason}` : 'tokens';
}

interface Received {
  readonly answer: TokenResponse;
  readonly generation: number;
  readonly key: KeyName | undefined;
}

function remember(model: Model, grant: ModelGrant, { answer, generation, key }: Received): void {
  const { access_token, refresh_token, scope, expires_in } = answer;
  expect(answer.token_type).toBe(key === undefined ? 'Bearer' : 'DPoP');
  // Scope never grows.
  expect(scope.split(' ').filter((token) => !grant.scope.includes(token))).toEqual([]);
  const issuedAt = SECOND * Math.floor(model.now / SECOND);
  const expiresAt = issuedAt + SECOND * expires_in;
  grant.accessTokens.push({ token: access_token, scope, key, expiresAt, revoked: false });
  expect(refresh_token).toBeDefined();
  const known = grant.refreshTokens.find((seen) => seen.generation === generation);
  // A family never forks: one generation is one token, for every caller and every retry.
  if (known) expect(refresh_token).toBe(known.token);
  else grant.refreshTokens.push({ token: refresh_token as string, generation });
}

/**
 * The invariants of one grant, as seen from outside.
 * @param newest how many of its tokens are checked: a few after each step, all at the end
 */
export async function checkInvariants(
  model: Model,
  { world }: ModelReal,
  grant: ModelGrant,
  newest: number,
): Promise<void> {
  // One redemption.
  expect(grant.redemptions).toBeLessThanOrEqual(1);
  // Revoked families stay revoked, active tokens are for the right client, person and API, and only as wide as they were made.
  for (const token of grant.accessTokens.slice(-newest)) {
    const told = await world.introspect('api', token.token);
    if (accessTokenLives(model, grant, token)) {
      const { client, scope } = { client: clientIdOf(grant.client), scope: token.scope };
      expect(told).toMatchObject({ active: true, client_id: client, sub: PERSON, aud: API, scope });
      const cnf = token.key && { jkt: thumbprintOf(token.key) };
      expect('cnf' in told ? told.cnf : undefined).toEqual(cnf);
    } else expect(told).toEqual({ active: false });
    expect(await world.introspect('thief', token.token)).toEqual({ active: false });
  }
  for (const token of isConfidential(grant.client) ? grant.refreshTokens.slice(-newest) : []) {
    const told = await world.introspect(grant.client, token.token);
    expect(told).toMatchObject({ active: refreshTokenLives(model, grant, token) });
    expect(await world.introspect('thief', token.token)).toEqual({ active: false });
  }
  // One alert per family and type.
  expect(alertsOf(world, grant)).toEqual(grant.alerts);
  expect(new Set(grant.alerts).size).toBe(grant.alerts.length);
}

/** The alerts the server raised for a grant, in order; grants are issued in the model's order. */
function alertsOf(world: ProtocolWorld, grant: ModelGrant): readonly string[] {
  const issued = world.events.filter((event) => event.type === 'authorization_code.issued');
  const grantId = issued[grant.name]?.grantId;
  return world.events.flatMap(({ alert }) => (alert && alert.grantId === grantId ? [alert.type] : []));
}

/** Mostly one of the last grants: they are alive. */
const pick = fc.oneof({ weight: 4, arbitrary: fc.nat({ max: 1 }) }, { weight: 1, arbitrary: fc.nat({ max: 7 }) });
const holder = fc.constantFrom<CastName>('web', 'app', 'batch', 'phone', 'kiosk');
const publicHolder = fc.constantFrom<CastName>('app', 'phone', 'kiosk');
const wrongKey = fc.constantFrom<KeyName | null>('stolen', null);
const someScope = fc.subarray([...SCOPES], { minLength: 1 });
const times = fc.integer({ min: 2, max: 8 });
const which = fc.nat({ max: 9 });
const narrower = (grant: ModelGrant) => grant.scope.slice(0, 1);
const wider = () => [...SCOPES, 'root'];

/** What happens, and how often among the rest: mostly what lets families live and grow, now and then what ends them. */
const HAPPENINGS: readonly (readonly [weight: number, happening: fc.Arbitrary<Command>])[] = [
  [8, fc.tuple(holder, someScope).map(([client, scope]) => issue(client, scope))],
  [2, fc.tuple(publicHolder, someScope).map(([client, scope]) => issue(client, scope, true))],
  [10, pick.map((grant) => redeemWith('redeem', grant, {}, 1, isUnredeemed))],
  [1, pick.map((grant) => redeemWith('replay', grant, {}, 1, refreshable))],
  [1, fc.tuple(pick, times).map(([grant, n]) => redeemWith(`redeem ${n} times`, grant, {}, n))],
  [2, fc.tuple(pick, fc.integer({ min: 1, max: 6 })).map(([grant, n]) => guess(grant, n))],
  [1, pick.map((grant) => redeemWith('no verifier', grant, { verifier: 'none' }))],
  [1, pick.map((grant) => redeemWith('wrong redirect_uri', grant, { redirectUri: 'wrong' }))],
  [1, pick.map((grant) => redeemWith('stolen code', grant, { client: 'thief' }))],
  [2, fc.tuple(pick, wrongKey).map(([grant, key]) => redeemWith(`redeem by key ${key}`, grant, { key }))],
  [16, pick.map((grant) => refreshWith('refresh', grant))],
  [
    4,
    fc
      .tuple(pick, wrongKey, fc.nat({ max: 2 }))
      .map(([grant, key, age]) => refreshWith(`refresh aged ${age} by key ${key}`, grant, { key, age })),
  ],
  [5, pick.map((grant) => refreshWith('late refresh', grant, { age: 1 }))],
  [1, fc.tuple(pick, fc.nat({ max: 5 })).map(([grant, age]) => refreshWith(`refresh aged ${age}`, grant, { age }))],
  [3, fc.tuple(pick, times).map(([grant, n]) => refreshWith(`refresh ${n} times`, grant, { times: n }))],
  [3, fc.tuple(pick, fc.nat({ max: 2 })).map(([grant, age]) => steal(grant, age))],
  [3, fc.tuple(pick, fc.nat({ max: 1 })).map(([grant, age]) => refreshWith('narrow', grant, { age, scope: narrower }))],
  [3, fc.tuple(pick, fc.nat({ max: 1 })).map(([grant, age]) => refreshWith('widen', grant, { age, scope: wider }))],
  [1, fc.tuple(pick, which).map(([grant, index]) => revokeWith(grant, 'refresh', index))],
  [3, fc.tuple(pick, which).map(([grant, index]) => revokeWith(grant, 'access', index))],
  [1, fc.tuple(pick, which).map(([grant, index]) => revokeWith(grant, 'refresh', index, 'thief'))],
  [2, fc.tuple(pick, which).map(([grant, index]) => revokeWith(grant, 'access', index, 'thief'))],
  [0.4, holder.map(withdraw)],
  [6, fc.constantFrom(1, SECOND, 9 * SECOND, 10 * SECOND, 10 * SECOND + 1).map(tick)],
  [1, fc.constantFrom(59_999, 60 * SECOND, 600 * SECOND, HOUR).map(tick)],
  [0.4, fc.constantFrom(7 * DAY, 14 * DAY - 1, 14 * DAY, 45 * DAY, 91 * DAY).map(tick)],
];

/** One thing that happens. A history is a list of these. */
export const HAPPENING: fc.Arbitrary<Command> = fc.oneof(
  ...HAPPENINGS.map(([weight, arbitrary]) => ({ weight: 10 * weight, arbitrary })),
);

const crash = command('crash of a replica', async (model, { faults }) => {
  await faults?.crash();
  return model.grants.at(-1);
});

const loseNothing = command('fail-over', async (model, { faults }) => {
  await faults?.failOver();
  failOver(model);
  return model.grants.at(-1);
});

/** Nothing made before may live again, also what was not written; a moment later life goes on. */
const loseAll = command('empty store', async (model, real) => {
  await real.faults?.empty();
  await real.world.raiseGlobal();
  beEmptied(model);
  model.now += 1;
  real.setTime(model.now);
  return model.grants.at(-1);
});

/** A fault between two grants that live and what they are used for next: one is redeemed by then, of the other there is a code. */
function scene(fault: Command): readonly Command[] {
  const redemption = redeemWith('redeem', 0, {}, 1, isUnredeemed);
  return [
    ...[issue('web', SCOPES), redemption, issue('app', SCOPES)],
    fault,
    ...[refreshWith('refresh', 0), redemption],
  ];
}

/** What every history has to go through, in some order: each fault once where it matters. */
export const SCENES: readonly (readonly Command[])[] = [crash, loseNothing, loseAll].map(scene);

/** One thing that befalls the stores. */
export const FAULT: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(crash) },
  { weight: 3, arbitrary: fc.constant(loseNothing) },
  { weight: 1, arbitrary: fc.constant(loseAll) },
);
