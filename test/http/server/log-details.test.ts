// What leads from an answer to its log line, and what only that line names.

import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { basic, PKCE, readJson, startGrantry } from '../../grantry.ts';

const ORIGIN = 'https://spa.example';
const SECRET = 'the-secret-of-the-web-application';
const grantry = await startGrantry({
  clients: [{ clientId: 'shop.web', secret: SECRET, allowedCorsOrigins: [ORIGIN] }],
  refused: { 'shop.refused': 'PolicyViolation' },
});
const headers = { authorization: basic('shop.web', SECRET) };
const lastLine = () => grantry.logs().findLast(({ route }) => route !== undefined);
const lineOf = (response: Response) =>
  grantry.logs().find(({ requestId }) => requestId === response.headers.get('x-request-id'));
const authorize = (changes: Readonly<Record<string, string>>) => {
  const request = {
    response_type: 'code',
    client_id: 'shop.web',
    redirect_uri: 'https://app.example/cb',
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
    ...changes,
  };
  return fetch(grantry.url(`/authorize?${new URLSearchParams(request)}`), { redirect: 'manual' });
};

describe('X-Request-Id', () => {
  it('of an answer, page, redirect or preflight → the log line of that request', async () => {
    const answers = [
      await grantry.post('/token', { grant_type: 'client_credentials' }, { headers }),
      await grantry.post('/token', { grant_type: 'none' }, { headers }),
      await grantry.post('/token', { a: 'b'.repeat(70_000) }),
      await fetch(grantry.url('/.well-known/jwks.json')),
      await fetch(grantry.url('/nowhere')),
      await fetch(grantry.adminUrl('/nowhere')),
      await authorize({}),
      await authorize({ scope: 'admin' }),
      await fetch(grantry.url('/token'), { method: 'OPTIONS', headers: { origin: ORIGIN } }),
    ];
    const statuses = [200, 400, 413, 200, 404, 404, 200, 302, 204];
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    expect(answers.map((answer) => lineOf(answer)?.status)).toEqual(statuses);
  });

  it('of the answer to what is no HTTP → its log line', async () => {
    const socket = connect(grantry.port, '127.0.0.1');
    socket.end('nonsense\r\n\r\n');
    const [, requestId] = /^x-request-id: (.*)\r$/m.exec(await text(socket)) ?? [];
    expect(grantry.logs().find((line) => line.requestId === requestId)).toMatchObject({ reason: 'malformed_http' });
  });

  it('can be read by an application of a registered origin', async () => {
    const answer = await fetch(grantry.url('/token'), { method: 'POST', headers: { origin: ORIGIN } });
    expect(answer.headers.get('access-control-expose-headers')?.split(', ')).toContain('X-Request-Id');
  });
});

describe('a request of a client whose manifest is refused', () => {
  const refused = { clientId: 'shop.refused', reason: 'client_refused', detail: 'PolicyViolation' };

  it.each(['/token', '/revoke', '/introspect'])(
    'at %s → the log line says client_refused with the reason of its condition, the answer is that to an unknown client',
    async (path) => {
      const ask = async (clientId: string) => {
        const answer = await grantry.post(
          path,
          { token: 'x' },
          { headers: { authorization: basic(clientId, 'guess') } },
        );
        const line = lastLine();
        return { status: answer.status, body: await readJson(answer), line };
      };
      const unknown = await ask('shop.unknown');
      const { line, ...answer } = await ask('shop.refused');
      expect([unknown.line?.reason, unknown.line?.clientId]).toEqual(['client_unknown', undefined]);
      expect(line).toMatchObject(refused);
      expect(answer).toEqual({ status: unknown.status, body: unknown.body });
      if (path === '/token') {
        expect(grantry.audits().at(-1)).toMatchObject({ event: 'token.refused', reason: 'client_refused' });
      }
    },
  );

  it('at /authorize → the same, and the page of an unknown client', async () => {
    const pageOf = async (clientId: string) => {
      const answer = await authorize({ client_id: clientId });
      const page = await answer.text();
      return [answer.status, page.replace(/<code>.*<\/code>/, '')];
    };
    expect(await pageOf('shop.refused')).toEqual(await pageOf('shop.unknown'));
    expect(lastLine()).toMatchObject({ reason: 'client_unknown' });
    await authorize({ client_id: 'shop.refused' });
    expect(lastLine()).toMatchObject(refused);
  });
});

describe('invalid_scope', () => {
  const long = 'x'.repeat(500);

  it('names the first scope that is not allowed in its log line, and not in its answer', async () => {
    const form = { grant_type: 'client_credentials', scope: 'read admin more' };
    const answer = await grantry.post('/token', form, { headers });
    expect(JSON.stringify(await readJson(answer))).not.toContain('admin');
    expect(lastLine()).toMatchObject({ reason: 'scope_not_registered', detail: 'admin' });
    const redirect = await authorize({ scope: `read ${long}` });
    expect(redirect.headers.get('location')).not.toContain('xxx');
    expect(lastLine()).toMatchObject({ reason: 'scope_not_registered', detail: long.slice(0, 120) });
  });

  it('of a refresh names the first scope that was not granted, though the client may have it', async () => {
    const code = await grantry.issueCode('shop.web', { scope: ['read'] });
    const redeemed = await grantry.post(
      '/token',
      {
        grant_type: 'authorization_code',
        code,
        redirect_uri: 'https://app.example/cb',
        code_verifier: PKCE.verifier,
      },
      { headers },
    );
    const { refresh_token } = await readJson(redeemed);
    await grantry.post('/token', { grant_type: 'refresh_token', refresh_token, scope: 'read write' }, { headers });
    expect(lastLine()).toMatchObject({ reason: 'scope_exceeded', detail: 'write' });
  });
});
