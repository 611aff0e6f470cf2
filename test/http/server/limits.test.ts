// Limits on failed client authentication over HTTP (RFC 6585 §4; docs/scope.md: 6585-1, C6, C8, I5).

import { describe, expect, it } from 'vitest';
import { basic, type Grantry, readJson, startGrantry } from '../../grantry.ts';
import { answersIn, exchangeBytes, requestText } from './raw-socket.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const CLIENTS = [
  ...['team.a', 'team.b', 'team.c'].map((clientId) => ({ clientId, secret: SECRET })),
  { clientId: 'team.post', secret: SECRET, authMethod: 'client_secret_post' },
  { clientId: 'team.public' },
];
const FORM = { grant_type: 'client_credentials' };

function attempt(grantry: Grantry, clientId: string, secret: string, headers: Record<string, string> = {}) {
  return grantry.post('/token', FORM, { headers: { authorization: basic(clientId, secret), ...headers } });
}

async function failTimes(grantry: Grantry, times: number, clientId: string, headers: Record<string, string> = {}) {
  const statuses: number[] = [];
  for (let count = 0; count < times; count += 1) {
    statuses.push((await attempt(grantry, clientId, `wrong-${count}`, headers)).status);
  }
  return statuses;
}

describe('failed client authentication', () => {
  it('of one client at one address → 401 ten times, then 429 with Retry-After until the wait is over', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    expect(await failTimes(grantry, 11, 'team.a')).toEqual([...Array<number>(10).fill(401), 429]);
    const limited = await attempt(grantry, 'team.a', 'wrong');
    expect(limited.status).toBe(429);
    expect(limited.headers.get('retry-after')).toBe('6');
    expect((await readJson(limited)).error).toBe('temporarily_unavailable');
    grantry.clock.advance(6000);
    expect(await failTimes(grantry, 2, 'team.a')).toEqual([401, 429]);
    expect(await (await fetch(grantry.adminUrl('/metrics'))).text()).toMatch(
      /^grantry_rate_limited_total\{limit="client_authentication_limited"\} 3$/m,
    );
  });

  it('in any number → the right credential of every client at that address passes', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    await failTimes(grantry, 11, 'team.a');
    for (let count = 0; count < 100; count += 1) await attempt(grantry, `nobody.${count}`, 'x');
    expect((await attempt(grantry, 'team.a', 'wrong')).status).toBe(429);
    expect((await attempt(grantry, 'nobody.0', 'x')).status).toBe(429);
    for (const clientId of ['team.a', 'team.b', 'team.c']) {
      expect((await attempt(grantry, clientId, SECRET)).status).toBe(200);
    }
    const post = { ...FORM, client_id: 'team.post', client_secret: SECRET };
    expect((await grantry.post('/token', post)).status).toBe(200);
    expect((await grantry.post('/revoke', { client_id: 'team.public', token: 'x' })).status).toBe(200);
  });

  it('of many requests in one moment → ten are answered 401, the others 429', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    const headers = [`Authorization: ${basic('team.a', 'wrong')}`, 'Content-Type: application/x-www-form-urlencoded'];
    const last = requestText('POST /token HTTP/1.1', headers, 'grant_type=client_credentials');
    const one = last.replace('Connection: close', 'Connection: keep-alive');
    const sent = Array.from({ length: 5 }, () => exchangeBytes(grantry.port, `${one.repeat(5)}${last}`));
    const statuses = answersIn((await Promise.all(sent)).join('')).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([...Array<number>(10).fill(401), ...Array<number>(20).fill(429)]);
  });

  it('of one client → a wrong secret of another client at that address is still answered 401', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    await failTimes(grantry, 11, 'team.a');
    expect((await attempt(grantry, 'team.b', 'wrong')).status).toBe(401);
  });

  it('at token, revoke and introspect → one count', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    const headers = { authorization: basic('team.a', 'wrong') };
    for (const path of [
      '/token',
      '/revoke',
      '/introspect',
      '/token',
      '/revoke',
      '/introspect',
      '/token',
      '/revoke',
      '/introspect',
      '/token',
    ]) {
      expect((await grantry.post(path, { ...FORM, token: 'x' }, { headers })).status).toBe(401);
    }
    for (const path of ['/token', '/revoke', '/introspect']) {
      expect((await grantry.post(path, { ...FORM, token: 'x' }, { headers })).status).toBe(429);
    }
  });

  it('is none where the client has authenticated and its request is refused: at no endpoint does that count', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    const headers = { authorization: basic('team.a', SECRET) };
    for (const path of ['/token', '/revoke', '/introspect']) {
      for (let count = 0; count < 4; count += 1) {
        expect((await grantry.post(path, {}, { headers })).status).toBe(400);
      }
    }
    expect((await attempt(grantry, 'team.a', 'wrong')).status).toBe(401);
  });

  it('with a hundred unknown ids → every further failure at that address is answered 429', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    const statuses: number[] = [];
    for (let count = 0; count < 101; count += 1) statuses.push((await attempt(grantry, `nobody.${count}`, 'x')).status);
    expect(statuses).toEqual([...Array<number>(100).fill(401), 429]);
    expect((await attempt(grantry, 'team.a', 'wrong')).status).toBe(429);
  });

  it('by an unknown id, a wrong method or a wrong secret → the same answers, 401 ten times and then 429', async () => {
    const cases: readonly (readonly [string, Record<string, string>, Record<string, string>])[] = [
      ['a wrong secret', FORM, { authorization: basic('team.a', 'wrong') }],
      ['an unknown id', FORM, { authorization: basic('nobody', SECRET) }],
      ['a long unknown id', { ...FORM, client_id: 'n'.repeat(32_768), client_secret: SECRET }, {}],
      ['the method of another client', { ...FORM, client_id: 'team.a', client_secret: SECRET }, {}],
      ['no credential of a confidential client', { ...FORM, client_id: 'team.a' }, {}],
      ['no credential of an unknown id', { ...FORM, client_id: 'nobody' }, {}],
      ['a scheme that no method reads', { ...FORM, client_id: 'team.a' }, { authorization: 'Bearer x' }],
      ['that scheme of an unknown id', { ...FORM, client_id: 'nobody' }, { authorization: 'Bearer x' }],
      ['an assertion', { ...FORM, client_id: 'team.a', client_assertion: 'x', client_assertion_type: 'y' }, {}],
      ['a malformed credential', FORM, { authorization: 'Basic !!!' }],
    ];
    for (const [what, form, headers] of cases) {
      const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
      const answers: unknown[] = [];
      for (let count = 0; count < 11; count += 1) {
        const answer = await grantry.post('/token', form, { headers });
        answers.push([answer.status, answer.headers.get('retry-after'), (await readJson(answer)).error]);
      }
      const unnamed = what === 'a malformed credential';
      const last = unnamed ? [401, null, 'invalid_client'] : [429, '6', 'temporarily_unavailable'];
      expect([what, ...answers]).toEqual([what, ...Array(10).fill([401, null, 'invalid_client']), last]);
      await grantry.stop();
    }
  });

  it('is not limited when limits are off', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: false });
    expect(await failTimes(grantry, 120, 'team.a')).toEqual(Array<number>(120).fill(401));
  });
});

describe('the address that limits count', () => {
  it('is the peer, whatever forwarding headers claim', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    for (let count = 0; count < 10; count += 1) {
      const spoofed = {
        'x-forwarded-for': `198.51.100.${count}`,
        'x-real-ip': `198.51.100.${count}`,
        forwarded: `for=198.51.100.${count}`,
      };
      expect((await attempt(grantry, 'team.a', 'wrong', spoofed)).status).toBe(401);
    }
    expect((await attempt(grantry, 'team.a', 'wrong', { 'x-forwarded-for': '198.51.100.99' })).status).toBe(429);
  });

  it('is what a trusted proxy says, and what stands left of that is ignored', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true, trustedProxies: ['127.0.0.1'] });
    for (let count = 0; count < 10; count += 1) {
      const headers = { 'x-forwarded-for': `203.0.113.${count}, 198.51.100.7` };
      expect((await attempt(grantry, 'team.a', 'wrong', headers)).status).toBe(401);
    }
    expect((await attempt(grantry, 'team.a', 'wrong', { 'x-forwarded-for': '198.51.100.7:4711' })).status).toBe(429);
    expect((await attempt(grantry, 'team.a', 'wrong', { 'x-forwarded-for': '198.51.100.8' })).status).toBe(401);
  });
});
