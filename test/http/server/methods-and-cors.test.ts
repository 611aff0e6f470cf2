// Methods, HEAD, OPTIONS and CORS of every route (docs/scope.md: 6749-10, 9110-1, U5).

import { beforeAll, describe, expect, it } from 'vitest';
import { basic, type Grantry, startGrantry } from '../../grantry.ts';
import { aResource } from '../../oauth/a-resource.ts';
import { rawAnswer, requestText } from './raw-socket.ts';

const ORIGIN = 'https://spa.example';
const SPA = { clientId: 'team.spa', allowedCorsOrigins: [ORIGIN] };
const FORM_ENDPOINTS = ['/token', '/revoke', '/introspect'];
const DOCUMENTS = [
  '/.well-known/jwks.json',
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
  '/resources/shop/notes',
];
const PAGES = ['/authorize', '/login', '/consent/abc', '/authorize/resume/abc'];

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({
    clients: [SPA, { clientId: 'team.web', secret: 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p' }],
    resources: [aResource()],
  });
});

function ask(path: string, init: RequestInit): Promise<Response> {
  return fetch(grantry.url(path), { redirect: 'manual', ...init });
}

describe('methods', () => {
  it.each(FORM_ENDPOINTS)('other than POST are 405 in JSON at %s', async (path) => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
      const response = await ask(path, { method, headers: { accept: 'text/html' } });
      expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'POST']);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      const body = await response.text();
      if (method !== 'HEAD') expect(JSON.parse(body)).toMatchObject({ error: 'invalid_request' });
    }
  });

  it.each(DOCUMENTS)('other than GET and HEAD are 405 at %s', async (path) => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      const response = await ask(path, { method });
      expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'GET, HEAD']);
    }
  });

  it.each(DOCUMENTS)('HEAD at %s has the headers of GET and no body', async (path) => {
    const got = await ask(path, {});
    const head = await ask(path, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
    for (const name of ['content-type', 'content-length', 'cache-control']) {
      expect(head.headers.get(name)).toBe(got.headers.get(name));
    }
  });

  it.each([
    ['/authorize', 'GET', ['POST', 'HEAD', 'PUT', 'OPTIONS', 'DELETE']],
    ['/login', 'GET, POST, HEAD', ['PUT', 'OPTIONS']],
    ['/login/upstream/corp', 'GET, POST, HEAD', ['PUT', 'OPTIONS']],
    ['/logout/confirm', 'GET, POST, HEAD', ['PUT', 'OPTIONS']],
    ['/consent/abc', 'GET, POST', ['HEAD', 'PUT', 'OPTIONS', 'DELETE']],
    ['/authorize/resume/abc', 'GET', ['POST', 'HEAD', 'OPTIONS']],
  ])('at %s are %s; the others are a 405 page', async (path, allow, others) => {
    for (const method of others) {
      const response = await ask(path, { method });
      expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, allow]);
      expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    }
  });

  it.each(['TRACE', 'PROPFIND', 'QUERY', 'SEARCH', 'M-SEARCH', 'LINK'])(
    '%s is 405 where there is something, else 404',
    async (method) => {
      expect((await rawAnswer(grantry.port, requestText(`${method} /token HTTP/1.1`))).status).toBe(405);
      expect((await rawAnswer(grantry.port, requestText(`${method} /nowhere HTTP/1.1`))).status).toBe(404);
    },
  );

  it('are not overridden by any header or parameter', async () => {
    const response = await ask('/token', {
      headers: { 'x-http-method-override': 'POST', 'x-method-override': 'POST' },
    });
    expect(response.status).toBe(405);
  });
});

describe('a path with a parameter of any length', () => {
  it('reaches its handler, and the log', async () => {
    for (const length of [1, 100, 101, 5000]) {
      const response = await ask(`/authorize/resume/${'a'.repeat(length)}`, {});
      expect([length, response.status]).toEqual([length, 400]);
      await response.text();
    }
    expect(
      grantry.logs().filter(({ route, status }) => route === 'resume' && status === 400).length,
    ).toBeGreaterThanOrEqual(4);
  });
});

describe('a path that does not exist', () => {
  it('is 404 in JSON, and a page for a client that asks for one', async () => {
    for (const path of [
      '/favicon.ico',
      '/register',
      '/userinfo/x',
      '/token/x',
      '/consent/',
      '/consent/a/b',
      '/metrics',
      '/readyz',
      '/livez',
    ]) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const response = await ask(path, { method });
        expect([path, method, response.status]).toEqual([path, method, 404]);
        expect(response.headers.get('content-type')).toMatch(/^application\/json/);
        expect(await response.json()).toMatchObject({ error: 'not_found' });
      }
      const page = await ask(path, { headers: { accept: 'text/html,application/xhtml+xml' } });
      expect(page.status).toBe(404);
      expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    }
  });
});

describe('an address without a page, in a browser', () => {
  const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

  it.each([
    ['', '/', '/account'],
    ['', '/login', '/account'],
    ['', '/login/upstream/corp', '/account'],
    ['', '/logout/confirm', '/logout'],
    ['/tenant', '/tenant', '/tenant/account'],
    ['/tenant', '/tenant/', '/tenant/account'],
    ['/tenant', '/tenant/login', '/tenant/account'],
    ['/tenant', '/tenant/logout/confirm', '/tenant/logout'],
  ])('below "%s": GET and HEAD of %s lead to %s, whatever the query', async (base, path, target) => {
    const own = base === '' ? grantry : await startGrantry({ clients: [], issuer: `https://id.example${base}` });
    for (const method of ['GET', 'HEAD']) {
      for (const query of ['', '?next=//evil.example']) {
        const address = `http://127.0.0.1:${own.port}${path}${query}`;
        const answer = await fetch(address, { method, redirect: 'manual', headers: BROWSER });
        expect([method, answer.status, answer.headers.get('location')]).toEqual([method, 302, target]);
        expect(answer.headers.get('cache-control')).toBe('no-store');
        expect(answer.headers.getSetCookie()).toEqual([]);
      }
    }
    const page = await fetch(`http://127.0.0.1:${own.port}${target}`, { headers: BROWSER });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  });

  it('the root, for a client that accepts no page → 404 in JSON, as any unknown path', async () => {
    for (const accept of ['application/json', '*/*']) {
      for (const method of ['GET', 'POST', 'PUT', 'OPTIONS']) {
        const answer = await ask('/', { method, headers: { accept } });
        expect([accept, method, answer.status]).toEqual([accept, method, 404]);
        expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
        expect(await answer.json()).toMatchObject({ error: 'not_found' });
      }
      expect((await ask('/', { method: 'HEAD', headers: { accept } })).status).toBe(404);
    }
  });

  it('the root of the host, where the issuer has a path → 404: it may be another program', async () => {
    const own = await startGrantry({ clients: [], issuer: 'https://id.example/tenant' });
    const answer = await fetch(`http://127.0.0.1:${own.port}/`, { redirect: 'manual', headers: BROWSER });
    expect(answer.status).toBe(404);
  });
});

describe('CORS', () => {
  const headersOf = (response: Response) => ({
    origin: response.headers.get('access-control-allow-origin'),
    exposed: response.headers.get('access-control-expose-headers'),
    vary: response.headers.get('vary'),
  });
  /** With those that a page adds whose requests are traced (W3C Trace Context, Baggage). */
  const ALLOWED = 'Authorization, Content-Type, DPoP, traceparent, tracestate, baggage';
  const exposed = 'WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id';

  it.each(FORM_ENDPOINTS)('at %s answers a registered origin with itself, errors included', async (path) => {
    const answers = [
      await grantry.post(path, { client_id: 'team.spa', token: 'x' }, { headers: { origin: ORIGIN } }),
      await grantry.post(path, { client_id: 'team.nobody' }, { headers: { origin: ORIGIN } }),
      await ask(path, { headers: { origin: ORIGIN } }),
      await ask(path, { method: 'POST', headers: { origin: ORIGIN, 'content-type': 'application/json' }, body: '{}' }),
    ];
    for (const answer of answers) expect(headersOf(answer)).toEqual({ origin: ORIGIN, exposed, vary: 'Origin' });
  });

  it.each(FORM_ENDPOINTS)('at %s gives an unregistered origin nothing', async (path) => {
    for (const origin of [
      'https://evil.example',
      'null',
      `${ORIGIN}.evil.example`,
      ORIGIN.toUpperCase(),
      `${ORIGIN}/`,
      '*',
    ]) {
      const answer = await grantry.post(path, { client_id: 'team.spa', token: 'x' }, { headers: { origin } });
      expect([origin, headersOf(answer)]).toEqual([origin, { origin: null, exposed: null, vary: 'Origin' }]);
    }
  });

  it.each(FORM_ENDPOINTS)('lets a registered origin ask before at %s', async (path) => {
    const preflight = {
      method: 'OPTIONS',
      headers: {
        origin: ORIGIN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,baggage,dpop,traceparent,tracestate',
      },
    };
    const answer = await ask(path, preflight);
    expect(answer.status).toBe(204);
    expect(await answer.text()).toBe('');
    expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(answer.headers.get('access-control-allow-methods')).toBe('POST');
    expect(answer.headers.get('access-control-allow-headers')).toBe(ALLOWED);
    const foreign = await ask(path, {
      ...preflight,
      headers: { ...preflight.headers, origin: 'https://evil.example' },
    });
    expect(foreign.status).toBe(204);
    for (const name of ['origin', 'methods', 'headers']) {
      expect(foreign.headers.get(`access-control-allow-${name}`)).toBeNull();
    }
  });

  it.each(DOCUMENTS)('at %s is open to every origin', async (path) => {
    for (const init of [
      {},
      { headers: { origin: 'https://evil.example' } },
      { method: 'OPTIONS', headers: { origin: 'null' } },
    ]) {
      const answer = await ask(path, init);
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    }
    const preflight = await ask(path, { method: 'OPTIONS' });
    expect(preflight.headers.get('access-control-allow-methods')).toBe('GET');
    expect(preflight.headers.get('access-control-allow-headers')).toBe(ALLOWED);
  });

  it('follows the registry without a restart', async () => {
    const origin = 'https://new.example';
    const own = await startGrantry({ clients: [SPA] });
    own.setClients([{ ...SPA, allowedCorsOrigins: [origin] }]);
    const answers = await Promise.all(
      [origin, ORIGIN].map((from) =>
        own.post('/revoke', { client_id: 'team.spa', token: 'x' }, { headers: { origin: from } }),
      ),
    );
    expect(answers.map((answer) => answer.headers.get('access-control-allow-origin'))).toEqual([origin, null]);
  });

  it.each(PAGES)('does not exist at %s', async (path) => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const headers = { origin: ORIGIN, 'access-control-request-method': method };
      const answer = await ask(path, { method, headers });
      for (const [name] of answer.headers) expect(name).not.toMatch(/^access-control-/);
    }
  });
});

describe('an answer to a registered origin', () => {
  it('never allows credentials, also when they are sent', async () => {
    const authorization = basic('team.web', 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p');
    const headers = { origin: ORIGIN, cookie: 'grantry-session=aaaaaaaaaaaaaaaa', authorization };
    const answer = await grantry.post('/token', { grant_type: 'client_credentials' }, { headers });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    expect(answer.headers.get('set-cookie')).toBeNull();
  });
});
