// Limits on failed client authentication over HTTP (RFC 6585 §4; docs/scope.md: 6585-1, C8, I5).

import { describe, expect, it } from 'vitest';
import { basic, type Grantry, readJson, startGrantry } from '../../grantry.ts';
import { answersIn, exchangeBytes, requestText } from './raw-socket.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const CLIENTS = ['team.a', 'team.b', 'team.c'].map((clientId) => ({ clientId, secret: SECRET }));
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
  it('is answered 429 with Retry-After from the eleventh on, also with the right secret, until the wait is over', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    expect(await failTimes(grantry, 11, 'team.a')).toEqual([...Array<number>(10).fill(401), 429]);
    const limited = await attempt(grantry, 'team.a', SECRET);
    expect(limited.status).toBe(429);
    expect(limited.headers.get('retry-after')).toBe('6');
    expect((await readJson(limited)).error).toBe('temporarily_unavailable');
    grantry.clock.advance(6000);
    expect((await attempt(grantry, 'team.a', SECRET)).status).toBe(200);
    expect(await (await fetch(grantry.adminUrl('/metrics'))).text()).toMatch(
      /^grantry_rate_limited_total\{limit="[a-z_]+"\} 2$/m,
    );
  });

  it('is limited all the same where many come in one moment', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    const headers = [`Authorization: ${basic('team.a', 'wrong')}`, 'Content-Type: application/x-www-form-urlencoded'];
    const last = requestText('POST /token HTTP/1.1', headers, 'grant_type=client_credentials');
    const one = last.replace('Connection: close', 'Connection: keep-alive');
    const stream = await exchangeBytes(Number(new URL(grantry.url('/')).port), `${one.repeat(29)}${last}`);
    const statuses = answersIn(stream).map(({ status }) => status);
    expect(statuses).toEqual([...Array<number>(10).fill(401), ...Array<number>(20).fill(429)]);
  });

  it('of one client does not starve another one', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    await failTimes(grantry, 11, 'team.a');
    expect((await attempt(grantry, 'team.b', SECRET)).status).toBe(200);
  });

  it('counts over token, revoke and introspect together', async () => {
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

  it('with unknown ids counts for the address, a hundred times', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    const statuses: number[] = [];
    for (let count = 0; count < 101; count += 1) statuses.push((await attempt(grantry, `nobody.${count}`, 'x')).status);
    expect(statuses).toEqual([...Array<number>(100).fill(401), 429]);
    expect((await attempt(grantry, 'team.a', SECRET)).status).toBe(429);
  });

  it('by a wrong method is not a failed secret', async () => {
    const grantry = await startGrantry({ clients: CLIENTS, rateLimits: true });
    for (let count = 0; count < 30; count += 1) {
      const probe = await grantry.post('/token', { ...FORM, client_id: 'team.a', client_secret: SECRET });
      expect(probe.status).toBe(401);
    }
    expect((await attempt(grantry, 'team.a', SECRET)).status).toBe(200);
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
    expect((await attempt(grantry, 'team.a', SECRET, { 'x-forwarded-for': '198.51.100.7' })).status).toBe(429);
    expect((await attempt(grantry, 'team.a', SECRET, { 'x-forwarded-for': '198.51.100.8' })).status).toBe(200);
  });
});
