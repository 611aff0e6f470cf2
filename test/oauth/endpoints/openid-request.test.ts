// The parameters of OpenID Connect at the authorization endpoint, and whether a session answers them.

import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  asksForAccount,
  asksForSignIn,
  isAbout,
  isAboutAnyone,
  isSilent,
  needsSignIn,
  openidParameters,
  readOpenidRequest,
} from '../../../src/oauth/endpoints/openid-request.ts';
import type { AuthorizationSnapshot, OpenidRequest } from '../../../src/oauth/ports/login-stores.ts';
import { generateSigningKeyPem, importSigningKey, KeyRing } from '../../../src/oauth/registry/keys.ts';
import { IdTokens } from '../../../src/oauth/tokens/id-tokens.ts';
import { Parameters } from '../../../src/oauth/values/parameters.ts';
import { aClient } from '../a-client.ts';
import { refusalOf } from '../refusal.ts';

const ISSUER = 'https://id.example';
const NOW = 1_800_000_000_500;
const client = aClient({ idTokens: { signingAlgorithm: 'ES256', lifetimeSeconds: 60 } });

let keys = new KeyRing([]);
let hint = '';
beforeAll(async () => {
  keys = new KeyRing([await importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active')]);
  hint = await idTokenFor('usr_ada');
});

/** An ID token of long ago: its expiry does not count. */
async function idTokenFor(subject: string, audience = client): Promise<string> {
  const clock = { now: () => NOW - 90 * 86_400_000 };
  const idTokens = new IdTokens({ issuer: ISSUER, clock, random: { bytes: randomBytes }, endOfTick: setImmediate });
  const person = { subject, username: 'ada', displayName: undefined, email: undefined, groups: [] };
  const login = { authTime: NOW, sid: 'the-session', nonce: undefined };
  const content = { person, scope: ['openid'], login, accessToken: 'an.access.token' };
  return (await idTokens.prepare(audience, keys).issue(content)).idToken;
}

type Sent = Readonly<Record<string, string | readonly string[]>>;

function read(sent: Sent, scope = ['openid']) {
  const values = Object.entries(sent).map(([name, value]) => [name, [value].flat()] as const);
  return readOpenidRequest(new Parameters(new Map(values)), scope, { client, issuer: ISSUER, keys });
}

const NOTHING: OpenidRequest = {
  nonce: undefined,
  prompt: [],
  maxAge: undefined,
  loginHint: undefined,
  subject: undefined,
};

function aRequest(openid?: Partial<OpenidRequest>): AuthorizationSnapshot {
  return {
    clientUid: client.uid,
    clientId: client.clientId,
    redirectUri: 'https://shop.example/callback',
    scope: ['openid'],
    audiences: [ISSUER],
    codeChallenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    state: undefined,
    openid: openid && { ...NOTHING, ...openid },
  };
}

describe('the parameters of OpenID Connect', () => {
  it('given a scope without openid → none of them is read, whatever they hold', () => {
    const sent = { nonce: ['a', 'b'], prompt: 'none login', max_age: '-1', id_token_hint: 'x' };
    expect(read(sent, ['profile', 'openid2'])).toBeUndefined();
  });

  it.each<[string, Sent, Partial<OpenidRequest>]>([
    ['nothing', {}, {}],
    ['all of them empty', { nonce: '', prompt: '', max_age: '', id_token_hint: '', login_hint: '' }, {}],
    ['a nonce', { nonce: ' n-0S6_ü+%&= ' }, { nonce: ' n-0S6_ü+%&= ' }],
    ['a nonce of 512 bytes', { nonce: 'é'.repeat(256) }, { nonce: 'é'.repeat(256) }],
    ['prompt none', { prompt: 'none' }, { prompt: ['none'] }],
    ['prompt none between blanks', { prompt: ' none ' }, { prompt: ['none'] }],
    ['prompt none, repeated in the value', { prompt: 'none none' }, { prompt: ['none'] }],
    ['prompt login consent', { prompt: 'login consent' }, { prompt: ['login', 'consent'] }],
    ['prompt select_account login', { prompt: 'select_account  login' }, { prompt: ['select_account', 'login'] }],
    ['unknown values of prompt', { prompt: 'create constructor __proto__ LOGIN consent' }, { prompt: ['consent'] }],
    ['max_age 0', { max_age: '0' }, { maxAge: 0 }],
    ['max_age 0060', { max_age: '0060' }, { maxAge: 60 }],
    ['max_age of 400 digits', { max_age: '9'.repeat(400) }, { maxAge: Number.MAX_SAFE_INTEGER }],
    ['a login hint', { login_hint: 'ada@example.com' }, { loginHint: 'ada@example.com' }],
    ['a login hint of 254 characters', { login_hint: 'ü'.repeat(254) }, { loginHint: 'ü'.repeat(254) }],
    ['a login hint of 255 characters', { login_hint: 'a'.repeat(255) }, {}],
  ])('given %s → that', (_what, sent, expected) => {
    expect(read(sent)).toEqual({ ...NOTHING, ...expected });
  });

  it('given an ID token of this client as a hint, long expired → its person', () => {
    expect(read({ id_token_hint: hint })).toEqual({ ...NOTHING, subject: 'usr_ada' });
  });

  it.each<[string, Sent, string]>([
    ['a nonce of 513 bytes', { nonce: 'a'.repeat(513) }, 'nonce_unreadable'],
    ['a nonce of 513 bytes in UTF-8', { nonce: `a${'é'.repeat(256)}` }, 'nonce_unreadable'],
    ['a nonce with NUL', { nonce: 'a\0' }, 'nonce_unreadable'],
    ['a nonce with a line break', { nonce: 'a\nb' }, 'nonce_unreadable'],
    ['a nonce with half a surrogate pair', { nonce: '\ud800' }, 'nonce_unreadable'],
    ['prompt none login', { prompt: 'none login' }, 'prompt_contradictory'],
    ['prompt none with an unknown value', { prompt: 'create none' }, 'prompt_contradictory'],
    ['max_age -1', { max_age: '-1' }, 'max_age_malformed'],
    ['max_age 1.5', { max_age: '1.5' }, 'max_age_malformed'],
    ['max_age 1e3', { max_age: '1e3' }, 'max_age_malformed'],
    ['max_age with a blank', { max_age: ' 1' }, 'max_age_malformed'],
    ['a hint that is no JWT', { id_token_hint: 'x' }, 'id_token_hint_invalid'],
    ['a doubled nonce', { nonce: ['a', 'a'] }, 'duplicate_parameter'],
    ['a doubled prompt', { prompt: ['login', ''] }, 'duplicate_parameter'],
    ['a doubled max_age', { max_age: ['', ''] }, 'duplicate_parameter'],
    ['a doubled login_hint', { login_hint: ['a', 'b'] }, 'duplicate_parameter'],
    ['a doubled ui_locales', { ui_locales: ['de', 'en'] }, 'duplicate_parameter'],
    ['a doubled id_token_hint', { id_token_hint: ['a', 'b'] }, 'duplicate_parameter'],
  ])('given %s → invalid_request', (_what, sent, reason) => {
    expect(refusalOf(() => read(sent))).toEqual({ code: 'invalid_request', reason });
  });

  it('given the hint of another client, or one with a flipped byte → invalid_request', async () => {
    const foreign = await idTokenFor('usr_ada', { ...client, clientId: 'another' });
    const flipped = hint.slice(0, -3) + (hint.at(-3) === 'A' ? 'B' : 'A') + hint.slice(-2);
    for (const id_token_hint of [foreign, flipped]) {
      expect(refusalOf(() => read({ id_token_hint }))).toEqual({
        code: 'invalid_request',
        reason: 'id_token_hint_invalid',
      });
    }
  });

  it.each(['60', '0'])(
    'given those that were read, with max_age %s → written and read again they are the same',
    (max_age) => {
      const sent = { nonce: 'n&=', prompt: 'consent login', max_age, login_hint: 'ada' };
      const openid = read(sent);
      expect(openid && openidParameters(openid)).toEqual(sent);
      expect(openidParameters(NOTHING)).toStrictEqual({});
    },
  );
});

describe('a session', () => {
  const ada = (age: number) => ({ subject: 'usr_ada', authTime: NOW - age });

  it.each<[string, Partial<OpenidRequest> | undefined, number, boolean]>([
    ['no openid', undefined, 9e9, false],
    ['openid alone', {}, 9e9, false],
    ['prompt login', { prompt: ['login'] }, 0, true],
    ['prompt consent', { prompt: ['consent'] }, 9e9, false],
    ['max_age at its second', { maxAge: 60 }, 60_000, false],
    ['max_age a millisecond after it', { maxAge: 60 }, 60_001, true],
    ['max_age 0, as prompt login', { maxAge: 0 }, 0, true],
    ['a hint of the same person', { subject: 'usr_ada' }, 0, false],
    ['a hint of another person', { subject: 'usr_bob' }, 0, true],
  ])('given %s → whether the person must sign in', (_what, openid, age, expected) => {
    expect(needsSignIn(aRequest(openid), ada(age), NOW)).toBe(expected);
  });

  it.each([
    ['earlier', 60_001, true],
    ['as long ago', 60_000, false],
    ['later than here', -1000, false],
  ])('given max_age and a sign-in %s at the provider → the earlier time counts', (_when, age, expected) => {
    const session = Object.assign(ada(60_000), { upstreamAuthTime: NOW - age });
    expect(needsSignIn(aRequest({ maxAge: 60 }), session, NOW)).toBe(expected);
  });

  it.each([
    ['does not say when it was → of any age', undefined, true],
    ['says when it was → of that age', NOW - 60_000, false],
  ])('given max_age and a sign-in at a provider that %s', (_what, upstreamAuthTime, expected) => {
    const session = { ...ada(0), provider: 'corp', ...(upstreamAuthTime !== undefined && { upstreamAuthTime }) };
    expect(needsSignIn(aRequest({ maxAge: 60 }), session, NOW)).toBe(expected);
    expect(needsSignIn(aRequest({}), session, NOW)).toBe(false);
  });

  it.each<[AuthorizationSnapshot, boolean]>([
    [aRequest(), false],
    [aRequest({ prompt: ['consent'] }), false],
    [aRequest({ prompt: ['consent', 'login'] }), true],
  ])('given %j → whether the login page is asked for', (request, expected) => {
    expect(asksForSignIn(request)).toBe(expected);
  });

  it.each([
    [undefined, false],
    ['', false],
    ['login', false],
    ['select_account', true],
    ['login select_account', true],
    ['select_accounts', false],
  ])('given prompt %j, with openid and without → whether a person is to choose an account', (prompt, expected) => {
    const values = new Map(prompt === undefined ? [] : [['prompt', [prompt]] as const]);
    expect(asksForAccount(new Parameters(values))).toBe(expected);
  });

  it('given a hint → the answer is about its person alone', () => {
    const hinted = aRequest({ subject: 'usr_ada' });
    expect([isAboutAnyone(hinted), isAbout(hinted, ada(0)), isAbout(hinted, { subject: 'usr_bob' })]).toEqual([
      false,
      true,
      false,
    ]);
    for (const request of [aRequest(), aRequest({})]) {
      expect([isAboutAnyone(request), isAbout(request, ada(0))]).toEqual([true, true]);
    }
  });

  it('given prompt none alone → nothing is shown', () => {
    const silent = [undefined, {}, { prompt: ['login'] as const }, { prompt: ['none'] as const }].map((openid) =>
      isSilent(aRequest(openid)),
    );
    expect(silent).toEqual([false, false, false, true]);
  });
});
