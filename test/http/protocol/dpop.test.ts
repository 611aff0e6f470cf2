// DPoP at the token endpoint (docs/scope.md: 9449-1 to 9449-4, 9449-6, D1 to D8). The checks of a proof, one by one:
// `test/oauth/dpop/proof.test.ts`.

import { decodeJwt } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { DpopHolder, type ProofChanges } from '../../dpop-holder.ts';
import { basic, DEFAULT_AUDIENCE, type Grantry, type GrantryOptions, PKCE, startGrantry } from '../../grantry.ts';
import { asserted, assertedBy, assertionOf } from '../../oauth/client-auth/client-assertions.ts';
import { aKey } from '../../oauth/values/signed-tokens.ts';
import { answersIn, exchangeBytes } from '../server/raw-socket.ts';
import { API, WEB } from './token-calls.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const TOKENS = {
  accessTokenFormat: 'jwt',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 1_209_600,
  refreshTokenLifetimeSeconds: 7_776_000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;

interface TestCaller {
  readonly clientId: string;
  readonly secret?: string;
}

/** Confidential, and must bind. */
const JOB = { clientId: 'shop.job', secret: 'the-secret-of-the-nightly-job' };
/** Public, and must bind. */
const APP = { clientId: 'shop.app' };
/** Public, must bind, keeps its refresh token, opaque tokens. */
const KEEPER = { clientId: 'shop.keeper' };
/** Public, may bind. */
const SPA = { clientId: 'shop.spa' };
const TLS = { clientId: 'shop.tls', secret: 'the-secret-of-the-tls-client' };

/** Confidential, by assertions, and must bind. */
const WORKER = { clientId: 'shop.worker' };
const WORKER_KEY = aKey('ES256');

const CLIENTS: GrantryOptions['clients'] = [
  WEB,
  { ...API, resourceServerAudiences: [DEFAULT_AUDIENCE] },
  { ...JOB, senderConstraint: 'DPoP' },
  { ...APP, senderConstraint: 'DPoP', allowedCorsOrigins: ['https://app.example'] },
  {
    ...KEEPER,
    senderConstraint: 'DPoP',
    tokens: { ...TOKENS, accessTokenFormat: 'opaque', refreshTokenRotation: 'Never' },
  },
  SPA,
  {
    ...WORKER,
    senderConstraint: 'DPoP',
    authMethod: 'private_key_jwt',
    assertion: assertedBy([WORKER_KEY]),
    grantTypes: ['client_credentials'],
  },
  { ...TLS, senderConstraint: 'MutualTLS' },
  { clientId: 'shop.full', secret: JOB.secret, namespace: 'full', maxState: 300 },
];
const FULL = { clientId: 'shop.full', secret: JOB.secret };

const MACHINE = { grant_type: 'client_credentials' };

let grantry: Grantry;
beforeEach(async () => {
  grantry = await startGrantry({ clients: CLIENTS });
});
afterEach(() => grantry.stop());

async function restart(options: Partial<GrantryOptions>): Promise<void> {
  await grantry.stop();
  grantry = await startGrantry({ clients: CLIENTS, ...options });
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly nonce: string | null;
  readonly reason: unknown;
}

/** Asks as a client. @param proof the DPoP header; undefined for none */
async function ask(
  { clientId, secret }: TestCaller,
  form: Readonly<Record<string, string>>,
  proof?: string,
  path = '/token',
): Promise<Answer> {
  const headers: Record<string, string> = {};
  if (secret !== undefined) headers.authorization = basic(clientId, secret);
  if (proof !== undefined) headers.dpop = proof;
  const named = secret === undefined ? { ...form, client_id: clientId } : form;
  const response = await grantry.post(path, named, { headers });
  const text = await response.text();
  return {
    status: response.status,
    body: text === '' ? {} : JSON.parse(text),
    nonce: response.headers.get('dpop-nonce'),
    reason: grantry.logs().findLast(({ route }) => route !== undefined)?.reason,
  };
}

/** A proof for the token endpoint, as of the clock. */
function proofOf(holder: DpopHolder, changes?: ProofChanges): string {
  return holder.proof(`${grantry.issuer}/token`, grantry.clock.now(), changes);
}

async function redemption(client: TestCaller, grant: Parameters<Grantry['issueCode']>[1] = {}) {
  return {
    grant_type: 'authorization_code',
    code: await grantry.issueCode(client.clientId, grant),
    redirect_uri: 'https://app.example/cb',
    code_verifier: PKCE.verifier,
  };
}

const renewal = ({ body }: Answer) => ({ grant_type: 'refresh_token', refresh_token: String(body.refresh_token) });

function refused(error: string, reason: string) {
  return { status: 400, body: { error }, reason };
}

describe('a token that is asked for with a proof', () => {
  it.each([
    ['client_credentials', JOB],
    ['client_credentials of a client that need not bind', WEB],
  ])('by %s → is of type DPoP and names the key, in the token and at introspection', async (_name, client) => {
    const holder = new DpopHolder();
    const { status, body, nonce } = await ask(client, MACHINE, proofOf(holder));
    expect(status).toBe(200);
    expect(body).toMatchObject({ token_type: 'DPoP' });
    expect(nonce).toBeNull();
    const cnf = { jkt: holder.thumbprint };
    expect(decodeJwt(String(body.access_token)).cnf).toEqual(cnf);
    const token = String(body.access_token);
    const told = await ask(client, { token }, undefined, '/introspect');
    expect(told.body).toMatchObject({ active: true, token_type: 'DPoP', cnf });
  });

  it('by a code and its refreshes → is bound, also an opaque one', async () => {
    const holder = new DpopHolder('EdDSA');
    for (const client of [WEB, APP, KEEPER, SPA]) {
      const redeemed = await ask(client, await redemption(client), proofOf(holder));
      const refreshed = await ask(client, renewal(redeemed), proofOf(holder));
      for (const { body } of [redeemed, refreshed]) {
        expect(body).toMatchObject({ token_type: 'DPoP' });
        const told = await ask(API, { token: String(body.access_token) }, undefined, '/introspect');
        expect(told.body).toMatchObject({ active: true, token_type: 'DPoP', cnf: { jkt: holder.thumbprint } });
      }
    }
  });

  it('and none is required → without a proof it is a bearer token', async () => {
    for (const answer of [await ask(WEB, MACHINE), await ask(SPA, await redemption(SPA))]) {
      expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer' } });
      expect(decodeJwt(String(answer.body.access_token)).cnf).toBeUndefined();
    }
  });

  it('by keys of every algorithm of the metadata', async () => {
    const metadata = await (await fetch(grantry.url('/.well-known/oauth-authorization-server'))).json();
    const algorithms = (metadata as Record<string, string[]>).dpop_signing_alg_values_supported;
    expect(algorithms).toEqual(['ES256', 'PS256', 'EdDSA', 'Ed25519']);
    for (const algorithm of ['ES256', 'PS256', 'EdDSA', 'Ed25519'] as const) {
      expect((await ask(JOB, MACHINE, proofOf(new DpopHolder(algorithm)))).status).toBe(200);
    }
  });
});

describe('a proof that is missing or wrong', () => {
  it('missing, where it is required → invalid_dpop_proof, and nothing is used up', async () => {
    expect(await ask(JOB, MACHINE)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_missing'));
    const form = await redemption(APP);
    expect(await ask(APP, form)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_missing'));
    const redeemed = await ask(APP, form, proofOf(new DpopHolder()));
    expect(redeemed.status).toBe(200);
    expect(await ask(APP, renewal(redeemed))).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_missing'));
  });

  it('empty or garbage → invalid_dpop_proof, also where none is required', async () => {
    for (const client of [JOB, WEB]) {
      for (const text of ['', 'garbage', 'a.b.c', 'DPoP']) {
        expect(await ask(client, MACHINE, text)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_malformed'));
      }
    }
  });

  it('whatever is wrong → the same answer, the reason only in the log, and the code stays good', async () => {
    const holder = new DpopHolder();
    const old = proofOf(holder).split('.');
    const wrong: readonly (readonly [string, string])[] = [
      ['dpop_type_wrong', proofOf(holder, { header: { typ: 'at+jwt' } })],
      ['dpop_algorithm_not_allowed', proofOf(holder, { header: { alg: 'none' } })],
      ['dpop_algorithm_not_allowed', proofOf(holder, { header: { alg: 'HS256' } })],
      ['dpop_algorithm_not_allowed', proofOf(new DpopHolder('RS256'))],
      ['dpop_key_not_allowed', proofOf(holder, { header: { jwk: holder.privateKey.export({ format: 'jwk' }) } })],
      ['dpop_key_not_allowed', proofOf(holder, { header: { jwk: { kty: 'oct', k: 'AAAA' } } })],
      ['dpop_key_not_allowed', proofOf(new DpopHolder('PS256', { modulusLength: 1024 }))],
      ['dpop_signature_invalid', proofOf(holder, { header: { jwk: new DpopHolder().jwk } })],
      ['dpop_signature_invalid', [old[0], old[1], proofOf(holder).split('.')[2]].join('.')],
      ['dpop_method_mismatch', proofOf(holder, { claims: { htm: 'GET' } })],
      ['dpop_target_mismatch', proofOf(holder, { claims: { htu: `${grantry.issuer}/introspect` } })],
      ['dpop_id_malformed', proofOf(holder, { claims: { jti: undefined } })],
      ['dpop_id_malformed', proofOf(holder, { claims: { jti: 'x'.repeat(257) } })],
      ['dpop_time_malformed', proofOf(holder, { claims: { iat: undefined } })],
      ['dpop_proof_too_large', proofOf(holder, { claims: { filler: 'x'.repeat(4000) } })],
    ];
    const form = await redemption(APP);
    for (const [reason, proof] of wrong) {
      const answer = await ask(APP, form, proof);
      expect(answer).toMatchObject(refused('invalid_dpop_proof', reason));
      expect(answer.body).toEqual({
        error: 'invalid_dpop_proof',
        error_description: 'A valid DPoP proof is required.',
      });
      expect(answer.nonce).toBeNull();
    }
    expect((await ask(APP, form, proofOf(holder))).status).toBe(200);
  });

  it('another token of this server → refused', async () => {
    const { body } = await ask(WEB, MACHINE);
    expect(await ask(JOB, MACHINE, String(body.access_token))).toMatchObject(
      refused('invalid_dpop_proof', 'dpop_type_wrong'),
    );
  });

  it('twice, as two headers or joined by a comma → invalid_dpop_proof', async () => {
    const repeated = refused('invalid_dpop_proof', 'dpop_proof_repeated');
    const [one, other] = [proofOf(new DpopHolder()), proofOf(new DpopHolder())];
    expect(await ask(JOB, MACHINE, `${one}, ${one}`)).toMatchObject(repeated);
    expect(await ask(JOB, MACHINE, `${one},${other}`)).toMatchObject(repeated);
    for (const [first, second] of [
      [one, one],
      [one, other],
    ]) {
      const [answer] = await exchange([`DPoP: ${first}`, `dpop: ${second}`]);
      expect(answer).toMatchObject({ status: 400, body: expect.stringContaining('"invalid_dpop_proof"') });
    }
    const [alone] = await exchange([`DPOP: ${one}`]);
    expect(alone).toMatchObject({ status: 200, body: expect.stringContaining('"DPoP"') });
  });

  it('beside mutual TLS → invalid_request', async () => {
    expect(await ask(TLS, MACHINE, proofOf(new DpopHolder()))).toMatchObject(
      refused('invalid_request', 'dpop_proof_unexpected'),
    );
  });

  it('at other endpoints → the header has no say', async () => {
    const { body } = await ask(JOB, MACHINE, proofOf(new DpopHolder()));
    const form = { token: String(body.access_token) };
    for (const header of [undefined, '', 'garbage', proofOf(new DpopHolder())]) {
      expect(await ask(JOB, form, header, '/introspect')).toMatchObject({ status: 200, body: { active: true } });
    }
    expect(await ask(JOB, form, 'garbage', '/revoke')).toMatchObject({ status: 200 });
    expect(await ask(JOB, form, undefined, '/introspect')).toMatchObject({ body: { active: false } });
  });
});

/** The answers to a raw POST of {@link JOB} with these header lines. */
async function exchange(lines: readonly string[], host = `127.0.0.1:${grantry.port}`) {
  const body = 'grant_type=client_credentials';
  const head = [
    'POST /token HTTP/1.1',
    `Host: ${host}`,
    `Authorization: ${basic(JOB.clientId, JOB.secret)}`,
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${body.length}`,
    'Connection: close',
    ...lines,
  ];
  return answersIn(await exchangeBytes(grantry.port, `${head.join('\r\n')}\r\n\r\n${body}`));
}

describe('the address in a proof', () => {
  it('is below the issuer as configured: Host and forwarding headers have no say', async () => {
    const holder = new DpopHolder();
    const attacker = holder.proof('http://evil.example/token', grantry.clock.now());
    const forwarded = ['X-Forwarded-Host: evil.example', 'X-Forwarded-Proto: http', 'Forwarded: host=evil.example'];
    const [answer] = await exchange([`DPoP: ${attacker}`, ...forwarded], 'evil.example');
    expect(answer).toMatchObject({ status: 400, body: expect.stringContaining('"invalid_dpop_proof"') });
    const [good] = await exchange([`DPoP: ${proofOf(holder)}`, ...forwarded], 'evil.example');
    expect(good?.status).toBe(200);
  });

  it('is that of an https issuer with a path, with and without its port', async () => {
    await restart({ issuer: 'https://id.example/tenants/one' });
    const holder = new DpopHolder();
    for (const [htu, status] of [
      ['https://id.example/tenants/one/token', 200],
      ['HTTPS://ID.Example:443/tenants/one/token?x=y#z', 200],
      ['https://id.example/tenants/two/token', 400],
      ['https://id.example/token', 400],
      ['http://id.example/tenants/one/token', 400],
      [`http://127.0.0.1:${grantry.port}/tenants/one/token`, 400],
    ] as const) {
      const answer = await ask(JOB, MACHINE, holder.proof(htu, grantry.clock.now()));
      expect([htu, answer.status]).toEqual([htu, status]);
    }
  });
});

describe('a nonce on demand', () => {
  it.each([
    { off: -61, status: 400 },
    { off: -60, status: 200 },
    { off: 60, status: 200 },
    { off: 61, status: 400 },
  ])('for a clock that is $off s off → $status', async ({ off, status }) => {
    const iat = grantry.clock.now() / SECOND + off;
    const answer = await ask(JOB, MACHINE, proofOf(new DpopHolder(), { claims: { iat } }));
    expect(answer.status).toBe(status);
    if (status === 200) expect(answer.nonce).toBeNull();
    else expect(answer).toMatchObject(refused('use_dpop_nonce', 'dpop_clock_skewed'));
  });

  it.each([-3600, -301, 301, 3600])('held by a proof of a clock that is %i s off → a token, once', async (off) => {
    const holder = new DpopHolder();
    const iat = grantry.clock.now() / SECOND + off;
    const first = await ask(JOB, MACHINE, proofOf(holder, { claims: { iat } }));
    expect(first).toMatchObject(refused('use_dpop_nonce', 'dpop_clock_skewed'));
    const proof = proofOf(holder, { claims: { iat, nonce: first.nonce } });
    expect(await ask(JOB, MACHINE, proof)).toMatchObject({ status: 200, nonce: null });
    // To the end of the lifetime of its nonce.
    const end = (Math.floor(grantry.clock.now() / MINUTE) + 4) * MINUTE;
    grantry.clock.advance(end - grantry.clock.now() - 1);
    expect(await ask(JOB, MACHINE, proof)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_replayed'));
    grantry.clock.advance(1);
    expect(await ask(JOB, MACHINE, proof)).toMatchObject(refused('use_dpop_nonce', 'dpop_nonce_unknown'));
  });

  it('that is asked for uses nothing up, neither the code nor the proof’s id', async () => {
    const holder = new DpopHolder();
    const claims = { jti: 'the-same', iat: grantry.clock.now() / SECOND - 100 };
    const form = await redemption(WEB);
    const first = await ask(WEB, form, proofOf(holder, { claims }));
    expect(first).toMatchObject(refused('use_dpop_nonce', 'dpop_clock_skewed'));
    const again = await ask(WEB, form, proofOf(holder, { claims: { ...claims, nonce: first.nonce } }));
    expect(again).toMatchObject({ status: 200, body: { token_type: 'DPoP' } });
  });

  it('of a minute ago is good, and no new one comes with the token', async () => {
    const claims = { iat: grantry.clock.now() / SECOND - 100 };
    const { nonce } = await ask(JOB, MACHINE, proofOf(new DpopHolder(), { claims }));
    grantry.clock.advance(MINUTE);
    const answer = await ask(JOB, MACHINE, proofOf(new DpopHolder(), { claims: { ...claims, nonce } }));
    expect(answer).toMatchObject({ status: 200, nonce: null });
  });

  it('is not given to a client that does not authenticate', async () => {
    const answer = await ask({ ...JOB, secret: 'wrong' }, MACHINE, proofOf(new DpopHolder(), { claims: { iat: 0 } }));
    expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_client' }, nonce: null });
  });

  it('is readable for the scripts of registered origins', async () => {
    const response = await grantry.post(
      '/token',
      { ...(await redemption(APP)), client_id: APP.clientId },
      { headers: { origin: 'https://app.example', dpop: proofOf(new DpopHolder(), { claims: { iat: 0 } }) } },
    );
    expect(response.headers.get('dpop-nonce')).toBeTruthy();
    expect(response.headers.get('access-control-allow-origin')).toBe('https://app.example');
    expect(response.headers.get('access-control-expose-headers')).toContain('DPoP-Nonce');
  });
});

describe('a nonce that is required', () => {
  beforeEach(() => restart({ dpopNonce: 'required' }));

  /** A nonce as this server makes it at the time of the clock. */
  async function freshNonce(): Promise<string> {
    const { nonce } = await ask(JOB, MACHINE, proofOf(new DpopHolder()));
    if (nonce === null) throw new Error('no nonce');
    return nonce;
  }

  it('and missing → use_dpop_nonce with one; with that one → a token, and no new nonce within the minute', async () => {
    const holder = new DpopHolder();
    const first = await ask(JOB, MACHINE, proofOf(holder));
    expect(first).toMatchObject(refused('use_dpop_nonce', 'dpop_nonce_missing'));
    expect(first.nonce).toMatch(/^[\x21\x23-\x5B\x5D-\x7E]+$/);
    for (let time = 0; time < 2; time++) {
      const again = await ask(JOB, MACHINE, proofOf(holder, { claims: { nonce: first.nonce } }));
      expect(again).toMatchObject({ status: 200, body: { token_type: 'DPoP' }, nonce: null });
    }
  });

  it.each([
    { minute: -4, status: 400 },
    { minute: -3, status: 200 },
    { minute: -1, status: 200 },
    { minute: 1, status: 200 },
    { minute: 2, status: 400 },
  ])('of minute $minute → $status, and the nonce of this minute', async ({ minute, status }) => {
    grantry.clock.advance(minute * MINUTE);
    const nonce = await freshNonce();
    grantry.clock.advance(-minute * MINUTE);
    const answer = await ask(JOB, MACHINE, proofOf(new DpopHolder(), { claims: { nonce } }));
    expect(answer.status).toBe(status);
    if (status === 400) expect(answer).toMatchObject(refused('use_dpop_nonce', 'dpop_nonce_unknown'));
    expect(answer.nonce).toBe(await freshNonce());
  });

  it('and from another server, or garbage → use_dpop_nonce with a right one', async () => {
    const other = await startGrantry({ clients: CLIENTS, dpopNonce: 'required', issuer: grantry.issuer });
    const headers = { authorization: basic(JOB.clientId, JOB.secret), dpop: proofOf(new DpopHolder()) };
    const foreign = (await other.post('/token', MACHINE, { headers })).headers.get('dpop-nonce');
    expect(foreign).toBeTruthy();
    for (const nonce of [foreign, 'garbage', '', 7]) {
      const holder = new DpopHolder();
      const answer = await ask(JOB, MACHINE, proofOf(holder, { claims: { nonce } }));
      expect(answer).toMatchObject(refused('use_dpop_nonce', 'dpop_nonce_unknown'));
      const again = await ask(JOB, MACHINE, proofOf(holder, { claims: { nonce: answer.nonce } }));
      expect(again.status).toBe(200);
    }
  });

  it('is of any replica with the same pepper', async () => {
    const pepper = Buffer.alloc(32, 3);
    await restart({ dpopNonce: 'required', pepper });
    const nonce = await freshNonce();
    const issuer = grantry.issuer;
    const proof = proofOf(new DpopHolder(), { claims: { nonce } });
    const replica = await startGrantry({ clients: CLIENTS, dpopNonce: 'required', pepper, issuer });
    const headers = { authorization: basic(JOB.clientId, JOB.secret), dpop: proof };
    expect((await replica.post('/token', MACHINE, { headers })).status).toBe(200);
  });
});

describe('a proof that comes again', () => {
  it('of a confidential client → refused, an audit event and a count; another id or key is another proof', async () => {
    const holder = new DpopHolder();
    const claims = { jti: 'an-id-of-the-client' };
    const proof = proofOf(holder, { claims });
    expect((await ask(JOB, MACHINE, proof)).status).toBe(200);
    for (const again of [proof, proofOf(holder, { claims })]) {
      expect(await ask(JOB, MACHINE, again)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_replayed'));
    }
    // The key is the name of the holder, whichever client presents the proof.
    expect(await ask(WEB, MACHINE, proof)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_replayed'));
    expect((await ask(JOB, MACHINE, proofOf(new DpopHolder(), { claims }))).status).toBe(200);
    expect((await ask(JOB, MACHINE, proofOf(holder))).status).toBe(200);
    const events = grantry.audits().filter(({ event }) => event === 'dpop_proof.replayed');
    expect(events.map(({ clientId }) => clientId)).toEqual([JOB.clientId, JOB.clientId, WEB.clientId]);
    expect(await metric('grantry_dpop_proof_replayed_total')).toBe(3);
  });

  it('→ refused for as long as it could pass, to the millisecond', async () => {
    const proof = proofOf(new DpopHolder());
    expect((await ask(JOB, MACHINE, proof)).status).toBe(200);
    grantry.clock.advance(60 * SECOND);
    expect(await ask(JOB, MACHINE, proof)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_replayed'));
    grantry.clock.advance(1);
    expect(await ask(JOB, MACHINE, proof)).toMatchObject(refused('use_dpop_nonce', 'dpop_clock_skewed'));
  });

  it('after a request that was refused before its mark → is good; after one that was refused later → is not', async () => {
    const proof = proofOf(new DpopHolder());
    expect((await ask({ ...JOB, secret: 'wrong' }, MACHINE, proof)).status).toBe(401);
    expect((await ask(JOB, { grant_type: 'password' }, proof)).status).toBe(400);
    expect(await ask(JOB, MACHINE, proof)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_replayed'));
    const other = proofOf(new DpopHolder());
    expect((await ask({ ...JOB, secret: 'wrong' }, MACHINE, other)).status).toBe(401);
    expect((await ask(JOB, MACHINE, other)).status).toBe(200);
  });

  it('of a public client → leaves no mark, and a stranger’s neither', async () => {
    const claimed: string[] = [];
    await restart({
      wrapStores: (stores) => ({
        ...stores,
        replays: {
          claim: (purpose, ...rest) => {
            claimed.push(purpose);
            return stores.replays.claim(purpose, ...rest);
          },
        },
      }),
    });
    const proof = proofOf(new DpopHolder());
    const redeemed = await ask(APP, await redemption(APP), proof);
    expect(redeemed.status).toBe(200);
    expect((await ask(APP, renewal(redeemed), proof)).status).toBe(200);
    expect(
      (await ask(APP, { grant_type: 'refresh_token', refresh_token: 'x' }, proofOf(new DpopHolder()))).status,
    ).toBe(400);
    expect(claimed).toEqual([]);
    await ask(JOB, MACHINE, proof);
    expect(claimed).toEqual(['dpop_proof']);
  });

  it('counts for the namespace: when too much of it is alive → 429, and no token', async () => {
    await restart({ rateLimits: true });
    expect((await ask(FULL, MACHINE, proofOf(new DpopHolder()))).status).toBe(200);
    const answer = await ask(FULL, MACHINE, proofOf(new DpopHolder()));
    expect([answer.status, answer.reason]).toEqual([429, 'namespace_state_full']);
    expect((await ask(JOB, MACHINE, proofOf(new DpopHolder()))).status).toBe(200);
    // Until the mark has expired; a minute is counted as a whole.
    grantry.clock.advance(2 * MINUTE);
    expect((await ask(FULL, MACHINE, proofOf(new DpopHolder()))).status).toBe(200);
  });

  it('of which the store may have lost the mark → 503, and no token', async () => {
    await restart({ wrapStores: (stores) => ({ ...stores, replays: { claim: async () => 'lost' as const } }) });
    expect((await ask(JOB, MACHINE, proofOf(new DpopHolder()))).status).toBe(503);
    const party = { ...WORKER, issuer: grantry.issuer, now: grantry.clock.now() };
    const form = { ...MACHINE, ...asserted(await assertionOf(WORKER_KEY, party)) };
    expect((await ask(WORKER, form, proofOf(new DpopHolder()))).status).toBe(503);
  });

  it('while the store is unavailable → a token all the same, and this replica remembers the proof', async () => {
    await restart({
      wrapStores: (stores) => ({
        ...stores,
        replays: { claim: () => Promise.reject(new StoreUnavailableError('replays.claim')) },
      }),
    });
    const proof = proofOf(new DpopHolder());
    expect(await ask(JOB, MACHINE, proof)).toMatchObject({ status: 200, body: { token_type: 'DPoP' } });
    expect(await ask(JOB, MACHINE, proof)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_replayed'));
  });
});

async function metric(name: string): Promise<number> {
  const text = await (await fetch(grantry.adminUrl('/metrics'))).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

describe('a proof beside an assertion of the client', () => {
  const assertion = () =>
    assertionOf(
      WORKER_KEY,
      { ...WORKER, issuer: grantry.issuer, now: grantry.clock.now() },
      { jti: 'assertion-of-the-worker' },
    );

  it('→ each counts once, and neither is used up by a proof that is refused or a nonce that is demanded', async () => {
    const form = { ...MACHINE, ...asserted(await assertion()) };
    const holder = new DpopHolder();
    expect(await ask(WORKER, form)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_missing'));
    expect(await ask(WORKER, form, 'garbage')).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_malformed'));
    const claims = { iat: grantry.clock.now() / SECOND - 100 };
    const { nonce, body } = await ask(WORKER, form, proofOf(holder, { claims }));
    expect(body.error).toBe('use_dpop_nonce');
    const proof = proofOf(holder, { claims: { ...claims, nonce } });
    expect(await ask(WORKER, form, proof)).toMatchObject({ status: 200, body: { token_type: 'DPoP' } });
    expect((await ask(WORKER, form, proofOf(holder))).body.error).toBe('invalid_client');
    // Of another client's credential the proof is the same one.
    expect(await ask(JOB, MACHINE, proof)).toMatchObject(refused('invalid_dpop_proof', 'dpop_proof_replayed'));
  });

  it('while the store is unavailable → 503: an assertion is never served by the memory of one replica', async () => {
    await restart({
      wrapStores: (stores) => ({
        ...stores,
        replays: { claim: () => Promise.reject(new StoreUnavailableError('replays.claim')) },
      }),
    });
    const form = { ...MACHINE, ...asserted(await assertion()) };
    expect((await ask(WORKER, form, proofOf(new DpopHolder()))).status).toBe(503);
  });
});

describe('a code that is bound to a key by dpop_jkt', () => {
  it.each([
    ['a public client', APP],
    ['a confidential client', WEB],
  ])('of %s → is redeemed by that key alone, and by another one it is not used up', async (_name, client) => {
    const [holder, other] = [new DpopHolder(), new DpopHolder()];
    const form = await redemption(client, { confirmation: `jkt.${holder.thumbprint}` });
    expect(await ask(client, form, proofOf(other))).toMatchObject(refused('invalid_grant', 'code_proof_mismatch'));
    const bare = await ask(client, form);
    expect([bare.status, bare.body.error]).toEqual([400, client === APP ? 'invalid_dpop_proof' : 'invalid_grant']);
    expect((await ask(client, form, proofOf(holder))).status).toBe(200);
  });
});

describe('the refresh token of a public client with a key', () => {
  it.each([
    ['that must bind', APP],
    ['that must bind and keeps its refresh token', KEEPER],
    ['that need not bind', SPA],
  ])('%s → needs the same key, and any other use moves nothing', async (_name, client) => {
    const holder = new DpopHolder();
    const first = await ask(client, await redemption(client), proofOf(holder));
    const mismatch = refused('invalid_grant', 'refresh_token_key_mismatch');
    expect(await ask(client, renewal(first), proofOf(new DpopHolder()))).toMatchObject(mismatch);
    expect(await ask(client, renewal(first))).toMatchObject(
      client === SPA ? mismatch : refused('invalid_dpop_proof', 'dpop_proof_missing'),
    );
    const second = await ask(client, renewal(first), proofOf(holder));
    expect(second.status).toBe(200);
    expect(second.body.refresh_token === first.body.refresh_token).toBe(client === KEEPER);
    expect((await ask(client, renewal(second), proofOf(holder))).status).toBe(200);
    expect(grantry.audits().filter(({ alert }) => alert !== undefined)).toEqual([]);
  });

  it('inside the grace → is answered again for the same key, for another one it is not, and the family lives', async () => {
    const [holder, thief] = [new DpopHolder(), new DpopHolder()];
    const first = await ask(APP, await redemption(APP), proofOf(holder));
    const second = await ask(APP, renewal(first), proofOf(holder));
    grantry.clock.advance(9 * SECOND);
    expect(await ask(APP, renewal(first), proofOf(thief))).toMatchObject(
      refused('invalid_grant', 'refresh_token_key_mismatch'),
    );
    const again = await ask(APP, renewal(first), proofOf(holder));
    expect(again.body.refresh_token).toBe(second.body.refresh_token);
    expect((await ask(APP, renewal(second), proofOf(holder))).status).toBe(200);
  });

  it('of one of two clients → is neither the other client’s nor the other key’s', async () => {
    const [one, other] = [new DpopHolder(), new DpopHolder()];
    const ofApp = await ask(APP, await redemption(APP), proofOf(one));
    const ofKeeper = await ask(KEEPER, await redemption(KEEPER), proofOf(other));
    expect(await ask(KEEPER, renewal(ofApp), proofOf(one))).toMatchObject(
      refused('invalid_grant', 'refresh_token_mismatch'),
    );
    expect(await ask(KEEPER, renewal(ofKeeper), proofOf(one))).toMatchObject(
      refused('invalid_grant', 'refresh_token_key_mismatch'),
    );
    expect((await ask(APP, renewal(ofApp), proofOf(one))).status).toBe(200);
    expect((await ask(KEEPER, renewal(ofKeeper), proofOf(other))).status).toBe(200);
  });

  it('of a confidential client → is bound to its credential, and each access token to the key of its own request', async () => {
    const first = await ask(WEB, await redemption(WEB), proofOf(new DpopHolder()));
    const holder = new DpopHolder();
    const second = await ask(WEB, renewal(first), proofOf(holder));
    expect(decodeJwt(String(second.body.access_token)).cnf).toEqual({ jkt: holder.thumbprint });
    expect(await ask(WEB, renewal(second))).toMatchObject({ status: 200, body: { token_type: 'Bearer' } });
  });

  it('from before the client must bind and keep its token → is not refreshed by any key', async () => {
    const first = await ask(SPA, await redemption(SPA));
    const tokens = { ...TOKENS, refreshTokenRotation: 'Never' } as const;
    grantry.setClients([{ ...SPA, senderConstraint: 'DPoP', tokens }]);
    expect(await ask(SPA, renewal(first), proofOf(new DpopHolder()))).toMatchObject(
      refused('invalid_grant', 'refresh_token_key_mismatch'),
    );
  });
});

describe('what is written about a proof', () => {
  it('is neither its key nor its id, in no log line and no metric', async () => {
    const holder = new DpopHolder();
    const claims = { jti: 'an-id-that-is-in-no-log' };
    const proof = proofOf(holder, { claims });
    await ask(JOB, MACHINE, proof);
    await ask(JOB, MACHINE, proof);
    await ask(JOB, MACHINE, proofOf(holder, { claims: { ...claims, iat: 0 } }));
    await ask(JOB, MACHINE, proofOf(holder, { claims: { ...claims, htm: 'GET' } }));
    const written = JSON.stringify(grantry.logs()) + (await (await fetch(grantry.adminUrl('/metrics'))).text());
    for (const text of [claims.jti, holder.thumbprint, String(holder.jwk.x), proof.split('.')[0] ?? '']) {
      expect(written).not.toContain(text);
    }
  });
});
