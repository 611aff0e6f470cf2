// The answers of an API over a raw socket, behind each adapter and in both modes, with tokens of a running grantry
// (docs/scope.md: 6750-1 to 6750-6, 9449-5).

import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createVerifier, type Verifier, type VerifierOptions } from '../../src/resource-server/index.ts';
import { DpopHolder, type ProofChanges } from '../dpop-holder.ts';
import { basic, type Grantry, readJson, startGrantry } from '../grantry.ts';
import { answersIn, exchangeBytes, type RawAnswer } from '../http/server/raw-socket.ts';
import { ADAPTERS, type TestApi } from './apis.ts';

const AUDIENCE = 'https://notes.example/api';
const URL = 'https://notes.example/notes';
const REALM = `realm="${AUDIENCE}"`;
const METADATA = 'resource_metadata="https://notes.example/.well-known/oauth-protected-resource/api"';
const DPOP = 'DPoP algs="ES256 PS256 EdDSA Ed25519"';
const JOB = { clientId: 'shop.job', secret: 'the-secret-of-the-nightly-job' };
const API = { clientId: 'shop.api', secret: 'the-secret-of-the-api-behind-it' };
const holder = new DpopHolder();

let grantry: Grantry;
/** Another issuer, with the same clients and the same key. */
let stranger: Grantry;

beforeAll(async () => {
  const clients = [
    { ...JOB, audiences: [AUDIENCE, 'urn:other'], defaultAudience: AUDIENCE },
    { ...API, resourceServerAudiences: [AUDIENCE] },
  ];
  [grantry, stranger] = await Promise.all([startGrantry({ clients }), startGrantry({ clients })]);
});

async function issued(
  form: Record<string, string> = {},
  headers: Record<string, string> = {},
  by = grantry,
): Promise<string> {
  const response = await by.post(
    '/token',
    { grant_type: 'client_credentials', scope: 'read', ...form },
    { headers: { authorization: basic(JOB.clientId, JOB.secret), ...headers } },
  );
  expect(response.status).toBe(200);
  return (await readJson(response)).access_token;
}

function bound(): Promise<string> {
  return issued({}, { dpop: holder.proof(`${grantry.issuer}/token`, grantry.clock.now()) });
}

function proofOf(token: string, { claims = {} }: ProofChanges = {}, by = holder): string {
  const ath = createHash('sha256').update(token).digest('base64url');
  return by.proof(URL, grantry.clock.now(), { claims: { htm: 'GET', ath, ...claims } });
}

const MODES = {
  local: { mode: 'local' },
  introspection: { mode: 'introspection', introspection: { clientId: API.clientId, clientSecret: API.secret } },
} as const;

function verifierOf(mode: keyof typeof MODES, options: Partial<VerifierOptions> = {}): Verifier {
  const common = { issuer: grantry.issuer, audience: AUDIENCE, clock: grantry.clock };
  return createVerifier(Object.assign(common, options, MODES[mode]));
}

interface Sent {
  readonly lines?: readonly string[];
  readonly target?: string;
  readonly form?: string;
}

async function exchanged({ port }: TestApi, { lines = [], target = '/notes', form }: Sent): Promise<RawAnswer> {
  const body = form ?? '';
  const type = form === undefined ? [] : ['Content-Type: application/x-www-form-urlencoded'];
  const head = [
    `${form === undefined ? 'GET' : 'POST'} ${target} HTTP/1.1`,
    'Host: evil.example',
    'Connection: close',
    ...type,
    `Content-Length: ${body.length}`,
    ...lines,
  ];
  const [answer] = answersIn(await exchangeBytes(port, `${head.join('\r\n')}\r\n\r\n${body}`));
  if (answer === undefined) throw new Error('no answer');
  return answer;
}

const CASES = Object.keys(ADAPTERS).flatMap((adapter) =>
  Object.keys(MODES).map((mode) => [adapter as keyof typeof ADAPTERS, mode as keyof typeof MODES] as const),
);

describe.each(CASES)('an API by %s, %s', (adapter, mode) => {
  async function started(options: Partial<VerifierOptions> = {}) {
    const api = await ADAPTERS[adapter](verifierOf(mode, options));
    onTestFinished(() => api.stop());
    return (sent: Sent) => exchanged(api, sent);
  }

  function expectRefused(answer: RawAnswer, status: number, challenge: string | RegExp) {
    expect(answer.headers['www-authenticate']).toMatch(challenge);
    expect(answer.status).toBe(status);
    expect(answer.headers['cache-control']).toBe('no-store');
  }

  it('a token, its scheme in any case → 200', async () => {
    const send = await started();
    const token = await issued();
    for (const scheme of ['Bearer', 'bearer', 'BEARER  ']) {
      const answer = await send({ lines: [`Authorization: ${scheme} ${token}`] });
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body)).toEqual({ subject: JOB.clientId });
    }
  });

  it('no credentials, or another scheme → 401 with challenges without an error', async () => {
    const send = await started();
    for (const lines of [[], ['Authorization: Basic YTpi'], ['Authorization: Negotiate']]) {
      const answer = await send({ lines });
      expectRefused(answer, 401, `Bearer ${REALM}, scope="read", ${METADATA}, ${DPOP}`);
      expect(answer.headers['www-authenticate']).not.toContain('error');
      expect(answer.body).toBe('');
    }
  });

  it('malformed, doubled, or in the query → 400 invalid_request', async () => {
    const send = await started();
    const token = await issued();
    const right = `Authorization: Bearer ${token}`;
    for (const sent of [
      { lines: ['Authorization: Bearer'] },
      { lines: ['Authorization: Bearer a b'] },
      { lines: ['Authorization: Bearer a,b'] },
      { lines: [right, right] },
      { lines: [right, 'Authorization: Basic YTpi'] },
      { lines: [right], target: `/notes?access_token=${token}` },
      { target: `/notes?access%5Ftoken=${token}` },
    ]) {
      const answer = await send(sent);
      expectRefused(answer, 400, /^Bearer .*error="invalid_request"/);
      expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
    }
  });

  it('garbage, forged, expired, or for another API → 401 invalid_token', async () => {
    const send = await started();
    const token = await issued();
    const [header, payload, signature = ''] = token.split('.');
    const forged = `${header}.${payload}.${Buffer.from(signature, 'base64url').reverse().toString('base64url')}`;
    for (const wrong of ['abc', 'a.b.c', forged, await issued({ resource: 'urn:other' })]) {
      const answer = await send({ lines: [`Authorization: Bearer ${wrong}`] });
      expectRefused(answer, 401, /^Bearer .*error="invalid_token"/);
    }
    grantry.clock.advance(604_999);
    const status = mode === 'local' ? 200 : 401;
    expect(await send({ lines: [`Authorization: Bearer ${token}`] })).toMatchObject({ status });
    grantry.clock.advance(1);
    expectRefused(await send({ lines: [`Authorization: Bearer ${token}`] }), 401, 'error="invalid_token"');
  });

  it('of another issuer → 401 invalid_token; revoked → the same by asking, and by keys it lives on', async () => {
    const send = await started();
    const [token, elsewhere] = [await issued(), await issued({}, {}, stranger)];
    const presented = (sent: string) => send({ lines: [`Authorization: Bearer ${sent}`] });
    expectRefused(await presented(elsewhere), 401, /^Bearer .*error="invalid_token"/);
    expect(await presented(token)).toMatchObject({ status: 200 });
    await grantry.post('/revoke', { token }, { headers: { authorization: basic(JOB.clientId, JOB.secret) } });
    const revoked = await presented(token);
    if (mode === 'local') expect(revoked.status).toBe(200);
    else expectRefused(revoked, 401, /^Bearer .*error="invalid_token"/);
  });

  it('too small a scope → 403 insufficient_scope with the scope', async () => {
    const send = await started();
    const token = await issued({ scope: 'write' });
    const answer = await send({ lines: [`Authorization: Bearer ${token}`] });
    expectRefused(answer, 403, /error="insufficient_scope".*scope="read"/);
  });

  it('a form body where it is off → no credentials; where it is on → a token, which no cache keeps', async () => {
    const form = `access_token=${await issued()}&title=a`;
    const off = await (await started())({ form });
    expectRefused(off, 401, /^(?!.*error)/);
    const send = await started({ formBody: true });
    const answer = await send({ form });
    expect(answer).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
    expectRefused(await send({ form: 'title=a' }), 401, /^(?!.*error)/);
    expectRefused(await send({ form: '' }), 401, /^(?!.*error)/);
  });

  it('a form body twice, malformed, or beside a header → 400 invalid_request', async () => {
    const send = await started({ formBody: true });
    const token = await issued();
    for (const sent of [
      { form: `access_token=${token}&access_token=${token}` },
      { form: 'access_token=a%20b' },
      { form: 'access_token=' },
      { form: `access_token=${token}`, lines: [`Authorization: Bearer ${token}`] },
    ]) {
      expectRefused(await send(sent), 400, 'error="invalid_request"');
    }
  });

  it('a form body with a token of a key, also beside its proof → 401 invalid_token', async () => {
    const send = await started({ formBody: true });
    const token = await bound();
    for (const lines of [[], [`DPoP: ${proofOf(token, { claims: { htm: 'POST' } })}`]]) {
      expectRefused(await send({ form: `access_token=${token}`, lines }), 401, /^Bearer .*error="invalid_token"/);
    }
  });

  it('a token of a key with its proof → 200, once', async () => {
    const send = await started();
    const token = await bound();
    const lines = [`Authorization: DPoP ${token}`, `DPoP: ${proofOf(token)}`];
    expect(await send({ lines })).toMatchObject({ status: 200 });
    expectRefused(await send({ lines }), 401, /^Bearer .*, DPoP error="invalid_dpop_proof"/);
  });

  it('a token of a key as Bearer, a bearer token as DPoP, or the key of another → 401 invalid_token', async () => {
    const send = await started();
    const [token, bearer] = [await bound(), await issued()];
    const asBearer = await send({ lines: [`Authorization: Bearer ${token}`, `DPoP: ${proofOf(token)}`] });
    expectRefused(asBearer, 401, new RegExp(`^Bearer .*error="invalid_token".*${DPOP}$`));
    const asDpop = await send({ lines: [`Authorization: DPoP ${bearer}`, `DPoP: ${proofOf(bearer)}`] });
    expectRefused(asDpop, 401, /, DPoP error="invalid_token"/);
    const stolen = proofOf(token, {}, new DpopHolder());
    const asOther = await send({ lines: [`Authorization: DPoP ${token}`, `DPoP: ${stolen}`] });
    expectRefused(asOther, 401, /, DPoP error="invalid_token"/);
  });

  it('a proof that is missing, doubled, or for the Host of the request → 401 invalid_dpop_proof', async () => {
    const send = await started();
    const token = await bound();
    const authorization = `Authorization: DPoP ${token}`;
    const ofHost = proofOf(token, { claims: { htu: 'http://evil.example/notes' } });
    for (const proofs of [[], [proofOf(token), proofOf(token)], [ofHost], ['x']]) {
      const answer = await send({ lines: [authorization, ...proofs.map((proof) => `DPoP: ${proof}`)] });
      expectRefused(answer, 401, /, DPoP error="invalid_dpop_proof"/);
    }
  });

  it('a nonce that is required → 401 use_dpop_nonce with one; with it → 200', async () => {
    const send = await started({ dpopNonce: { rule: 'required' } });
    const token = await bound();
    const authorization = `Authorization: DPoP ${token}`;
    const refused = await send({ lines: [authorization, `DPoP: ${proofOf(token)}`] });
    expectRefused(refused, 401, /, DPoP error="use_dpop_nonce"/);
    const nonce = refused.headers['dpop-nonce'];
    const proof = () => proofOf(token, { claims: { nonce } });
    expect(await send({ lines: [authorization, `DPoP: ${proof()}`] })).toMatchObject({ status: 200 });
    grantry.clock.advance(60_000);
    const later = await send({ lines: [authorization, `DPoP: ${proof()}`] });
    expect(later.status).toBe(200);
    expect(later.headers['dpop-nonce']).not.toBe(nonce);
  });

  it('keys, introspection or the store of proofs unavailable → 503 with Retry-After', async () => {
    const unavailable = { fetch: () => Promise.reject(new Error('unavailable')) };
    const lines = [`Authorization: Bearer ${await issued()}`];
    const answer = await (await started(unavailable))({ lines });
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5', 'cache-control': 'no-store' } });
    const token = await bound();
    const send = await started({ replays: { claim: () => Promise.reject(new Error('unavailable')) } });
    const ofKey = await send({ lines: [`Authorization: DPoP ${token}`, `DPoP: ${proofOf(token)}`] });
    expect(ofKey).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
  });
});
