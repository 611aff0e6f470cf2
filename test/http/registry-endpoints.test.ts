// The questions of a controller on the admin port, as HTTP; what is answered is told elsewhere.

import { describe, expect, it } from 'vitest';
import { IDS_PER_REQUEST, type ObservedRequest, type ReportRequest } from '../../src/http/registry-endpoints.ts';
import { startGrantry } from '../grantry.ts';

const OBSERVED = { clients: { 'u-1': { generation: 3, secretRevision: 2 } }, keyIds: ['k-1'] };
const REPORT = { cursor: 'c-1', lastUsed: {}, denied: {}, alerts: [] };

async function start() {
  const asked: (ObservedRequest | ReportRequest)[] = [];
  const grantry = await startGrantry({
    clients: [],
    replica: {
      observed: (request) => {
        asked.push(request);
        return OBSERVED;
      },
      report: async (request) => {
        asked.push(request);
        return REPORT;
      },
    },
  });
  const post = (path: string, body: string, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
    fetch(grantry.adminUrl(path), { method: 'POST', body, headers });
  return { grantry, asked, post };
}

describe('the questions of a controller', () => {
  it('are answered in JSON', async () => {
    const { asked, post } = await start();
    const observed = await post('/registry/observed', '{"uids":["u-1"]}');
    expect([observed.status, await observed.json()]).toEqual([200, OBSERVED]);
    const report = await post('/registry/report', '{"after":"c-0","acknowledged":["a-1"]}');
    expect([report.status, await report.json()]).toEqual([200, REPORT]);
    expect(asked).toEqual([{ uids: ['u-1'] }, { after: 'c-0', acknowledged: ['a-1'] }]);
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
    ['an alert whose id is too long', { acknowledged: ['a'.repeat(129)] }],
    ['an alert without an id', { acknowledged: [''] }],
    ['an id that no alert has', { acknowledged: ['grant\r\nalert'] }],
    ['too many alerts', { acknowledged: Array.from({ length: IDS_PER_REQUEST + 1 }, (_, index) => `a-${index}`) }],
    ['a time of its own', { lastUsed: { 'u-1': '2026-02-30' } }],
  ])('bring nothing about with %s', async (_, body) => {
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

  it('are asked on the admin port only, and of nobody without a controller', async () => {
    const { grantry } = await start();
    const headers = { 'content-type': 'application/json' };
    const publicly = await fetch(grantry.url('/registry/observed'), { method: 'POST', body: '{"uids":[]}', headers });
    expect(publicly.status).toBe(404);
    const alone = await startGrantry({ clients: [] });
    const answer = await fetch(alone.adminUrl('/registry/observed'), { method: 'POST', body: '{"uids":[]}', headers });
    expect(answer.status).toBe(404);
  });
});
