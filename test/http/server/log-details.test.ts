// What leads from an answer to its log line, and what only that line names.

import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { basic, PKCE, readJson, startGrantry } from '../../grantry.ts';

const ORIGIN = 'https://spa.example';
const SECRET = 'the-secret-of-the-web-application';
const grantry = await startGrantry({
  clients: [
    { clientId: 'shop.web', secret: SECRET, allowedCorsOrigins: [ORIGIN] },
    { clientId: 'shop.bare', defaultScopes: [] },
    { clientId: 'shop.people', scopes: ['read', 'openid'] },
  ],
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

describe('a redirect_uri that is not registered', () => {
  it.each([
    ['another path', 'https://app.example/callback', 'https://app.example/callback'],
    ['a query and a fragment', 'https://app.example/cb?token=abc#code', 'https://app.example/cb'],
    ['user information', 'https://ada:pass@app.example/cb', 'https://app.example/cb'],
    ['user information behind backslashes', 'https:\\\\ada:pass@app.example/cb', 'https://app.example/cb'],
    ['a path parameter', 'https://app.example/cb;jsessionid=abc', 'https://app.example/cb'],
    ['a line break and colours', 'https://app.example/\n\u001b[31mred', 'https://app.example/%0A%1B[31mred'],
    ['half a character', 'https://app.example/\ud800', 'https://app.example/%EF%BF%BD'],
    [
      'a long path',
      `https://app.example/${'ä'.repeat(500)}`,
      `https://app.example/${'%C3%A4'.repeat(16)}%C3%`.slice(0, 120),
    ],
  ])(
    'with %s → its log line shows it, bounded, escaped and without what may be secret',
    async (_, redirectUri, detail) => {
      const answer = await authorize({ redirect_uri: redirectUri });
      expect(answer.status).toBe(400);
      expect(lastLine()).toMatchObject({ reason: 'redirect_uri_mismatch', clientId: 'shop.web', detail });
    },
  );
});

describe('a client id that no client has', () => {
  it.each([
    ['the form of an id', 'shop.wbe', 'shop.wbe'],
    [
      'a long id of a team',
      'payments-production-settlement.reconciliation-worker',
      'payments-production-settlement.reconciliation-worker',
    ],
    ['no form of an id', 'shop web\n', undefined],
    [
      'the form of a secret in hexadecimal',
      '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      undefined,
    ],
    ['the form of one that begins with a letter', 'deadbeefdeadbeefdeadbeefdeadbee1', undefined],
    ['the form of a UUID', 'f47ac10b-58cc-4372-a567-0e02b2c3d479', undefined],
    ['the form of a secret of Entra', 'Abc8Q~q3JxZ0c1bVdhS2p4dGx1bXhwT0h3cVpyYm5', undefined],
    ['the form of a client secret', 'q3JxZ0c1bVdhS2p4dGx1bXhwT0h3cVpyYm5uQ2dXZks', undefined],
    ['the form of a refresh token', `rt1.007.${'aB3_-'.repeat(5)}xY.0.${'aB3_-'.repeat(8)}xYz`, undefined],
  ])('with %s → the log line of /authorize and /token shows it, and no secret', async (_, clientId, detail) => {
    await authorize({ client_id: clientId });
    expect(lastLine()).toMatchObject({ reason: 'client_unknown' });
    expect(lastLine()?.detail).toBe(detail);
    const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: 'guess' };
    await grantry.post('/token', form);
    expect(lastLine()).toMatchObject({ reason: 'client_unknown' });
    expect(lastLine()?.detail).toBe(detail);
  });
});

describe('error_description', () => {
  const OPENID = { client_id: 'shop.people', scope: 'openid' };
  const redirected = async (changes: Readonly<Record<string, string>>) => {
    const location = (await authorize({ scope: 'read', ...changes })).headers.get('location') ?? '';
    return new URL(location).searchParams.get('error_description');
  };

  it.each([
    ['response_type', { response_type: '' }],
    ['response_type', { response_type: 'token' }],
    ['response_mode', { response_mode: 'form_post' }],
    ['code_challenge', { code_challenge: '' }],
    ['code_challenge', { code_challenge: 'short' }],
    ['code_challenge_method', { code_challenge_method: '' }],
    ['scope', { client_id: 'shop.bare', scope: '' }],
    ['scope', { scope: 'read  write' }],
    ['scope', { scope: 'admin' }],
    ['resource', { resource: 'https://other.example' }],
    ['resource', { resource: 'no address' }],
    ['dpop_jkt', { dpop_jkt: 'x' }],
    ['request', { request: 'x' }],
    ['request_uri', { request_uri: 'x' }],
    ['registration', { registration: 'x' }],
    ['max_age', { ...OPENID, max_age: 'x' }],
    ['prompt', { ...OPENID, prompt: 'none login' }],
    ['id_token_hint', { ...OPENID, id_token_hint: 'x' }],
  ])('of a faulty %s in an authorization request → names it first', async (name, changes) => {
    expect((await redirected(changes))?.split(' ', 1)).toEqual([name]);
  });

  it.each([
    ['grant_type', {}],
    ['grant_type', { grant_type: 'password' }],
    ['code', { grant_type: 'authorization_code' }],
    ['refresh_token', { grant_type: 'refresh_token' }],
    ['scope', { grant_type: 'client_credentials', scope: 'admin' }],
    ['resource', { grant_type: 'client_credentials', resource: 'https://other.example' }],
    ['client_id', { grant_type: 'client_credentials', client_id: 'shop.other' }],
  ])('of a faulty %s in a token request → names it first', async (name, form) => {
    const answer = await grantry.post('/token', form, { headers });
    const { error_description: text } = (await answer.json()) as { error_description: string };
    expect(text.split(' ', 1)).toEqual([name]);
  });

  it('of a repeated parameter → names the one that is repeated', async () => {
    const form = new URLSearchParams('grant_type=client_credentials&scope=read&scope=read');
    const answer = await fetch(grantry.url('/token'), { method: 'POST', body: form, headers });
    expect(await answer.json()).toMatchObject({ error_description: 'scope is included more than once.' });
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
