// private_key_jwt over HTTP (RFC 7523; docs/scope.md: 7521-1, 7523-1, 7523-2, C3, C6, C9–C13, C15, 8725-1).

import { createHmac, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { memoryStores } from '../../../src/memory/stores.ts';
import type { SigningAlgorithm } from '../../../src/oauth/values/signature.ts';
import { type Grantry, readJson, startGrantry, type TestClient, TestClock } from '../../grantry.ts';
import { asserted, assertedBy, assertionOf, claimsOf, JWT_BEARER } from '../../oauth/client-auth/client-assertions.ts';
import { ALGORITHMS, aKey, compact, readKey, sign, type TestKey } from '../../oauth/values/signed-tokens.ts';
import { json, type KeyHost, startKeyHost } from '../../outbound/key-host.ts';

const KEY = aKey('ES256');
const OTHER = aKey('ES256');
const RSA = aKey('PS256');
const WORKER = 'team.worker';
const LEGACY = 'team.legacy';
const GRANT = { grant_type: 'client_credentials' };

function jwtClient(clientId: string, keys: readonly TestKey[] = [KEY], settings: Partial<TestClient> = {}): TestClient {
  const grantTypes = ['client_credentials'];
  return { clientId, authMethod: 'private_key_jwt', grantTypes, assertion: assertedBy(keys), ...settings };
}

const CLIENTS: readonly TestClient[] = [
  jwtClient(WORKER),
  jwtClient(LEGACY, [KEY], { assertion: assertedBy([KEY], { acceptTokenEndpointAudience: true }) }),
  jwtClient('team.rsa', [RSA], { assertion: assertedBy([{ ...RSA, key: readKey({ ...RSA.jwk, alg: undefined }) }]) }),
  jwtClient('team.rotating', [OTHER, KEY]),
  { clientId: 'team.basic', secret: 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p' },
  { clientId: 'team.public' },
];

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({ clients: CLIENTS });
});
/** Each test checks the audit lines of its own requests. */
let linesBefore = 0;
beforeEach(() => {
  linesBefore = grantry.logs().length;
});

function partyOf(clientId: string, { issuer, clock } = grantry) {
  return { clientId, issuer, now: clock.now() };
}

function workerAssertion(
  changes: object = {},
  header: object = {},
  key: Pick<TestKey, 'algorithm' | 'privateKey'> = KEY,
) {
  return assertionOf(key, partyOf(WORKER), changes, header);
}

/** The members of the last log line of a request that are about its client. */
function lastLine(at = grantry) {
  const { clientId, reason } = at.logs().findLast(({ route }) => route !== undefined) ?? {};
  return { clientId, reason };
}

async function ask(form: Record<string, string>, { path = '/token', at = grantry } = {}) {
  const response = await at.post(path, { ...GRANT, token: 'none', ...form });
  const text = await response.text();
  const body = (text === '' ? {} : JSON.parse(text)) as { readonly error?: string };
  const { reason } = lastLine(at);
  const challenge = response.headers.get('www-authenticate');
  return { status: response.status, error: body.error, reason, text, challenge };
}

const present = (assertion: string, options?: Parameters<typeof ask>[1]) => ask(asserted(assertion), options);

/** The answer to every failed authentication. */
async function expectRefused(assertion: string, reason: string): Promise<void> {
  const wrongSecret = await ask({ client_id: 'team.nobody', client_secret: 'wrong' });
  expect(await present(assertion)).toEqual({ ...wrongSecret, status: 401, error: 'invalid_client', reason });
}

function auditedSince(event: string): number {
  return grantry
    .logs()
    .slice(linesBefore)
    .filter((line) => line.stream === 'audit' && line.event === event).length;
}

async function replaysCounted(): Promise<number> {
  const text = await (await fetch(grantry.adminUrl('/metrics'))).text();
  return Number(/^grantry_client_assertion_replayed_total (\d+)$/m.exec(text)?.[1]);
}

describe('an assertion signed by a key of the client', () => {
  it.each(['/token', '/revoke', '/introspect'])('at %s → accepted, once', async (path) => {
    const assertion = await workerAssertion();
    expect((await present(assertion, { path })).status).toBe(200);
    const again = await present(assertion, { path });
    expect([again.status, again.error]).toEqual([401, 'invalid_client']);
    expect(lastLine()).toEqual({ clientId: WORKER, reason: 'client_assertion_replayed' });
    expect(auditedSince('client_assertion.replayed')).toBe(1);
  });

  it.each(['/token', '/revoke', '/introspect'])(
    'replayed at %s → counts as a failed authentication: ten times 401, then 429',
    async (path) => {
      const at = await startGrantry({ clients: CLIENTS, rateLimits: true });
      const assertion = await assertionOf(KEY, partyOf(WORKER, at));
      expect((await present(assertion, { path, at })).status).toBe(200);
      for (let replay = 0; replay < 10; replay++) {
        expect(await present(assertion, { path, at })).toMatchObject({ status: 401, error: 'invalid_client' });
      }
      const limited = await present(assertion, { path, at });
      expect([limited.status, limited.error]).toEqual([429, 'temporarily_unavailable']);
      expect(lastLine(at)).toEqual({ clientId: WORKER, reason: 'client_authentication_limited' });
    },
  );

  it('used at one endpoint → refused at every other, and each replay is counted', async () => {
    const before = await replaysCounted();
    const assertion = await workerAssertion();
    expect((await present(assertion, { path: '/introspect' })).status).toBe(200);
    for (const path of ['/token', '/revoke']) {
      expect((await present(assertion, { path })).reason).toBe('client_assertion_replayed');
    }
    expect((await replaysCounted()) - before).toBe(2);
  });

  it('beside the same client_id → accepted; beside another one → invalid_request', async () => {
    const right = await ask({ ...asserted(await workerAssertion()), client_id: WORKER });
    expect(right.status).toBe(200);
    const assertion = await workerAssertion();
    const other = await ask({ ...asserted(assertion), client_id: LEGACY });
    expect([other.status, other.error, other.reason]).toEqual([400, 'invalid_request', 'client_id_mismatch']);
    expect((await present(assertion)).status).toBe(200);
  });

  it.each<[SigningAlgorithm, string]>([
    ...ALGORITHMS.map((name): [SigningAlgorithm, string] => [name, name]),
    ['EdDSA', 'Ed25519'],
  ])('of %s, named %s → accepted where the client may use it', async (algorithm, alg) => {
    const key = aKey(algorithm);
    grantry.setClients([...CLIENTS, jwtClient('team.any', [key])]);
    const answer = await present(await assertionOf(key, partyOf('team.any'), {}, { alg }));
    expect(answer.status).toBe(200);
  });

  it.each([
    undefined,
    'JWT',
    'jwt',
    'application/jwt',
    'client-authentication+jwt',
    'application/Client-Authentication+JWT',
  ])('with typ %s → accepted', async (typ) => {
    expect((await present(await workerAssertion({}, typ === undefined ? {} : { typ }))).status).toBe(200);
  });

  it.each<[unknown, string]>([
    ['at+jwt', 'an access token'],
    ['dpop+jwt', 'a proof'],
    ['oauth-authz-req+jwt', 'a request object'],
    ['logout+jwt', 'a logout token'],
    ['secevent+jwt', 'a security event'],
    ['application/at+jwt', 'an access token by its whole name'],
    ['application/application/jwt', 'no type'],
    ['', 'no type'],
    [7, 'no text'],
    [null, 'no text'],
  ])('with typ %j, that of %s → refused', async (typ) => {
    await expectRefused(await workerAssertion({}, { typ }), 'assertion_type_mismatch');
  });

  it('refused before its mark is claimed → can be used; refused after that → used', async () => {
    const assertion = await workerAssertion();
    const twice = await grantry.post('/token', [
      ...Object.entries({ ...GRANT, ...asserted(assertion) }),
      ['scope', 'a'],
      ['scope', 'b'],
    ]);
    expect((await readJson(twice)).error).toBe('invalid_request');
    expect((await ask({ ...asserted(assertion), scope: 'admin' })).error).toBe('invalid_scope');
    expect((await present(assertion)).reason).toBe('client_assertion_replayed');
  });

  it('with the jti of another client → counts by itself', async () => {
    const jti = randomUUID();
    expect((await present(await workerAssertion({ jti }))).status).toBe(200);
    expect((await present(await assertionOf(KEY, partyOf('team.rotating'), { jti }))).status).toBe(200);
    expect((await present(await workerAssertion({ jti }))).reason).toBe('client_assertion_replayed');
  });
});

describe('the audience (C9)', () => {
  const issuer = () => grantry.issuer;
  const wrong: readonly (readonly [string, () => unknown])[] = [
    ['nothing', () => undefined],
    ['null', () => null],
    ['an array of the issuer', () => [issuer()]],
    ['an array of the issuer and another server', () => [issuer(), 'https://other.example']],
    ['an empty array', () => []],
    ['the token endpoint', () => `${issuer()}/token`],
    ['the PAR endpoint', () => `${issuer()}/par`],
    ['the endpoint of the request', () => `${issuer()}/introspect`],
    ['another case', () => issuer().toUpperCase()],
    ['a final slash', () => `${issuer()}/`],
    ['another server', () => 'https://other.example'],
    ['an object', () => ({ iss: issuer() })],
  ];
  it.each(wrong)('given %s → refused', async (_, aud) => {
    await expectRefused(await workerAssertion({ aud: aud() }), 'assertion_audience_mismatch');
    expect(auditedSince('client_assertion.legacy_audience')).toBe(0);
  });

  const legacy: readonly (readonly [string, () => unknown])[] = [
    ['the token endpoint', () => `${issuer()}/token`],
    ['an array of the token endpoint', () => [`${issuer()}/token`]],
    ['an array of the issuer', () => [issuer()]],
  ];
  it.each(legacy)(
    'given %s and acceptTokenEndpointAudience → accepted at each endpoint, and audited',
    async (_, aud) => {
      for (const path of ['/token', '/revoke', '/introspect']) {
        const assertion = await assertionOf(KEY, partyOf(LEGACY), { aud: aud() });
        expect((await present(assertion, { path })).status).toBe(200);
      }
      expect(auditedSince('client_assertion.legacy_audience')).toBe(3);
    },
  );

  it('given the issuer and acceptTokenEndpointAudience → accepted, no audit line', async () => {
    expect((await present(await assertionOf(KEY, partyOf(LEGACY)))).status).toBe(200);
    expect(auditedSince('client_assertion.legacy_audience')).toBe(0);
  });

  it.each([
    ['two audiences', () => [issuer(), `${issuer()}/token`]],
    ['a final slash', () => `${issuer()}/token/`],
    ['the revocation endpoint', () => `${issuer()}/revoke`],
    ['a nested array', () => [[issuer()]]],
  ])('given %s and acceptTokenEndpointAudience → refused', async (_, aud) => {
    await expectRefused(await assertionOf(KEY, partyOf(LEGACY), { aud: aud() }), 'assertion_audience_mismatch');
  });
});

describe('the times of an assertion (C10)', () => {
  const at = (seconds: number) => grantry.clock.now() / 1000 + seconds;

  it.each([
    ['exp 360 s ahead, no iat', () => ({ exp: at(360), iat: undefined })],
    ['exp 60 s past', () => ({ exp: at(-60), iat: at(-90) })],
    ['exp with a fraction, no iat', () => ({ exp: at(359.75), iat: undefined })],
    ['iat 60 s ahead', () => ({ iat: at(60) })],
    ['nbf 60 s ahead', () => ({ nbf: at(60) })],
    ['no iat', () => ({ iat: undefined })],
    ['exp an hour ahead', () => ({ exp: at(3600) })],
    ['exp in milliseconds', () => ({ exp: 1000 * at(60) })],
    ['iat 360 s ago, exp an hour ahead', () => ({ iat: at(-360), exp: at(3240) })],
    ['iat 60 s ahead, exp an hour ahead', () => ({ iat: at(60), exp: at(3660) })],
  ])('%s → accepted, once', async (_, changes) => {
    const assertion = await workerAssertion(changes());
    expect((await present(assertion)).status).toBe(200);
    expect((await present(assertion)).reason).toBe('client_assertion_replayed');
  });

  it.each([
    ['exp 361 s ahead, no iat', () => ({ exp: at(361), iat: undefined }), 'assertion_lifetime_too_long'],
    ['iat 361 s ago, exp an hour ahead', () => ({ iat: at(-361), exp: at(3239) }), 'assertion_too_old'],
    ['iat an hour ago, exp an hour ahead', () => ({ iat: at(-3600), exp: at(3600) }), 'assertion_too_old'],
    ['iat an hour ago, exp near', () => ({ iat: at(-3600) }), 'assertion_too_old'],
    ['iat of zero', () => ({ iat: 0 }), 'assertion_too_old'],
    ['iat below zero', () => ({ iat: -1e300 }), 'assertion_too_old'],
    ['exp 61 s past', () => ({ exp: at(-61) }), 'assertion_expired'],
    ['exp of zero', () => ({ exp: 0 }), 'assertion_expired'],
    ['iat 61 s ahead', () => ({ iat: at(61) }), 'assertion_not_yet_valid'],
    ['iat an hour ahead, exp behind it', () => ({ iat: at(3600), exp: at(7200) }), 'assertion_not_yet_valid'],
    ['iat in milliseconds', () => ({ iat: 1000 * at(0), exp: at(3600) }), 'assertion_not_yet_valid'],
    ['nbf 61 s ahead', () => ({ nbf: at(61) }), 'assertion_not_yet_valid'],
    ['no exp', () => ({ exp: undefined }), 'assertion_expiry_missing'],
    ['exp as text', () => ({ exp: String(at(60)) }), 'assertion_claims_malformed'],
    ['exp of null', () => ({ exp: null }), 'assertion_claims_malformed'],
    ['iat as text', () => ({ iat: String(at(0)) }), 'assertion_claims_malformed'],
    ['iat of null', () => ({ iat: null }), 'assertion_claims_malformed'],
    ['iat of true', () => ({ iat: true }), 'assertion_claims_malformed'],
    ['nbf in an array', () => ({ nbf: [at(0)] }), 'assertion_claims_malformed'],
    ['exp in milliseconds, no iat', () => ({ exp: 1000 * at(60), iat: undefined }), 'assertion_lifetime_too_long'],
  ])('%s → refused', async (_, changes, reason) => {
    await expectRefused(await workerAssertion(changes()), reason);
  });

  it('exp beyond every number → refused', async () => {
    const text = JSON.stringify(claimsOf(partyOf(WORKER))).replace(/"exp":\d+/, '"exp":1e999');
    await expectRefused(await sign(KEY, text), 'assertion_claims_malformed');
  });

  it.each([
    ['iat, and exp an hour ahead', { iat: 0, exp: 3600 }, 360, 'assertion_too_old'],
    ['iat, and exp a minute ahead', { iat: 0, exp: 60 }, 120, 'assertion_expired'],
    ['iat a minute ahead', { iat: 60, exp: 3600 }, 420, 'assertion_too_old'],
    ['exp alone', { exp: 300 }, 360, 'assertion_expired'],
  ] as const)(
    'with %s: used, then presented again until the last moment that it would be accepted → refused',
    async (_, { exp, ...times }, last, reason) => {
      const own = await startGrantry({ clients: CLIENTS, clock: new TestClock() });
      const now = own.clock.now() / 1000;
      const iat = 'iat' in times ? now + times.iat : undefined;
      const assertion = await assertionOf(KEY, partyOf(WORKER, own), { iat, exp: now + exp });
      expect((await present(assertion, { at: own })).status).toBe(200);
      own.clock.advance(1000 * last);
      expect((await present(assertion, { at: own })).reason).toBe('client_assertion_replayed');
      own.clock.advance(1);
      expect((await present(assertion, { at: own })).reason).toBe(reason);
    },
  );
});

describe('the jti (C11)', () => {
  it.each([
    ['none', undefined, 'assertion_jti_missing'],
    ['an empty one', '', 'assertion_jti_invalid'],
    ['one of 257 characters', 'x'.repeat(257), 'assertion_jti_invalid'],
    ['a number', 7, 'assertion_jti_invalid'],
    ['null', null, 'assertion_jti_invalid'],
  ])('given %s → refused', async (_, jti, reason) => {
    await expectRefused(await workerAssertion({ jti }), reason);
  });

  it.each([['x'], ['x'.repeat(256)], ['../\0 \u{1f511}']])('given %j → accepted', async (jti) => {
    expect((await present(await workerAssertion({ jti }))).status).toBe(200);
  });

  it('given 100 000 marks after it → still refused', async () => {
    const assertion = await workerAssertion();
    expect((await present(assertion)).status).toBe(200);
    const expiresAt = grantry.clock.now() + 1000;
    for (let made = 0; made < 100_000; made++) {
      await grantry.stores.replays.claim('client_assertion', `another ${made}`, expiresAt, grantry.clock.now());
    }
    expect((await present(assertion)).reason).toBe('client_assertion_replayed');
  });

  it('given more replays than the namespace may have marks → another assertion is accepted', async () => {
    // Room for two marks.
    const at = await startGrantry({ clients: [jwtClient(WORKER, [KEY], { maxState: 400 })], rateLimits: true });
    const [first = '', second = ''] = await Promise.all([1, 2].map(() => assertionOf(KEY, partyOf(WORKER, at))));
    expect((await present(first, { at })).status).toBe(200);
    for (let again = 0; again < 3; again++) {
      expect((await present(first, { at })).reason).toBe('client_assertion_replayed');
    }
    expect((await present(second, { at })).status).toBe(200);
  });

  it('given a full store → 503, and no replay', async () => {
    const clock = new TestClock();
    const wrapStores = (stores: Grantry['stores']) => ({
      ...stores,
      replays: memoryStores({ clock, limits: { replays: 1 } }).replays,
    });
    const full = await startGrantry({ clients: CLIENTS, clock, wrapStores });
    const assertions = await Promise.all([1, 2].map(() => assertionOf(KEY, partyOf(WORKER, full))));
    expect((await present(assertions[0] ?? '', { at: full })).status).toBe(200);
    const refused = await present(assertions[1] ?? '', { at: full });
    expect([refused.status, refused.reason]).toEqual([503, 'store_unavailable']);
    expect(full.audits().filter(({ event }) => event === 'client_assertion.replayed')).toEqual([]);
  });

  it('given more marks than limits.maxState of the namespace → 429', async () => {
    const small = await startGrantry({ clients: [jwtClient(WORKER, [KEY], { maxState: 2 * 172 })], rateLimits: true });
    const statuses: number[] = [];
    for (let made = 0; made < 3; made++) {
      statuses.push((await present(await assertionOf(KEY, partyOf(WORKER, small)), { at: small })).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
  });
});

describe('an assertion that is none of the client (C12)', () => {
  const zero = Buffer.alloc(64);
  const claims = () => claimsOf(partyOf(WORKER));
  const hmac = (secret: string) => (input: string) => createHmac('sha256', secret).update(input).digest();
  const publicPem = () => KEY.key.keyObject?.export({ format: 'pem', type: 'spki' }).toString() ?? '';
  const own = { jwk: OTHER.jwk, jku: 'https://evil.example/jwks', x5u: 'https://evil.example/x5u', x5c: ['MAA='] };

  it.each([
    ['alg none', () => compact({ alg: 'none' }, claims(), zero), 'algorithm_not_allowed'],
    ['alg none without a signature', () => compact({ alg: 'none' }, claims(), Buffer.alloc(0)), 'assertion_malformed'],
    [
      'HS256 with the public key',
      () => compact({ alg: 'HS256' }, claims(), hmac(publicPem())),
      'algorithm_not_allowed',
    ],
    [
      'HS256 with the JWK',
      () => compact({ alg: 'HS256' }, claims(), hmac(JSON.stringify(KEY.jwk))),
      'algorithm_not_allowed',
    ],
    ['an all-zero signature', () => compact({ alg: 'ES256' }, claims(), zero), 'signature_invalid'],
    ['an unknown alg', () => compact({ alg: 'ES256K' }, claims(), zero), 'algorithm_not_allowed'],
    ['another alg of grantry', () => assertionOf(aKey('EdDSA'), partyOf(WORKER)), 'algorithm_not_allowed'],
    ['crit', () => workerAssertion({}, { crit: ['b64'], b64: true }), 'assertion_malformed'],
    ['b64', () => compact({ alg: 'ES256', b64: false }, claims(), zero), 'assertion_malformed'],
    ['another key', () => workerAssertion({}, {}, OTHER), 'signature_invalid'],
    ['another key, embedded in the header', () => workerAssertion({}, own, OTHER), 'signature_invalid'],
    ['a kid that is a path', () => workerAssertion({}, { kid: '../../../dev/null' }), 'key_unknown'],
    ['a kid that is SQL', () => workerAssertion({}, { kid: "x' UNION SELECT 'k' --" }), 'key_unknown'],
    ['a kid with NUL', () => workerAssertion({}, { kid: 'a\0b' }), 'key_unknown'],
    ['a kid of the prototype', () => workerAssertion({}, { kid: '__proto__' }), 'key_unknown'],
    ['a kid that is no text', () => compact({ alg: 'ES256', kid: 7 }, claims(), zero), 'assertion_malformed'],
  ])('%s → refused', async (_, assertion, reason) => {
    await expectRefused(await assertion(), reason);
  });

  it('PS256 signed as RS256, or said to be RS256 → refused', async () => {
    const asRs256 = { algorithm: 'RS256' as const, privateKey: RSA.privateKey };
    expect((await present(await assertionOf(RSA, partyOf('team.rsa')))).status).toBe(200);
    const said = await assertionOf(asRs256, partyOf('team.rsa'));
    await expectRefused(said, 'algorithm_not_allowed');
    const [, payload = '', signature = ''] = said.split('.');
    const swapped = `${Buffer.from('{"alg":"PS256"}').toString('base64url')}.${payload}.${signature}`;
    await expectRefused(swapped, 'signature_invalid');
  });

  it('an own embedded key beside the right signature → ignored', async () => {
    expect((await present(await workerAssertion({}, own))).status).toBe(200);
  });
});

describe('keys of one client (C15)', () => {
  const sameKid = (key: TestKey): TestKey => ({ ...key, key: readKey({ ...key.jwk, kid: 'same' }) });
  const eddsa = aKey('EdDSA');

  it.each([OTHER, KEY])('during a rotation, without kid → both are accepted', async (key) => {
    expect((await present(await assertionOf(key, partyOf('team.rotating')))).status).toBe(200);
  });

  it('two of one kid and kty, one of another kty → the assertion of each is accepted', async () => {
    const keys = [OTHER, eddsa, KEY].map(sameKid);
    grantry.setClients([...CLIENTS, jwtClient('team.same', keys)]);
    for (const key of keys) {
      expect((await present(await assertionOf(key, partyOf('team.same'), {}, { kid: 'same' }))).status).toBe(200);
    }
  });
});

describe('an assertion that cannot be read', () => {
  const malformed: readonly (readonly [string, () => string | Promise<string>])[] = [
    ['garbage', () => 'garbage'],
    ['dots', () => '..'],
    ['a JWE', () => 'a.b.c.d.e'],
    ['more than 8 KiB', () => workerAssertion({ more: 'x'.repeat(8192) })],
    ['claims that are no object', () => sign(KEY, '[]')],
    ['a payload that is no JSON', () => sign(KEY, '\x78\x9c deflated')],
    ['no iss', () => workerAssertion({ iss: undefined })],
    ['no sub', () => workerAssertion({ sub: undefined })],
    ['neither', () => workerAssertion({ iss: undefined, sub: undefined })],
    ['empty names', () => workerAssertion({ iss: '', sub: '' })],
    ['names that are no text', () => workerAssertion({ iss: 7, sub: 7 })],
  ];
  it.each(malformed)('given %s → refused', async (_, assertion) => {
    await expectRefused(await assertion(), 'assertion_malformed');
  });

  it('of two names → read by no method for keys', async () => {
    const answer = await present(await workerAssertion({ iss: LEGACY }));
    expect([answer.status, answer.error]).toEqual([401, 'invalid_client']);
    expect(answer.reason).not.toBe('signature_invalid');
  });

  it.each([
    [
      'another type',
      { client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer' },
      'assertion_type_unsupported',
    ],
    ['the type in another case', { client_assertion_type: JWT_BEARER.toUpperCase() }, 'assertion_type_unsupported'],
    [
      'the grant of that name',
      { client_assertion_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer' },
      'assertion_type_unsupported',
    ],
    ['an empty type', { client_assertion_type: '' }, 'assertion_type_missing'],
  ])('with %s → refused', async (_, type, reason) => {
    const answer = await ask({ client_assertion: await workerAssertion(), ...type });
    expect([answer.status, answer.error, answer.reason]).toEqual([401, 'invalid_client', reason]);
  });

  it('without a type, or a type alone → refused', async () => {
    expect((await ask({ client_assertion: await workerAssertion() })).reason).toBe('assertion_type_missing');
    const alone = await ask({ client_assertion_type: JWT_BEARER, client_id: WORKER });
    expect([alone.status, alone.reason]).toEqual([401, 'assertion_missing']);
  });

  it('two types, or two assertions → invalid_request', async () => {
    const form = Object.entries({ ...GRANT, ...asserted(await workerAssertion()) });
    for (const name of ['client_assertion_type', 'client_assertion']) {
      const response = await grantry.post('/token', [...form, [name, JWT_BEARER]]);
      expect([response.status, (await readJson(response)).error]).toEqual([400, 'invalid_request']);
    }
  });
});

describe('tokens of other kinds (C13)', () => {
  it('an access token of grantry for the client itself → refused', async () => {
    const response = await grantry.post('/token', { ...GRANT, ...asserted(await workerAssertion()) });
    const { access_token } = await readJson(response);
    const answer = await present(access_token);
    expect([answer.status, answer.error]).toEqual([401, 'invalid_client']);
  });

  it.each([
    [
      'a proof',
      { typ: 'dpop+jwt', jwk: KEY.jwk },
      { htm: 'POST', htu: 'x', iss: undefined, sub: undefined },
      'assertion_malformed',
    ],
    ['a proof with names', { typ: 'dpop+jwt', jwk: KEY.jwk }, { htm: 'POST', htu: 'x' }, 'assertion_type_mismatch'],
    [
      'a request object',
      { typ: 'oauth-authz-req+jwt' },
      { client_id: WORKER, response_type: 'code' },
      'assertion_type_mismatch',
    ],
    [
      'a request object without typ',
      {},
      { client_id: WORKER, response_type: 'code', sub: undefined },
      'assertion_malformed',
    ],
  ])('%s that the client has signed → refused', async (_, header, claims, reason) => {
    await expectRefused(await workerAssertion(claims, header), reason);
  });

  it('an ID token that the client could hold → refused', async () => {
    const answer = await present(await workerAssertion({ iss: grantry.issuer, sub: 'usr_person', aud: WORKER }));
    expect([answer.status, answer.error]).toEqual([401, 'invalid_client']);
  });
});

describe('a client that is another one', () => {
  it.each([
    ['unknown', 'team.nobody', 'client_unknown'],
    ['of a secret', 'team.basic', 'auth_method_mismatch'],
    ['public', 'team.public', 'auth_method_mismatch'],
  ])('%s → the same answer (C6)', async (_, clientId, reason) => {
    await expectRefused(await assertionOf(KEY, partyOf(clientId)), reason);
  });
});

describe('keys at an address', () => {
  let host: KeyHost;
  let folder: string;
  let remote: Grantry;
  const uri = () => `https://localhost:${host.port}/jwks.json`;
  const published = (keys: readonly object[]) => {
    host.answer = json({ keys });
  };
  const remoteAssertion = (key: TestKey = KEY, header: object = {}) => {
    return assertionOf(key, partyOf('team.remote', remote), {}, header);
  };
  beforeAll(async () => {
    host = await startKeyHost();
    folder = mkdtempSync(join(tmpdir(), 'grantry-authorities-'));
    writeFileSync(join(folder, 'ca.crt'), host.authority);
  });
  afterAll(() => {
    host.stop();
    rmSync(folder, { recursive: true });
  });
  beforeEach(async () => {
    const assertion = assertedBy([], { keys: { jwksUri: uri() }, algorithms: ['ES256', 'PS256'] });
    remote = await startGrantry({
      clients: [jwtClient('team.remote', [], { assertion })],
      fetch: { networks: ['127.0.0.0/8', '::1'], caFile: join(folder, 'ca.crt') },
    });
  });

  it('with its key → accepted, once; with another one → refused', async () => {
    published([{ ...KEY.jwk, kid: 'one' }]);
    const assertion = await remoteAssertion(KEY, { kid: 'one' });
    expect((await present(assertion, { at: remote })).status).toBe(200);
    expect((await present(assertion, { at: remote })).reason).toBe('client_assertion_replayed');
    expect((await present(await remoteAssertion(OTHER, { kid: 'one' }), { at: remote })).reason).toBe(
      'signature_invalid',
    );
  });

  it('rotated and used at once → the new key is fetched', async () => {
    published([{ ...KEY.jwk, kid: 'one' }]);
    expect((await present(await remoteAssertion(KEY, { kid: 'one' }), { at: remote })).status).toBe(200);
    published([{ ...OTHER.jwk, kid: 'two' }]);
    remote.clock.advance(1);
    expect((await present(await remoteAssertion(OTHER, { kid: 'two' }), { at: remote })).status).toBe(200);
  });

  it('that answers nothing, and nothing is cached → 503 with Retry-After; the assertion is not used', async () => {
    host.answer = (_request, response) => void response.destroy();
    const assertion = await remoteAssertion();
    const response = await remote.post('/token', { ...GRANT, ...asserted(assertion) });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(remote.logs().findLast(({ route }) => route !== undefined)?.reason).toBe('client_jwks_unavailable');
    published([KEY.jwk]);
    remote.clock.advance(5000);
    expect((await present(assertion, { at: remote })).status).toBe(200);
  });

  it('with an RSA key of 1024 bits alone → refused', async () => {
    published([{ kty: 'RSA', n: Buffer.alloc(128, 0xff).toString('base64url'), e: 'AQAB' }]);
    expect((await present(await remoteAssertion(RSA), { at: remote })).reason).toBe('key_unknown');
  });
});
