// The requests of a controller on the admin port, as HTTP; other tests cover the content of the answers.

import { describe, expect, it } from 'vitest';
import { controllerProof, proofFault } from '../../../src/admission/references/controller-proof.ts';
import {
  IDS_PER_REQUEST,
  type ObservedRequest,
  type ReportRequest,
} from '../../../src/http/admin/controller-endpoints.ts';
import { startGrantry } from '../../grantry.ts';

const OBSERVED = {
  clients: { 'u-1': { generation: 3, secretRevision: 2 } },
  resources: { 'u-2': { generation: 5 } },
  keyIds: ['k-1'],
};
const KEY = 'the key of the release namespace, 32 characters and more';
type Proof = (path: string, body: string, key?: string) => string;

const CLIENT = { clientId: 'shop.worker', secret: 's'.repeat(43) };
const REPORT = { cursor: 'c-1', lastUsed: {}, denied: {}, providers: {}, users: {}, alerts: [] } as const;

async function start(options: { key?: string | undefined } = { key: KEY }) {
  const asked: (ObservedRequest | ReportRequest)[] = [];
  const clock = { at: Date.UTC(2026, 0, 1, 12), now: () => clock.at };
  const grantry = await startGrantry({
    clients: [CLIENT],
    replica: {
      proofFault: ({ authorization, ...question }) => proofFault(question, authorization, options.key, clock.now()),
      observed: (request) => {
        asked.push(request);
        return OBSERVED;
      },
      report: (request) => {
        asked.push(request);
        return REPORT;
      },
    },
  });
  const proof = (path: string, body: string, key = KEY) => controllerProof({ path, body }, key, clock.now()) ?? '';
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    fetch(grantry.adminUrl(path), {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', authorization: proof(path, body), ...headers },
    });
  const reasons = () => grantry.logs().flatMap(({ route, reason }) => (route === 'registry_report' ? [reason] : []));
  return { grantry, asked, post, proof, clock, reasons };
}

describe('the questions of a controller', () => {
  it('are answered in JSON', async () => {
    const { asked, post } = await start();
    const observed = await post('/registry/observed', '{"uids":["u-1"]}');
    expect([observed.status, await observed.json()]).toEqual([200, OBSERVED]);
    // A controller of an earlier version acknowledges alerts.
    const report = await post('/registry/report', '{"after":"c-0","acknowledged":["a-1"]}');
    expect([report.status, await report.json()]).toEqual([200, REPORT]);
    expect(asked).toEqual([{ uids: ['u-1'] }, { after: 'c-0' }]);
  });

  it('may name as many ids as one request takes', async () => {
    const { asked, post } = await start();
    const uids = Array.from({ length: IDS_PER_REQUEST }, () => crypto.randomUUID());
    expect((await post('/registry/observed', JSON.stringify({ uids }))).status).toBe(200);
    expect(asked).toEqual([{ uids }]);
  });

  it.each([
    ['no JSON', 'uids'],
    ['no object', '[]'],
    ['no ids', '{"uids":"u-1"}'],
    ['too many ids', JSON.stringify({ uids: Array.from({ length: IDS_PER_REQUEST + 1 }, () => 'u') })],
    ['something else too', '{"uids":[],"more":1}'],
  ])('are refused when there is %s', async (_, body) => {
    const { asked, post } = await start();
    const response = await post('/registry/observed', body);
    expect([response.status, asked]).toEqual([400, []]);
  });

  it.each([
    ['a cursor that is too long', { after: 'c'.repeat(129) }],
    ['a cursor that is none', { after: 'c\r\n0' }],
  ])('change nothing with %s', async (_, body) => {
    const { asked, post } = await start();
    const response = await post('/registry/report', JSON.stringify(body));
    expect([response.status, asked]).toEqual([400, []]);
  });

  it('are JSON, and nothing else is read', async () => {
    const { asked, post } = await start();
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'application/json; charset=utf-8']) {
      expect((await post('/registry/observed', '{"uids":[]}', { 'content-type': type })).status).toBe(415);
    }
    expect(asked).toEqual([]);
  });

  it('are served on the admin port only, and not without a controller', async () => {
    const { grantry, proof } = await start();
    const authorization = proof('/registry/observed', '{"uids":[]}');
    const headers = { 'content-type': 'application/json', authorization };
    const publicly = await fetch(grantry.url('/registry/observed'), { method: 'POST', body: '{"uids":[]}', headers });
    expect(publicly.status).toBe(404);
    const alone = await startGrantry({ clients: [] });
    const answer = await fetch(alone.adminUrl('/registry/observed'), { method: 'POST', body: '{"uids":[]}', headers });
    expect(answer.status).toBe(404);
  });
});

describe('a question on the admin port that the controller does not ask', () => {
  const BODY = '{"after":"c-1"}';
  const PATH = '/registry/report';

  it.each(['/registry/observed', '/registry/report'])('is not answered at %s', async (path) => {
    const { grantry, asked } = await start();
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(grantry.adminUrl(path), { method: 'POST', body: '{}', headers });
    expect([response.status, await response.json()]).toEqual([
      403,
      { error: 'access_denied', error_description: 'Only the controller is answered.' },
    ]);
    expect(asked).toEqual([]);
  });

  it('is not believed for an access token, and no client is for a proof', async () => {
    const { grantry, asked, post, proof, reasons } = await start();
    const basic = `Basic ${Buffer.from(`${CLIENT.clientId}:${CLIENT.secret}`).toString('base64')}`;
    const issued = await grantry.post(
      '/token',
      { grant_type: 'client_credentials' },
      { headers: { authorization: basic } },
    );
    const { access_token: token } = (await issued.json()) as { access_token: string };
    for (const authorization of [`Bearer ${token}`, `Grantry-Controller ${token}`, basic]) {
      expect((await post(PATH, BODY, { authorization })).status).toBe(403);
    }
    expect([reasons(), asked]).toEqual([Array(3).fill('proof_missing'), []]);

    const authorization = proof('/token', 'grant_type=client_credentials');
    const refused = await grantry.post('/token', { grant_type: 'client_credentials' }, { headers: { authorization } });
    expect([refused.status, ((await refused.json()) as { error: string }).error]).toEqual([401, 'invalid_client']);
    const [, credentials = ''] = proof(PATH, BODY).split(' ');
    const asBasic = `Basic ${Buffer.from(`${CLIENT.clientId}:${credentials}`).toString('base64')}`;
    const wrong = await grantry.post(
      '/token',
      { grant_type: 'client_credentials' },
      { headers: { authorization: asBasic } },
    );
    expect(wrong.status).toBe(401);
    const introspected = await grantry.post(
      '/introspect',
      { token: credentials },
      { headers: { authorization: basic } },
    );
    expect(await introspected.json()).toEqual({ active: false });
  });

  it.each([
    ['another key', 'proof_wrong', (proof: Proof) => proof(PATH, BODY, 'another key, as long as it has to be for one')],
    ['another question', 'proof_wrong', (proof: Proof) => proof(PATH, '{"after":"c-2"}')],
    ['the other endpoint', 'proof_wrong', (proof: Proof) => proof('/registry/observed', BODY)],
    ['another time than it says', 'proof_wrong', (proof: Proof) => proof(PATH, BODY).replace(/\d\./, '9.')],
    ['no proof but its name', 'proof_missing', () => 'Grantry-Controller'],
  ])('is refused with the proof of %s', async (_, reason, authorizationOf) => {
    const { asked, post, proof, reasons } = await start();
    expect((await post(PATH, BODY, { authorization: authorizationOf(proof) })).status).toBe(403);
    expect([reasons(), asked]).toEqual([[reason], []]);
  });

  it.each([-31, 32])('is refused %i s after its proof was made', async (seconds) => {
    const { asked, post, proof, clock, reasons } = await start();
    const authorization = proof(PATH, BODY);
    clock.at += seconds * 1000;
    expect((await post(PATH, BODY, { authorization })).status).toBe(403);
    expect([reasons(), asked]).toEqual([['proof_expired'], []]);
  });

  it.each([-29, 29])('is none where clocks are %i s apart', async (seconds) => {
    const { post, proof, clock } = await start();
    const authorization = proof(PATH, BODY);
    clock.at += seconds * 1000;
    expect((await post(PATH, BODY, { authorization })).status).toBe(200);
  });

  it.each([undefined, '', 'too short to be a key'])('is unproven while the key is %j', async (key) => {
    const { asked, post, reasons } = await start({ key });
    expect((await post(PATH, BODY)).status).toBe(403);
    expect([reasons(), asked]).toEqual([['proof_key_missing'], []]);
    expect(controllerProof({ path: PATH, body: BODY }, key, Date.now())).toBeUndefined();
  });
});
