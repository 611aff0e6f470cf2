// What is logged of a request, and what never is (docs/scope.md: I6, K7). That no secret is in any line
// of any test is the oracle's work; here are the lines themselves.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic, type Grantry, PKCE, startGrantry } from '../../grantry.ts';
import { until } from '../../until.ts';
import { TokenCalls, WEB } from '../protocol/token-calls.ts';
import { exchangeBytes, requestText } from './raw-socket.ts';

/** The members of the first table of the reference. */
const LINE_MEMBERS = new Set(
  [
    ...readFileSync(new URL('../../../docs/reference/logs-metrics-audit.md', import.meta.url), 'utf8').matchAll(
      /^\| `([a-zA-Z]+)` \|/gm,
    ),
  ].map(([, name]) => name),
);

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({ clients: [WEB], users: { alice: 'a password of alice' } });
});

function requestLines() {
  return grantry.logs().filter(({ stream }) => stream === undefined);
}

describe('the log', () => {
  it('has one line for each request, from an allow-list', async () => {
    const before = requestLines().length;
    await fetch(grantry.url('/nowhere?state=a-state-that-is-secret'));
    await new TokenCalls(grantry).redeem('garbage');
    await grantry.post(
      '/token',
      { grant_type: 'client_credentials' },
      { headers: { authorization: basic(WEB.clientId, WEB.secret) } },
    );
    const lines = requestLines().slice(before);
    expect(lines).toHaveLength(3);
    for (const line of lines) {
      for (const member of Object.keys(line)) expect(LINE_MEMBERS).toContain(member);
    }
    expect(lines[0]).toMatchObject({
      level: 'info',
      route: 'unmatched',
      method: 'GET',
      status: 404,
      outcome: 'refused',
      reason: 'not_found',
    });
    expect(lines[1]).toMatchObject({ route: 'token', status: 400, clientId: WEB.clientId, outcome: 'refused' });
    expect(lines[2]).toMatchObject({
      route: 'token',
      status: 200,
      clientId: WEB.clientId,
      grantType: 'client_credentials',
      scope: 'read',
      outcome: 'issued',
    });
    expect(new Set(lines.map(({ requestId }) => requestId)).size).toBe(3);
  });

  it('holds no code, token or generated secret that was sent in place of a client id', async () => {
    const { body } = await new TokenCalls(grantry).redeem(await grantry.issueCode(WEB.clientId));
    const code = await grantry.issueCode(WEB.clientId);
    const tokens = [body.refresh_token, body.access_token].map(String);
    const secrets = [randomBytes(32).toString('base64url'), code, ...tokens];
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(40);
      const before = requestLines().length;
      await grantry.post('/token', { grant_type: 'client_credentials', client_id: secret });
      await grantry.post('/token', {}, { headers: { authorization: basic(secret, 'x') } });
      await fetch(grantry.url(`/authorize?${new URLSearchParams({ client_id: secret })}`));
      expect(JSON.stringify(grantry.logs().slice(before))).not.toContain(secret.slice(-20));
      expect(requestLines().length).toBe(before + 3);
    }
  });

  it('notes what was answered without a readable request', async () => {
    await exchangeBytes(grantry.port, 'garbage of a-secret-client\r\n\r\n');
    expect(requestLines().at(-1)).toMatchObject({ route: 'unreadable', status: 400, reason: 'malformed_http' });
  });

  it('names the address of a caller who has cut off his own request', async () => {
    const body = 'grant_type=client_credentials&client_id=nobody&client_secret=wrong';
    const type = 'Content-Type: application/x-www-form-urlencoded';
    const request = requestText('POST /token HTTP/1.1', [type], body);
    const refused = () => grantry.logs().filter(({ event }) => event === 'token.refused');
    const before = refused().length;
    await exchangeBytes(grantry.port, `${request}\x01garbage\r\n\r\n`);
    await until('the refusal is audited', () => refused().length > before);
    expect(refused().at(-1)).toMatchObject({ address: '127.0.0.1' });
  });

  it('holds no secret after a whole life of a grant, in any stream, metric or header', async () => {
    const calls = new TokenCalls(grantry);
    const code = await grantry.issueCode(WEB.clientId);
    const { body } = await calls.redeem(code);
    const next = await calls.refresh(body.refresh_token);
    await calls.introspect(next.body.access_token);
    await calls.redeem(code);
    await calls.refresh(body.refresh_token);
    await calls.revoke(next.body.refresh_token);
    const secrets = [
      code,
      body.access_token,
      body.refresh_token,
      next.body.access_token,
      next.body.refresh_token,
      PKCE.verifier,
      WEB.secret,
    ];
    const metrics = await (await fetch(grantry.adminUrl('/metrics'))).text();
    const everything = JSON.stringify(grantry.logs()) + metrics;
    for (const secret of secrets) expect(everything).not.toContain(secret);
  });
});

describe('the audit stream', () => {
  it('shows what became of a grant, by hashed subject', async () => {
    const own = await startGrantry({ clients: [WEB] });
    const calls = new TokenCalls(own);
    const code = await own.issueCode(WEB.clientId);
    const { body } = await calls.redeem(code);
    await calls.refresh(body.refresh_token);
    await calls.redeem(code);
    const events = own.audits();
    expect(events.map(({ event }) => event)).toEqual([
      'token.issued',
      'token.refreshed',
      'authorization_code.replayed',
      'token.refused',
    ]);
    expect(events[0]).toMatchObject({
      clientId: WEB.clientId,
      grantType: 'authorization_code',
      tokenFormat: 'jwt',
      address: '127.0.0.1',
    });
    expect(events[2]).toMatchObject({
      level: 'warn',
      alert: { type: 'authorization_code.replayed', action: 'grant_revoked' },
    });
    expect(JSON.stringify(own.logs())).not.toContain('usr_');
    expect(new Set(events.flatMap(({ subject }) => subject ?? [])).size).toBe(1);
  });

  it('names people when it is configured to', async () => {
    const own = await startGrantry({ clients: [WEB], auditSubjects: 'plain' });
    await new TokenCalls(own).redeem(await own.issueCode(WEB.clientId));
    expect(own.audits()[0]).toMatchObject({ subject: expect.stringMatching(/^usr_/) });
  });

  it('counts reuse and replay', async () => {
    const own = await startGrantry({ clients: [WEB] });
    const calls = new TokenCalls(own);
    const code = await own.issueCode(WEB.clientId);
    const { body } = await calls.redeem(code);
    await calls.redeem(code);
    const second = await calls.redeem(await own.issueCode(WEB.clientId));
    await calls.refresh(second.body.refresh_token);
    own.clock.advance(11_000);
    await calls.refresh(second.body.refresh_token);
    expect(body.access_token).toEqual(expect.any(String));
    const metrics = await (await fetch(own.adminUrl('/metrics'))).text();
    expect(metrics).toMatch(/^grantry_code_replayed_total 1$/m);
    expect(metrics).toMatch(/^grantry_refresh_reuse_detected_total 1$/m);
  });
});
