import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memoryStores } from '../../../src/memory/stores.ts';
import { clientAccess } from '../../../src/oauth/access/client-access.ts';
import {
  type AcceptedAuthorization,
  type AuthorizationCheck,
  AuthorizationEndpoint,
} from '../../../src/oauth/endpoints/authorization-endpoint.ts';
import { UNLIMITED_STATE } from '../../../src/oauth/limits/state-limits.ts';
import type { AuditEvent } from '../../../src/oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { KEPT_CODES, MOST_RECORDS } from '../../../src/oauth/ports/grant-store.ts';
import { RECORDED_LOGINS } from '../../../src/oauth/ports/logout-store.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { KeyRing } from '../../../src/oauth/registry/keys.ts';
import { Registry } from '../../../src/oauth/registry/registry.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { Parameters } from '../../../src/oauth/values/parameters.ts';
import { signedIn } from '../../contracts/sample-grants.ts';
import { aClient } from '../a-client.ts';
import { attacksOn, LOOPBACK_ATTACKS } from '../values/redirect-attacks.ts';

const ISSUER = 'https://auth.example';
const CALLBACK = 'https://shop.example/callback';
const API = 'https://api.shop.example/';
const BILLING = 'https://billing.shop.example/';
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
const START = Date.UTC(2026, 0, 1);
const LONG_TAG = 'zh-cmn-Hans-CN-variant-another-more';
const TAGS = Array.from({ length: 20 }, (_, index) => `de-x${index}`);
const signIn = { subject: 'usr_0000000000000000000000', sessionId: 'session', authTime: START - 60_000 };
const person = { ...signIn, sid: 'sid-of-the-session' };

type Sent = Readonly<Record<string, string | readonly string[] | undefined>>;

const GOOD: Sent = {
  response_type: 'code',
  client_id: 'shop.web',
  redirect_uri: CALLBACK,
  scope: 'shop/read',
  state: 'st&te= 1',
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
};

/** A good request with these parameters replaced, doubled (a list) or left out (undefined). */
function aRequest(changes: Sent = {}): Parameters {
  const entries = Object.entries({ ...GOOD, ...changes }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, typeof value === 'string' ? [value] : value] as const],
  );
  return new Parameters(new Map(entries));
}

function registryOf(...clients: Client[]): Registry {
  return new Registry(clients, new KeyRing([]));
}

function anEndpoint(replaced: Partial<Stores> = {}) {
  const time = { now: START };
  const clock = { now: () => time.now };
  const random = { bytes: (count: number) => randomBytes(count) };
  const stores = { ...memoryStores({ clock }), ...replaced };
  const events: AuditEvent[] = [];
  const handles = new Handles({ issuer: ISSUER, peppers: [randomBytes(32)], random });
  const { grants, replays } = stores;
  const { people } = UNLIMITED_STATE;
  const audit = { record: (event: AuditEvent) => void events.push(event) };
  const endpoint = new AuthorizationEndpoint({ issuer: ISSUER, clock, grants, replays, handles, audit, people });
  return { endpoint, stores, handles, events, time, clock };
}

function check(changes: Sent, client: Client = aClient()): AuthorizationCheck {
  return anEndpoint().endpoint.check(aRequest(changes), registryOf(client));
}

function accepted(check: AuthorizationCheck): AcceptedAuthorization {
  if (check.kind !== 'accepted') throw new Error(`not accepted: ${check.reason}`);
  return check;
}

/** What the client finds in the query of an error redirect, less the description. */
function answerOf(check: AuthorizationCheck): Readonly<Record<string, string>> {
  if (check.kind !== 'redirect') throw new Error(`not redirected: ${check.kind}`);
  const { error_description: _, ...answer } = Object.fromEntries(new URL(check.location).searchParams);
  return answer;
}

describe('an authorization request', () => {
  it('is accepted as the snapshot that the decision will be recorded against', () => {
    const client = aClient();
    expect(check({}, client)).toEqual({
      kind: 'accepted',
      client,
      access: clientAccess(client, { resources: Resources.NONE }),
      request: {
        clientUid: client.uid,
        clientId: 'shop.web',
        redirectUri: CALLBACK,
        scope: ['shop/read'],
        audiences: [API],
        codeChallenge: CHALLENGE,
        state: 'st&te= 1',
      },
    });
  });

  it('with scope openid keeps what it says about the sign-in, also when it is validated again', () => {
    const client = aClient({ scopes: ['openid', 'offline_access'] });
    const { endpoint } = anEndpoint();
    const sent = { scope: 'openid offline_access', nonce: 'n', prompt: 'login', max_age: '60', login_hint: 'ada' };
    const { request } = accepted(endpoint.check(aRequest(sent), registryOf(client)));
    const openid = { nonce: 'n', prompt: ['login'], maxAge: 60, loginHint: 'ada', subject: undefined };
    expect(request).toMatchObject({ scope: ['openid', 'offline_access'], openid });
    const without = registryOf({ ...client, scopes: ['openid'] });
    expect(accepted(endpoint.recheck(request, without)).request).toEqual({ ...request, scope: ['openid'] });
  });

  it('may leave out scope, state and resource', () => {
    const { request } = accepted(check({ scope: undefined, state: undefined }));
    expect(request).toMatchObject({ scope: ['shop/read'], state: undefined, audiences: [API] });
  });

  it('may name several resources', () => {
    const client = aClient({ audiences: [API, BILLING], defaultAudience: API });
    expect(accepted(check({ resource: [BILLING, API] }, client)).request.audiences).toEqual([BILLING, API]);
    expect(accepted(check({}, client)).request.audiences).toEqual([API]);
  });

  it('may name the response mode query', () => {
    expect(check({ response_mode: 'query' }).kind).toBe('accepted');
  });

  it.each(['prompt', 'max_age', 'nonce', 'claims', 'foo', 'scope[]', '__proto__', 'constructor'])(
    'may hold the unknown parameter %s, also twice',
    (name) => {
      const values = new Map<string, readonly string[]>(
        Object.entries(GOOD).map(([key, value]) => [key, [String(value)]]),
      );
      values.set(name, ['x', 'y']);
      const answer = anEndpoint().endpoint.check(new Parameters(values), registryOf(aClient()));
      expect(answer.kind).toBe('accepted');
    },
  );

  it.each(['scope', 'state', 'resource', 'response_mode', 'request', 'request_uri', 'registration'])(
    'may send %s empty, as if it were absent',
    (name) => {
      expect(check({ [name]: '' }).kind).toBe('accepted');
    },
  );

  it.each<[string, string, readonly string[] | undefined]>([
    ['nothing', '', undefined],
    ['one tag', 'de', ['de']],
    ['several', 'zh-Hans-CN de-AT  en', ['zh-Hans-CN', 'de-AT', 'en']],
    ['one twice', 'de en de', ['de', 'en']],
    ['what is no tag, and a tag', 'd de_AT * <b> x-private abcdefghi en-abcdefghi de\n fr', ['fr']],
    ['no tag alone', '; - 1', undefined],
    ['a tag of 35 characters, and a longer one', `${LONG_TAG} ${LONG_TAG}9`, [LONG_TAG]],
    ['20 tags', TAGS.join(' '), TAGS.slice(0, 16)],
  ])('may name the languages of its pages, with or without openid: %s → only well-formed tags', (_case, sent, tags) => {
    const client = aClient({ scopes: ['shop/read', 'openid'] });
    for (const scope of ['shop/read', 'openid']) {
      expect(accepted(check({ scope, ui_locales: sent }, client)).request.uiLocales).toEqual(tags);
    }
  });

  it('may name the key that its code is bound to (RFC 9449 §10)', () => {
    const thumbprint = 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs';
    expect(accepted(check({ dpop_jkt: thumbprint })).request.confirmation).toBe(`jkt.${thumbprint}`);
    expect(accepted(check({})).request.confirmation).toBeUndefined();
    for (const dpop_jkt of [
      thumbprint.slice(1),
      `${thumbprint}A`,
      `${thumbprint}=`,
      `jkt.${thumbprint}`,
      'x y',
      '💥',
    ]) {
      const answer = check({ dpop_jkt });
      expect([answerOf(answer).error, answer.kind !== 'accepted' && answer.reason]).toEqual([
        'invalid_request',
        'dpop_jkt_malformed',
      ]);
    }
    const repeated = check({ dpop_jkt: [thumbprint, thumbprint] });
    expect(answerOf(repeated).error).toBe('invalid_request');
  });

  it('keeps the loopback port that was sent', () => {
    const client = aClient({ authMethod: 'none', redirectUris: ['http://127.0.0.1/cb'] });
    const { request } = accepted(check({ redirect_uri: 'http://127.0.0.1:49152/cb' }, client));
    expect(request.redirectUri).toBe('http://127.0.0.1:49152/cb');
  });
});

describe('a request without a certain client and address (RFC 6749 §4.1.2.1)', () => {
  it.each([
    ['no client_id', { client_id: undefined }, 'client_id_missing'],
    ['an empty client_id', { client_id: '' }, 'client_id_missing'],
    ['an unknown client_id', { client_id: 'nobody' }, 'client_unknown'],
    ['a client_id in other case', { client_id: 'Shop.Web' }, 'client_unknown'],
    ['two client_ids', { client_id: ['shop.web', 'other'] }, 'client_id_duplicate'],
    ['the same client_id twice', { client_id: ['shop.web', 'shop.web'] }, 'client_id_duplicate'],
    ['no redirect_uri', { redirect_uri: undefined }, 'redirect_uri_missing'],
    ['an empty redirect_uri', { redirect_uri: '' }, 'redirect_uri_missing'],
    ['an unregistered redirect_uri', { redirect_uri: 'https://evil.example/' }, 'redirect_uri_mismatch'],
    ['two redirect_uris', { redirect_uri: [CALLBACK, 'https://evil.example/'] }, 'redirect_uri_duplicate'],
    ['the same redirect_uri twice', { redirect_uri: [CALLBACK, CALLBACK] }, 'redirect_uri_duplicate'],
    ['a second empty redirect_uri', { redirect_uri: [CALLBACK, ''] }, 'redirect_uri_duplicate'],
  ])('is refused with a page and no address for %s', (_, changes, reason) => {
    const answer = check(changes);
    expect(answer).toMatchObject({ kind: 'refused', reason });
    expect(answer).not.toHaveProperty('location');
  });

  it('is refused even when everything else is wrong, too', () => {
    const answer = check({
      redirect_uri: 'https://evil.example/',
      response_type: 'token',
      scope: 'x',
      state: ['a', 'b'],
    });
    expect(answer).toMatchObject({ kind: 'refused', reason: 'redirect_uri_mismatch' });
  });

  it('is refused for a client that is registered no more', () => {
    const answer = anEndpoint().endpoint.check(aRequest(), registryOf());
    expect(answer).toMatchObject({ kind: 'refused', reason: 'client_unknown' });
  });

  it('names the client for the log only once it is a registered one', () => {
    expect(check({ client_id: 'nobody' })).toHaveProperty('clientId', undefined);
    expect(check({ redirect_uri: undefined })).toHaveProperty('clientId', 'shop.web');
  });

  it('is never redirected, whatever attack the redirect_uri is', () => {
    const loopback = aClient({ redirectUris: ['http://127.0.0.1/callback'] });
    const answers = [
      ...attacksOn(CALLBACK).map(([name, sent]) => [name, check({ redirect_uri: sent }).kind]),
      ...LOOPBACK_ATTACKS.map(([name, sent]) => [name, check({ redirect_uri: sent }, loopback).kind]),
    ];
    expect(answers.filter(([, kind]) => kind !== 'refused')).toEqual([]);
  });
});

describe('an error that goes to the client', () => {
  const machine = aClient({ grantTypes: ['client_credentials'] });
  const strict = aClient({ requireState: true });
  const long = 'x'.repeat(4097);

  it.each<[string, Sent, string, string, Client?]>([
    ['a request object', { request: 'eyJ' }, 'request_not_supported', 'request_not_supported'],
    ['a request_uri', { request_uri: 'https://x.example/' }, 'request_uri_not_supported', 'request_uri_not_supported'],
    ['a registration', { registration: '{}' }, 'registration_not_supported', 'registration_not_supported'],
    ['a client without the code grant', {}, 'unauthorized_client', 'grant_type_not_registered', machine],
    ['no response_type', { response_type: undefined }, 'invalid_request', 'response_type_missing'],
    ['an empty response_type', { response_type: '' }, 'invalid_request', 'response_type_missing'],
    ['the implicit flow', { response_type: 'token' }, 'unsupported_response_type', 'response_type_unsupported'],
    ['a hybrid flow', { response_type: 'code token' }, 'unsupported_response_type', 'response_type_unsupported'],
    [
      'a response_type in other case',
      { response_type: 'Code' },
      'unsupported_response_type',
      'response_type_unsupported',
    ],
    ['the response mode fragment', { response_mode: 'fragment' }, 'invalid_request', 'response_mode_unsupported'],
    ['the response mode form_post', { response_mode: 'form_post' }, 'invalid_request', 'response_mode_unsupported'],
    ['no code_challenge', { code_challenge: undefined }, 'invalid_request', 'code_challenge_missing'],
    ['no method', { code_challenge_method: undefined }, 'invalid_request', 'code_challenge_method_unsupported'],
    ['the method plain', { code_challenge_method: 'plain' }, 'invalid_request', 'code_challenge_method_unsupported'],
    ['the method s256', { code_challenge_method: 's256' }, 'invalid_request', 'code_challenge_method_unsupported'],
    ['the method S512', { code_challenge_method: 'S512' }, 'invalid_request', 'code_challenge_method_unsupported'],
    ['a short challenge', { code_challenge: CHALLENGE.slice(1) }, 'invalid_request', 'code_challenge_malformed'],
    ['a padded challenge', { code_challenge: `${CHALLENGE}=` }, 'invalid_request', 'code_challenge_malformed'],
    ['an unregistered scope', { scope: 'shop/read admin' }, 'invalid_scope', 'scope_not_registered'],
    ['a malformed scope', { scope: 'shop/read  shop/write' }, 'invalid_scope', 'scope_malformed'],
    ['no scope and no default', { scope: undefined }, 'invalid_scope', 'scope_missing', aClient({ defaultScopes: [] })],
    ['an unregistered resource', { resource: BILLING }, 'invalid_target', 'resource_not_registered'],
    ['a resource with a fragment', { resource: `${API}#x` }, 'invalid_target', 'resource_malformed'],
    ['a relative resource', { resource: '/v1' }, 'invalid_target', 'resource_malformed'],
  ])('says so with state and iss for %s', (_, changes, error, reason, client = aClient()) => {
    const answer = check(changes, client);
    expect(answer).toMatchObject({ kind: 'redirect', error, reason, clientId: 'shop.web' });
    expect(answerOf(answer)).toEqual({ error, state: 'st&te= 1', iss: ISSUER });
  });

  it.each([
    'response_type',
    'response_mode',
    'scope',
    'code_challenge',
    'code_challenge_method',
    'request',
    'request_uri',
    'registration',
  ])('says duplicate_parameter for two of %s, whatever their values', (name) => {
    const value = Object.hasOwn(GOOD, name) ? String(GOOD[name]) : '';
    for (const values of [
      [value, value],
      [value, ''],
      ['', value],
      [value, 'x'],
    ]) {
      const answer = check({ [name]: values });
      expect(answer).toMatchObject({ kind: 'redirect', error: 'invalid_request', reason: 'duplicate_parameter' });
      expect(answerOf(answer)).toMatchObject({ state: 'st&te= 1', iss: ISSUER });
    }
  });

  it.each<[string, Sent, string, Client?]>([
    ['state was sent twice', { state: ['a', 'a'] }, 'duplicate_parameter'],
    ['state is longer than 4 KiB', { state: long }, 'state_unreadable'],
    ['state is longer than 4 KiB in UTF-8', { state: 'é'.repeat(2049) }, 'state_unreadable'],
    ['state has a line break', { state: 'a\nb' }, 'state_unreadable'],
    ['state has NUL', { state: 'a\0' }, 'state_unreadable'],
    ['state has DEL', { state: '\x7f' }, 'state_unreadable'],
    ['state has a C1 control character', { state: '\x85' }, 'state_unreadable'],
    ['state has half a surrogate pair', { state: '\ud800' }, 'state_unreadable'],
    ['state is demanded and absent', { state: undefined }, 'state_missing', strict],
    ['state is demanded and empty', { state: '' }, 'state_missing', strict],
    ['another parameter is wrong as well', { state: long, response_type: 'token' }, 'state_unreadable'],
    ['another parameter is doubled as well', { state: '\n', scope: ['a', 'b'] }, 'duplicate_parameter'],
  ])('has no state when %s', (_, changes, reason, client = aClient()) => {
    const answer = check(changes, client);
    expect(answer).toMatchObject({ kind: 'redirect', error: 'invalid_request', reason });
    expect(answerOf(answer)).toEqual({ error: 'invalid_request', iss: ISSUER });
  });

  it('is the first in the order of checks', () => {
    // Each step mends what the one before complained of; the next check in the order must speak.
    const client = aClient({ requireState: true });
    const wrong: Sent = {
      client_id: 'nobody',
      redirect_uri: 'https://evil.example/',
      code_challenge: [CHALLENGE, CHALLENGE],
      state: 'a\nb',
      request: 'eyJ',
      response_type: 'token',
      response_mode: 'fragment',
      code_challenge_method: 'plain',
      scope: 'admin',
      resource: BILLING,
    };
    const mended: readonly [reason: string, Sent][] = [
      ['client_unknown', { client_id: 'shop.web' }],
      ['redirect_uri_mismatch', { redirect_uri: CALLBACK }],
      ['duplicate_parameter', { code_challenge: CHALLENGE }],
      ['state_unreadable', { state: undefined }],
      ['request_not_supported', { request: undefined }],
      ['grant_type_not_registered', {}],
      ['response_type_unsupported', { response_type: 'code' }],
      ['response_mode_unsupported', { response_mode: undefined }],
      ['code_challenge_method_unsupported', { code_challenge_method: 'S256' }],
      ['resource_not_registered', { resource: undefined }],
      ['scope_not_registered', { scope: undefined }],
      ['state_missing', { state: 'a' }],
    ];
    const reasons: string[] = [];
    let changes = wrong;
    let who: Client = { ...client, grantTypes: [] };
    for (const [, mend] of mended) {
      const answer = check(changes, who);
      reasons.push(answer.kind === 'accepted' ? 'accepted' : answer.reason);
      if (reasons.at(-1) === 'grant_type_not_registered') who = client;
      changes = { ...changes, ...mend };
    }
    expect(reasons).toEqual(mended.map(([reason]) => reason));
    expect(check(changes, who).kind).toBe('accepted');
  });

  it('goes to the loopback port that was sent and keeps the registered query', () => {
    const client = aClient({ authMethod: 'none', redirectUris: ['http://127.0.0.1:3000/cb?x=%2f'] });
    const answer = check({ redirect_uri: 'http://127.0.0.1:49152/cb?x=%2f', response_type: 'token' }, client);
    expect(answer).toHaveProperty('location', expect.stringMatching(/^http:\/\/127\.0\.0\.1:49152\/cb\?x=%2f&error=/));
  });

  it('repeats nothing of the request but the state, in the characters that RFC 6749 allows', () => {
    const canary = fc.string({ minLength: 8 }).map((text) => `canary${text}`);
    fc.assert(
      fc.property(canary, fc.constantFrom('scope', 'response_type', 'resource', 'code_challenge'), (text, name) => {
        const answer = check({ [name]: text });
        if (answer.kind !== 'redirect') throw new Error('not redirected');
        expect(answer.location).not.toContain('canary');
        const description = new URL(answer.location).searchParams.get('error_description');
        expect(description).toMatch(/^[\x20\x21\x23-\x5B\x5D-\x7E]+$/);
      }),
    );
  });
});

describe('a state', () => {
  const printable = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 200 })
    .filter((text) => !/\p{Cc}/u.test(text));

  it('comes back exactly as it was sent, with a code, a denial and an error', async () => {
    const { endpoint } = anEndpoint();
    const registry = registryOf(aClient());
    await fc.assert(
      fc.asyncProperty(printable, async (state) => {
        const good = accepted(endpoint.check(aRequest({ state }), registry));
        const bad = endpoint.check(aRequest({ state, response_type: 'token' }), registry);
        const locations = [await endpoint.issue(good, person), endpoint.deny(good), 'location' in bad && bad.location];
        for (const location of locations) {
          expect(new URL(String(location)).searchParams.getAll('state')).toEqual([state]);
        }
      }),
    );
  });

  it('may be 4 KiB long', () => {
    const state = 'x'.repeat(4096);
    expect(accepted(check({ state })).request.state).toBe(state);
  });
});

describe('a code', () => {
  it('goes to the registered address with state and iss, each once', async () => {
    const { endpoint } = anEndpoint();
    const client = aClient({ redirectUris: ['https://shop.example/callback?x=%2f'] });
    const request = aRequest({ redirect_uri: 'https://shop.example/callback?x=%2f' });
    const location = String(await endpoint.issue(accepted(endpoint.check(request, registryOf(client))), person));
    expect(location).toMatch(
      /^https:\/\/shop\.example\/callback\?x=%2f&code=ac1\.[^&]+&state=st%26te%3D%201&iss=[^&]+$/,
    );
    expect(new URL(location).searchParams.get('iss')).toBe(ISSUER);
  });

  it('starts a grant bound to everything that was checked', async () => {
    const { endpoint, stores, handles } = anEndpoint();
    const client = aClient();
    const location = String(await endpoint.issue(accepted(endpoint.check(aRequest(), registryOf(client))), person));
    const handle = handles.parseCode(new URL(location).searchParams.get('code') ?? '');
    expect(await stores.grants.read(handle?.grantId ?? '')).toMatchObject({
      revoked: false,
      generation: undefined,
      grant: {
        ...signIn,
        grantId: handle?.grantId,
        clientUid: client.uid,
        clientId: 'shop.web',
        scope: ['shop/read'],
        audiences: [API],
        redirectUri: CALLBACK,
        codeChallenge: CHALLENGE,
        createdAt: START,
      },
    });
  });

  it.each([
    [59_999, 'redeemed'],
    [60_000, 'gone'],
  ])('answers after %i ms: %s', async (elapsed, outcome) => {
    const { endpoint, stores, handles, time } = anEndpoint();
    const location = String(await endpoint.issue(accepted(endpoint.check(aRequest(), registryOf(aClient()))), person));
    const handle = handles.parseCode(new URL(location).searchParams.get('code') ?? '');
    if (handle === undefined) throw new Error('not a code');
    time.now += elapsed;
    const answer = await stores.grants.redeem({
      grantId: handle.grantId,
      secretHash: handle.secretHash,
      clientUid: aClient().uid,
      redirectUri: CALLBACK,
      confirmation: undefined,
      bindsRefreshTokens: false,
      verifierChallenge: CHALLENGE,
      attemptId: 'attempt',
      access: {
        scope: undefined,
        resource: undefined,
        allowedScopes: aClient().scopes,
        allowedAudiences: [API],
        defaultAudience: undefined,
        at: undefined,
      },
      accessToken: undefined,
      address: '192.0.2.1',
      retention: 7_776_000_000,
      revokedBefore: 0,
    });
    expect(answer.outcome).toBe(outcome);
  });

  it('is put on the audit record without the code', async () => {
    const { endpoint, events, handles } = anEndpoint();
    const location = String(await endpoint.issue(accepted(endpoint.check(aRequest(), registryOf(aClient()))), person));
    const code = new URL(location).searchParams.get('code') ?? '';
    expect(events).toEqual([
      {
        type: 'authorization_code.issued',
        clientId: 'shop.web',
        subject: person.subject,
        grantId: handles.parseCode(code)?.grantId,
        scope: 'shop/read',
        audience: API,
      },
    ]);
    expect(JSON.stringify(events)).not.toContain(code);
  });

  it('is another one each time', async () => {
    const { endpoint } = anEndpoint();
    const check = accepted(endpoint.check(aRequest(), registryOf(aClient())));
    const locations = await Promise.all(Array.from({ length: 100 }, () => endpoint.issue(check, person)));
    expect(new Set(locations).size).toBe(100);
  });

  it('beyond what one person may have at a client → one audit line for each grant or code that ended', async () => {
    const { endpoint, events, stores } = anEndpoint();
    const check = accepted(endpoint.check(aRequest(), registryOf(aClient())));
    for (let count = 0; count < MOST_RECORDS; count++) await endpoint.issue(check, person);
    const codes = events.filter(({ type }) => type === 'authorization_code.issued').map(({ grantId }) => grantId);
    expect(events.map(({ type }) => type)).not.toContain('grant.evicted');
    await endpoint.issue(check, person);
    const evicted = events.filter(({ type }) => type === 'grant.evicted');
    const { subject } = person;
    expect(evicted).toEqual(
      codes
        .slice(0, 1 - KEPT_CODES)
        .map((grantId) => ({ type: 'grant.evicted', clientId: 'shop.web', subject, grantId })),
    );
    expect(await stores.grants.read(codes[0] ?? '')).toBeUndefined();
  });

  it('beyond the logins that a session records → one audit line for the grant that ended, of whatever client', async () => {
    const { endpoint, events, stores } = anEndpoint();
    const { sessionId, sid, authTime } = await signedIn(stores.sessions, { subject: person.subject });
    const visit = (clientId: string) => {
      const client = aClient({ uid: `uid-of-${clientId}`, clientId, scopes: ['openid'] });
      const check = endpoint.check(aRequest({ client_id: clientId, scope: 'openid' }), registryOf(client));
      return endpoint.issue(accepted(check), { subject: person.subject, sessionId, sid, authTime });
    };
    for (let count = 0; count < RECORDED_LOGINS; count++) await visit('shop.greedy');
    const [first] = events.filter(({ type }) => type === 'authorization_code.issued');
    expect(events.map(({ type }) => type)).not.toContain('grant.evicted');
    await visit('shop.web');
    const { subject } = person;
    const evicted = { type: 'grant.evicted', reason: 'login_forgotten', subject, grantId: first?.grantId };
    expect(events.filter(({ type }) => type === 'grant.evicted')).toEqual([evicted]);
  });

  it('is not issued when the grant cannot be stored', async () => {
    const { clock } = anEndpoint();
    const { endpoint, events } = anEndpoint({ grants: memoryStores({ clock, limits: { grants: 0 } }).grants });
    const check = accepted(endpoint.check(aRequest(), registryOf(aClient())));
    await expect(endpoint.issue(check, person)).rejects.toThrow(StoreUnavailableError);
    expect(events).toEqual([]);
  });
});

describe('a code challenge that comes again (RFC 9700 §2.1.1)', () => {
  const types = (events: readonly AuditEvent[]) => events.map((event) => event.type);

  it('is recorded, and the login goes on', async () => {
    const { endpoint, events } = anEndpoint();
    const check = accepted(endpoint.check(aRequest(), registryOf(aClient())));
    await endpoint.issue(check, person);
    expect(await endpoint.issue(check, person)).toContain('code=ac1.');
    expect(types(events)).toEqual([
      'authorization_code.issued',
      'authorization_code.issued',
      'code_challenge.repeated',
    ]);
    expect(events.at(-1)).toMatchObject({ clientId: 'shop.web' });
  });

  it('is not recorded for another challenge, another client or after an hour', async () => {
    const { endpoint, events, time } = anEndpoint();
    const other = aClient({ uid: 'other', clientId: 'other' });
    const registry = registryOf(aClient(), other);
    const issue = (changes: Sent) => endpoint.issue(accepted(endpoint.check(aRequest(changes), registry)), person);
    await issue({});
    await issue({ code_challenge: CHALLENGE.replace('E', 'F') });
    await issue({ client_id: 'other' });
    time.now += 3_600_000;
    await issue({});
    expect(types(events)).not.toContain('code_challenge.repeated');
  });

  it('does not stop the login when the store of marks is full', async () => {
    const { clock } = anEndpoint();
    const { endpoint } = anEndpoint({ replays: memoryStores({ clock, limits: { replays: 0 } }).replays });
    const check = accepted(endpoint.check(aRequest(), registryOf(aClient())));
    expect(await endpoint.issue(check, person)).toContain('code=ac1.');
  });
});

describe('a denial', () => {
  it('is access_denied with state and iss', () => {
    const { endpoint } = anEndpoint();
    const location = endpoint.deny(accepted(endpoint.check(aRequest(), registryOf(aClient()))));
    const { error_description: _, ...answer } = Object.fromEntries(new URL(location).searchParams);
    expect(location.startsWith(`${CALLBACK}?error=access_denied&`)).toBe(true);
    expect(answer).toEqual({ error: 'access_denied', state: 'st&te= 1', iss: ISSUER });
  });
});

describe('a request that is validated again after the person has decided', () => {
  function recheck(client: Client | undefined, changes: Sent = {}): AuthorizationCheck {
    const { endpoint } = anEndpoint();
    const { request } = accepted(endpoint.check(aRequest(changes), registryOf(aClient())));
    return endpoint.recheck(request, client === undefined ? registryOf() : registryOf(client));
  }

  it('is accepted while nothing has changed, with the client as it is now', () => {
    const renamed = aClient({ displayName: 'Shop II' });
    const answer = accepted(recheck(renamed));
    expect(answer.client).toBe(renamed);
    expect(answer.request).toEqual(accepted(check({})).request);
  });

  it.each([
    ['the client is gone', undefined, 'client_gone'],
    ['another client has taken the id', aClient({ uid: 'another' }), 'client_gone'],
    ['the client has another id', aClient({ clientId: 'another' }), 'client_gone'],
    ['the address is gone', aClient({ redirectUris: ['https://shop.example/new'] }), 'redirect_uri_gone'],
  ])('is refused with a page when %s', (_, client, reason) => {
    expect(recheck(client)).toMatchObject({ kind: 'refused', reason, clientId: 'shop.web' });
  });

  it.each([
    ['the grant', { grantTypes: ['client_credentials'] }, 'unauthorized_client', 'grant_type_not_registered'],
    ['the scope', { scopes: ['shop/write'] }, 'invalid_scope', 'scope_not_registered'],
    ['the audience', { audiences: [BILLING] }, 'invalid_target', 'resource_not_registered'],
  ])('is redirected with an error when the client has lost %s', (_, overrides, error, reason) => {
    const answer = recheck(aClient(overrides));
    expect(answer).toMatchObject({ kind: 'redirect', error, reason });
    expect(answerOf(answer)).toEqual({ error, state: 'st&te= 1', iss: ISSUER });
  });

  it('is redirected with an error when state has become a duty', () => {
    const answer = recheck(aClient({ requireState: true }), { state: undefined });
    expect(answer).toMatchObject({ kind: 'redirect', error: 'invalid_request', reason: 'state_missing' });
  });
});
