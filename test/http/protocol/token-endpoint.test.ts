// POST /token over HTTP: RFC 6749 §5, the order of its checks, and what each grant answers on the wire.

import { beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { basic, type Grantry, PKCE, readJson, startGrantry } from '../../grantry.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const CALLBACK = 'https://app.example/cb';
const headers = { authorization: basic('team.web', SECRET) };

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({
    clients: [
      { clientId: 'team.web', secret: SECRET },
      { clientId: 'team.other', secret: `${SECRET}-2` },
      { clientId: 'team.batch', secret: SECRET, grantTypes: ['client_credentials'], defaultScopes: [] },
      { clientId: 'team.app' },
    ],
  });
});

type Form = Record<string, string> | readonly (readonly [string, string])[];

async function token(form: Form, init: RequestInit = { headers }) {
  const response = await grantry.post('/token', form, init);
  return { status: response.status, headers: response.headers, body: await readJson(response) };
}

async function redeem(change: Record<string, string | undefined> = {}, init: RequestInit = { headers }) {
  const form = {
    grant_type: 'authorization_code',
    code: await grantry.issueCode('team.web'),
    redirect_uri: CALLBACK,
    code_verifier: PKCE.verifier,
    ...change,
  };
  return token(
    Object.entries(form).filter((pair): pair is [string, string] => pair[1] !== undefined),
    init,
  );
}

describe('a successful answer of the token endpoint', () => {
  it('to client_credentials has a bearer token, its lifetime in seconds and its scope, and no refresh token', async () => {
    const { status, body } = await token({ grant_type: 'client_credentials' });
    expect(status).toBe(200);
    expect(body).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: 600, scope: 'read' });
  });

  it('to a code has a refresh token too', async () => {
    const { status, body } = await redeem();
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 600,
      scope: 'read write',
      refresh_token: expect.any(String),
    });
  });

  it('to a refresh token has the next one, and a narrower scope only for this access token', async () => {
    const { body: first } = await redeem();
    const narrow = await token({ grant_type: 'refresh_token', refresh_token: first.refresh_token, scope: 'read' });
    expect(narrow.body.scope).toBe('read');
    const wide = await token({ grant_type: 'refresh_token', refresh_token: narrow.body.refresh_token });
    expect(wide.body.scope).toBe('read write');
    expect(new Set([first, narrow.body, wide.body].map(({ refresh_token }) => refresh_token)).size).toBe(3);
  });

  it('is JSON that no cache may keep', async () => {
    const answer = await token({ grant_type: 'client_credentials' });
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('pragma')).toBe('no-cache');
  });

  it('is JSON whatever Accept asks for', async () => {
    for (const accept of ['text/html', 'application/xml;q=1, text/html', '*/*;q=0']) {
      const good = await token({ grant_type: 'client_credentials' }, { headers: { ...headers, accept } });
      const bad = await token({ grant_type: 'nonsense' }, { headers: { ...headers, accept } });
      expect([good.status, bad.status]).toEqual([200, 400]);
    }
  });
});

describe('the token endpoint refuses', () => {
  it.each<[string, number, string, Form]>([
    ['no grant_type', 400, 'invalid_request', { scope: 'read' }],
    ['an empty grant_type', 400, 'invalid_request', { grant_type: '' }],
    ['an unknown grant_type', 400, 'unsupported_grant_type', { grant_type: 'magic' }],
    ['password', 400, 'unsupported_grant_type', { grant_type: 'password', username: 'a', password: 'b' }],
    [
      'an assertion as a grant',
      400,
      'unsupported_grant_type',
      { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'a.b.c' },
    ],
    ['implicit', 400, 'unsupported_grant_type', { grant_type: 'implicit' }],
    [
      'a code grant without a code',
      400,
      'invalid_request',
      { grant_type: 'authorization_code', redirect_uri: CALLBACK },
    ],
    ['a refresh without a token', 400, 'invalid_request', { grant_type: 'refresh_token' }],
    ['a refresh token that is none', 400, 'invalid_grant', { grant_type: 'refresh_token', refresh_token: 'garbage' }],
    ['a scope that is not registered', 400, 'invalid_scope', { grant_type: 'client_credentials', scope: 'read admin' }],
    ['a malformed scope', 400, 'invalid_scope', { grant_type: 'client_credentials', scope: 'read  write' }],
    ['a comma for a space', 400, 'invalid_scope', { grant_type: 'client_credentials', scope: 'read,write' }],
    ['a scope in the wrong case', 400, 'invalid_scope', { grant_type: 'client_credentials', scope: 'READ' }],
    ['a foreign resource', 400, 'invalid_target', { grant_type: 'client_credentials', resource: 'https://x.example/' }],
    ['a relative resource', 400, 'invalid_target', { grant_type: 'client_credentials', resource: '/api' }],
    [
      'two resources for one token',
      400,
      'invalid_target',
      [
        ['grant_type', 'client_credentials'],
        ['resource', 'https://a.example/'],
        ['resource', 'https://b.example/'],
      ],
    ],
  ])('%s with %i %s', async (_what, status, error, form) => {
    const answer = await token(form);
    expect([answer.status, answer.body.error]).toEqual([status, error]);
  });

  it('a grant the client is not registered for with unauthorized_client', async () => {
    const init = { headers: { authorization: basic('team.batch', SECRET) } };
    const answer = await token({ grant_type: 'refresh_token', refresh_token: 'garbage' }, init);
    expect([answer.status, answer.body.error]).toEqual([400, 'unauthorized_client']);
  });

  it('a request without scope when the client has no default', async () => {
    const init = { headers: { authorization: basic('team.batch', SECRET) } };
    const answer = await token({ grant_type: 'client_credentials' }, init);
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_scope']);
  });

  it('client_credentials to a public client', async () => {
    const answer = await token({ grant_type: 'client_credentials', client_id: 'team.app' }, {});
    expect([answer.status, answer.body.error]).toEqual([400, 'unauthorized_client']);
  });

  it('a code without its redirect_uri as malformed, with another one as a bad grant', async () => {
    const absent = await redeem({ redirect_uri: undefined });
    expect([absent.status, absent.body.error]).toEqual([400, 'invalid_request']);
    const different = await redeem({ redirect_uri: `${CALLBACK}/` });
    expect([different.status, different.body.error]).toEqual([400, 'invalid_grant']);
  });

  it("another client's code and another client's refresh token, which stay good", async () => {
    const init = { headers: { authorization: basic('team.other', `${SECRET}-2`) } };
    const code = await grantry.issueCode('team.web');
    const stolenCode = await redeem({ code }, init);
    expect([stolenCode.status, stolenCode.body.error]).toEqual([400, 'invalid_grant']);
    const { body } = await redeem({ code });
    const stolen = await token({ grant_type: 'refresh_token', refresh_token: body.refresh_token }, init);
    expect([stolen.status, stolen.body.error]).toEqual([400, 'invalid_grant']);
    expect((await token({ grant_type: 'refresh_token', refresh_token: body.refresh_token })).status).toBe(200);
  });

  it('every parameter it knows when it comes twice, same or different or empty, and uses nothing up', async () => {
    const code = await grantry.issueCode('team.web');
    const form: [string, string][] = [
      ['grant_type', 'authorization_code'],
      ['code', code],
      ['redirect_uri', CALLBACK],
      ['code_verifier', PKCE.verifier],
    ];
    for (const name of ['grant_type', 'code', 'redirect_uri', 'code_verifier', 'scope', 'refresh_token', 'client_id']) {
      const value = form.find(([known]) => known === name)?.[1] ?? 'x';
      const once = form.some(([known]) => known === name) ? form : ([...form, [name, value]] as [string, string][]);
      for (const again of [value, `${value}x`, '']) {
        const answer = await token([...once, [name, again]]);
        expect([name, answer.status, answer.body.error]).toEqual([name, 400, 'invalid_request']);
      }
    }
    expect((await redeem({ code })).status).toBe(200);
  });
});

describe('the token endpoint ignores', () => {
  it('parameters it does not know, also when they come twice', async () => {
    const answer = await token([
      ['grant_type', 'client_credentials'],
      ['foo', '1'],
      ['foo', '2'],
      ['audience', 'x'],
    ]);
    expect(answer.status).toBe(200);
  });

  it('empty values', async () => {
    const answer = await token({ grant_type: 'client_credentials', scope: '', resource: '', code: '' });
    expect([answer.status, answer.body.scope]).toEqual([200, 'read']);
  });

  it('a query that has nothing to do with it', async () => {
    const response = await grantry.post('/token?foo=1', { grant_type: 'client_credentials' }, { headers });
    expect(response.status).toBe(200);
  });
});

describe('the query of the token endpoint', () => {
  it.each([
    ...['grant_type', 'client_id', 'client_secret', 'code', 'redirect_uri', 'code_verifier', 'refresh_token', 'scope'],
    ...['resource', 'client_assertion', 'client_assertion_type', 'access_token', 'token', 'username', 'password'],
  ])('may not hold %s', async (name) => {
    const query = new URLSearchParams({ [name]: 'a-canary-in-a-query' });
    for (const path of ['/token', '/revoke', '/introspect']) {
      const response = await grantry.post(`${path}?${query}`, { grant_type: 'client_credentials' }, { headers });
      expect([path, response.status, (await readJson(response)).error]).toEqual([path, 400, 'invalid_request']);
    }
  });

  it('may hold nothing that is also in the body', async () => {
    const response = await grantry.post('/token?foo=1', { grant_type: 'client_credentials', foo: '1' }, { headers });
    expect([response.status, (await readJson(response)).error]).toEqual([400, 'invalid_request']);
  });

  it('must be decodable', async () => {
    const response = await grantry.post('/token?a=%zz', { grant_type: 'client_credentials' }, { headers });
    expect([response.status, (await readJson(response)).error]).toEqual([400, 'invalid_request']);
  });

  it('is decoded once', async () => {
    const response = await grantry.post('/token?scop%2565=x', { grant_type: 'client_credentials' }, { headers });
    expect(response.status).toBe(200);
    const once = await grantry.post('/token?scop%65=x', { grant_type: 'client_credentials' }, { headers });
    expect(once.status).toBe(400);
  });
});

describe('the order of checks at the token endpoint', () => {
  // Each request has every fault from its own on: the first one decides.
  const wrong = { authorization: basic('team.web', 'wrong'), 'content-type': 'application/json' };

  it('is method, media type, size, parsing, duplicates, client, grant_type, permission, parameters', async () => {
    const form = { ...wrong, 'content-type': 'application/x-www-form-urlencoded' };
    const steps: [number, string, RequestInit][] = [
      [405, 'invalid_request', { method: 'PUT', headers: wrong, body: 'a'.repeat(70_000) }],
      [415, 'invalid_request', { headers: wrong, body: 'a'.repeat(70_000) }],
      [413, 'invalid_request', { headers: form, body: `${'a'.repeat(70_000)}%zz` }],
      [400, 'invalid_request', { headers: form, body: 'grant_type=x&grant_type=x&%zz' }],
      [400, 'invalid_request', { headers: form, body: 'grant_type=x&grant_type=x' }],
      [401, 'invalid_client', { headers: form, body: 'scope=%20' }],
    ];
    for (const [status, error, init] of steps) {
      const response = await fetch(grantry.url('/token'), { method: 'POST', ...init });
      expect([response.status, (await readJson(response)).error]).toEqual([status, error]);
    }
    const authenticated: [string, Record<string, string>][] = [
      ['invalid_request', { scope: ' ' }],
      ['unsupported_grant_type', { grant_type: 'x', scope: ' ' }],
      ['unauthorized_client', { grant_type: 'refresh_token', scope: ' ' }],
      ['invalid_scope', { grant_type: 'client_credentials', scope: ' ' }],
    ];
    for (const [error, fields] of authenticated) {
      const answer = await token(fields, { headers: { authorization: basic('team.batch', SECRET) } });
      expect([answer.status, answer.body.error]).toEqual([400, error]);
    }
  });
});

describe('when the store does not answer', () => {
  /** A grantry whose store of grants takes them and answers nothing else. */
  function withoutGrants(error: StoreUnavailableError) {
    const fail = () => Promise.reject(error);
    return startGrantry({
      clients: [{ clientId: 'team.web', secret: SECRET }],
      wrapStores: (stores) => ({
        ...stores,
        grants: {
          issue: (...issued) => stores.grants.issue(...issued),
          revoke: fail,
          read: fail,
          status: fail,
          subjectOf: fail,
          redeem: fail,
          rotate: fail,
          noteRetryElsewhere: fail,
        },
      }),
    });
  }

  it('what needs it is 503 with Retry-After, and client_credentials go on', async () => {
    const lame = await withoutGrants(new StoreUnavailableError('grants.redeem'));
    const code = await lame.issueCode('team.web');
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    const response = await lame.post('/token', form, { headers });
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    expect((await readJson(response)).error).toBe('temporarily_unavailable');
    expect((await lame.post('/token', { grant_type: 'client_credentials' }, { headers })).status).toBe(200);
  });

  it('a code that was voided on the way is 503 without Retry-After: the person signs in again', async () => {
    const lame = await withoutGrants(new StoreUnavailableError('grants.redeem', undefined, { retriable: false }));
    const code = await lame.issueCode('team.web');
    lame.expectVoidedCode();
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
    const response = await lame.post('/token', form, { headers });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, null]);
    expect((await readJson(response)).error).toBe('temporarily_unavailable');
  });

  it('and when something else breaks the answer is 500 server_error, and says nothing about it', async () => {
    const broken = await startGrantry({
      clients: [{ clientId: 'team.web', secret: SECRET }],
      wrapStores: (stores) => ({
        ...stores,
        grants: { ...stores.grants, redeem: () => Promise.reject(new TypeError('boom at /etc/secret')) },
      }),
    });
    const form = {
      grant_type: 'authorization_code',
      code: 'ac1.000.aaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaa',
    };
    const response = await broken.post(
      '/token',
      { ...form, redirect_uri: CALLBACK, code_verifier: PKCE.verifier },
      { headers },
    );
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(JSON.parse(text).error).toBe('server_error');
    expect(text).not.toMatch(/boom|secret/);
    expect(broken.logs().some(({ cause }) => String(cause).includes('boom'))).toBe(true);
  });
});
