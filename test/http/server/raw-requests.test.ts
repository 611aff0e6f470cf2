// What no HTTP library sends, over raw sockets: targets, headers, bodies and connections that are nearly right
// (RFC 9112 §3.2; docs/scope.md: S4, S5, I3).

import { beforeAll, describe, expect, it } from 'vitest';
import { basic, type Grantry, startGrantry } from '../../grantry.ts';
import { answersIn, exchangeBytes, rawAnswer, requestText } from './raw-socket.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const FORM = 'Content-Type: application/x-www-form-urlencoded';
const AUTHORIZATION = `Authorization: ${basic('team.machine', SECRET)}`;
const GRANT = 'grant_type=client_credentials';
const JWKS = '/.well-known/jwks.json';

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({
    clients: [{ clientId: 'team.machine', secret: SECRET }],
    timeouts: { headers: 400, request: 800, check: 50 },
  });
});

function token(headers: readonly string[] = [FORM, AUTHORIZATION], body = GRANT, line = 'POST /token HTTP/1.1') {
  return rawAnswer(grantry.port, requestText(line, headers, body));
}

describe('the target of a request', () => {
  it('is served when it is exact', async () => {
    expect((await token()).status).toBe(200);
  });

  it.each([
    '//token',
    '/token/',
    '/token//',
    '/%74oken',
    '/toke%6E',
    '/Token',
    '/TOKEN',
    '/./token',
    '/x/../token',
    '/%2e%2e/token',
    '/token%00',
    '/token%20',
    '/token;x=1',
    '/token#x',
    '/token?a#x',
    '/\\token',
    '/token\\',
    '/%2Ftoken',
    '/%ZZ',
    '/%',
    '/token%',
    '/%c0%ae/token',
    '/%252e/token',
    '*',
    'http://',
    'http:///token',
    'ftp://127.0.0.1/token',
    'https://127.0.0.1%2ftoken',
    '/.nowhere',
  ])('POST %s is 404', async (target) => {
    const answer = await token([FORM, AUTHORIZATION], GRANT, `POST ${target} HTTP/1.1`);
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'not_found' });
  });

  it.each(['token', '?grant_type=client_credentials'])('POST %s is 400: no target at all', async (target) => {
    expect((await token([FORM, AUTHORIZATION], GRANT, `POST ${target} HTTP/1.1`)).status).toBe(400);
  });

  it.each(['http://127.0.0.1/token', 'http://evil.example/token', 'HTTPS://user@evil.example:99999/token'])(
    'in absolute form (%s) is routed by its path, its authority ignored',
    async (target) => {
      expect((await token([FORM, AUTHORIZATION], GRANT, `POST ${target} HTTP/1.1`)).status).toBe(200);
    },
  );

  it('in absolute form does not reach another path through its authority', async () => {
    const target = `http://evil.example${JWKS}`;
    expect((await token([FORM], GRANT, `POST ${target} HTTP/1.1`)).status).toBe(405);
  });

  it('never changes what the metadata says', async () => {
    const path = '/.well-known/oauth-authorization-server';
    const expected = await (await fetch(grantry.url(path))).text();
    for (const request of [
      requestText(`GET http://evil.example${path} HTTP/1.1`, ['Host: evil.example']),
      requestText(`GET ${path} HTTP/1.1`, ['Host: evil.example:99']),
      requestText(`GET ${path} HTTP/1.1`, ['Host: ', 'X-Forwarded-Host: evil.example', 'X-Forwarded-Proto: https']),
      requestText(`GET ${path} HTTP/1.1`, ['Host: EVIL', 'Forwarded: host=evil.example;proto=https']),
      requestText(`GET ${path} HTTP/1.1`, ['X-Original-URL: /metrics', 'X-Rewrite-URL: /metrics']),
    ]) {
      const answer = await rawAnswer(grantry.port, request);
      expect(answer.status).toBe(200);
      expect(answer.body).toBe(expected);
    }
  });

  it('longer than the headers may be is 431', async () => {
    const answer = await rawAnswer(grantry.port, requestText(`GET /${'a'.repeat(20_000)} HTTP/1.1`));
    expect(answer.status).toBe(431);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
  });
});

describe('the headers of a request', () => {
  it.each([
    ['Authorization', [FORM, AUTHORIZATION, AUTHORIZATION]],
    ['Authorization in another case', [FORM, AUTHORIZATION, AUTHORIZATION.replace('Authorization', 'AUTHORIZATION')]],
    ['Host', [FORM, AUTHORIZATION, 'Host: a', 'Host: a']],
    ['Content-Type', [FORM, FORM, AUTHORIZATION]],
    ['Content-Length', [FORM, AUTHORIZATION, `Content-Length: ${GRANT.length}`, `Content-Length: ${GRANT.length}`]],
    ['Origin', [FORM, AUTHORIZATION, 'Origin: https://a.example', 'Origin: https://b.example']],
  ])('with two of %s are 400', async (_name, headers) => {
    const answer = await token(headers);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
  });

  it('that are ambiguous end the connection: where the next request begins is doubtful', async () => {
    const ambiguous = `GET ${JWKS} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`;
    const next = `GET ${JWKS} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const answers = answersIn(await exchangeBytes(grantry.port, ambiguous + next));
    expect(answers.map(({ status, headers }) => [status, headers.connection])).toEqual([[400, 'close']]);
  });

  it.each(['a b', 'a/<>', 'EVIL"<>', 'user@a', 'a:b', 'a:1:2', '[::1', '[g]', 'a%zz', 'a?b', 'a#b', '\xe9'])(
    'with the Host %s are 400',
    async (host) => {
      const answer = await token([FORM, AUTHORIZATION, `Host: ${host}`]);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
    },
  );

  it.each(['', 'a', 'A.example:8080', '[2001:db8::1]:443', 'a:', 'a%20b', 'a_b'])(
    'with the Host %s are served',
    async (host) => {
      expect((await token([FORM, AUTHORIZATION, `Host: ${host}`])).status).toBe(200);
    },
  );

  it.each(['HTTP/2.0', 'HTTP/0.9'])('after %s in the request line are 400', async (version) => {
    expect((await token([FORM, AUTHORIZATION], GRANT, `POST /token ${version}`)).status).toBe(400);
  });

  it('without a Host are 400 in HTTP/1.1, and fine in HTTP/1.0', async () => {
    const lines = `${FORM}\r\n${AUTHORIZATION}\r\nContent-Length: ${GRANT.length}\r\nConnection: close\r\n\r\n${GRANT}`;
    expect((await rawAnswer(grantry.port, `POST /token HTTP/1.1\r\n${lines}`)).status).toBe(400);
    expect((await rawAnswer(grantry.port, `POST /token HTTP/1.0\r\n${lines}`)).status).toBe(200);
  });

  it.each([
    ['a folded line', `X-Folded: a\r\n b`],
    ['a space before the colon', 'X-Space : a'],
    ['no colon', 'NoColonHere'],
    ['a NUL', 'X-Nul: a\0b'],
    ['a bare carriage return', 'X-Cr: a\rb'],
    ['an empty name', ': a'],
    ['a control character in a name', 'X\x01Y: a'],
  ])('with %s are 400', async (_what, header) => {
    const answer = await token([FORM, AUTHORIZATION, header]);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
  });

  it('that are huge are 431, one or many', async () => {
    expect((await token([FORM, AUTHORIZATION, `X-Huge: ${'a'.repeat(20_000)}`])).status).toBe(431);
    const many = Array.from({ length: 3000 }, (_, index) => `X-${index}: a`);
    expect((await token([FORM, AUTHORIZATION, ...many])).status).toBe(431);
  });

  it('in great number hide no second Authorization', async () => {
    const many = Array.from({ length: 1500 }, () => 'X: a');
    expect((await token([FORM, AUTHORIZATION, ...many, AUTHORIZATION])).status).toBe(400);
  });
});

describe('the media type of a form', () => {
  it.each([
    'application/x-www-form-urlencoded',
    'APPLICATION/X-WWW-FORM-URLENCODED',
    'application/x-www-form-urlencoded;charset=UTF-8',
    'application/x-www-form-urlencoded; charset=utf-8',
    'application/x-www-form-urlencoded;  Charset="utf-8"',
    '  application/x-www-form-urlencoded\t',
    'application/x-www-form-urlencoded;',
  ])('may be %j', async (type) => {
    expect((await token([`Content-Type: ${type}`, AUTHORIZATION])).status).toBe(200);
  });

  it.each([
    ';application/x-www-form-urlencoded',
    '; charset=utf-8',
    'application/x-www-form-urlencoded; charset=iso-8859-1',
    'application/x-www-form-urlencoded; charset=utf-16',
    'application/x-www-form-urlencoded; charset=utf-8; boundary=x',
    'application/x-www-form-urlencoded, application/json',
    'application/x-www-form-urlencoded\tx',
    'application/x-www-form-urlencodedx',
    'application/json',
    'application/json; application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain',
    '*/*',
    'x',
    '',
  ])('may not be %j: 415', async (type) => {
    const answer = await token([`Content-Type: ${type}`, AUTHORIZATION]);
    expect(answer.status).toBe(415);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
  });

  it('may not be absent, nor the body encoded', async () => {
    expect((await token([AUTHORIZATION])).status).toBe(415);
    expect((await token([FORM, AUTHORIZATION, 'Content-Encoding: gzip'])).status).toBe(415);
    expect((await token([FORM, AUTHORIZATION, 'Content-Encoding: identity'])).status).toBe(200);
  });

  it('is checked before the body is read, and before a client is authenticated', async () => {
    const head = requestText('POST /token HTTP/1.1', ['Content-Type: application/json', 'Content-Length: 10']);
    expect((await rawAnswer(grantry.port, head)).status).toBe(415);
  });
});

describe('the body of a form', () => {
  const body = (text: string) => token([FORM, AUTHORIZATION], text);

  it.each([
    ['a cut percent sequence', `${GRANT}&x=%4`],
    ['a percent sequence that is none', `${GRANT}&x=%zz`],
    ['a lone percent sign', `${GRANT}&%`],
    ['overlong UTF-8', `${GRANT}&x=%c0%af`],
    ['half a character', `${GRANT}&x=%e2%82`],
    ['a surrogate', `${GRANT}&x=%ed%a0%80`],
    ['raw bytes that are no UTF-8', `${GRANT}&x=\xff`],
    ['a character half raw, half escaped', `${GRANT}&x=\xc3%a9`],
    ['an escaped NUL', `${GRANT}%00`],
    ['a raw NUL', `${GRANT}\0`],
    ['a NUL in a name', `${GRANT}&a%00b=1`],
    ['a byte order mark', `\xef\xbb\xbf${GRANT}`],
    ['an escaped byte order mark', `%EF%BB%BF${GRANT}`],
    ['101 parameters', `${GRANT}${'&x=1'.repeat(100)}`],
  ])('with %s is invalid_request', async (_what, text) => {
    const answer = await body(text);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
  });

  it.each([
    ['100 parameters', `${GRANT}${'&x=1'.repeat(99)}`],
    ['names of object members', `${GRANT}&__proto__=1&constructor=2&hasOwnProperty=3&__proto__=4`],
    ['array notations of other parsers', `${GRANT}&scope[]=write&scope[0]=write&a.b=1`],
    ['empty pieces', `&&${GRANT}&&`],
    ['raw UTF-8', `${GRANT}&x=\xc3\xa9`],
    ['an unknown value of 32 KiB', `${GRANT}&x=${'a'.repeat(32 * 1024)}`],
    ['exactly 64 KiB', `${GRANT}&x=${'a'.repeat(64 * 1024 - GRANT.length - 3)}`],
  ])('with %s is fine', async (_what, text) => {
    expect((await body(text)).status).toBe(200);
  });

  it('above 64 KiB is 413 before a byte of it is read', async () => {
    const head = requestText('POST /token HTTP/1.1', [FORM, AUTHORIZATION, `Content-Length: ${64 * 1024 + 1}`]);
    const answer = await rawAnswer(grantry.port, head);
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
  });

  it('above 64 KiB in chunks is 413 as soon as it is too much', async () => {
    const chunk = `4000\r\n${'a'.repeat(0x4000)}\r\n`;
    const request = requestText('POST /token HTTP/1.1', [FORM, AUTHORIZATION, 'Transfer-Encoding: chunked']);
    expect((await rawAnswer(grantry.port, [request, chunk.repeat(5)])).status).toBe(413);
  });

  it('in chunks is read like any other', async () => {
    const chunks = `5\r\ngrant\r\n18\r\n_type=client_credentials\r\n0\r\n\r\n`;
    const request = requestText('POST /token HTTP/1.1', [FORM, AUTHORIZATION, 'Transfer-Encoding: chunked']);
    expect((await rawAnswer(grantry.port, [request, chunks])).status).toBe(200);
  });

  it('is asked for only when it may be sent', async () => {
    const expecting = (length: number) =>
      requestText('POST /token HTTP/1.1', [FORM, AUTHORIZATION, `Content-Length: ${length}`, 'Expect: 100-continue']);
    const small = await exchangeBytes(grantry.port, [expecting(GRANT.length), GRANT]);
    expect(small).toMatch(/^HTTP\/1\.1 100 /);
    expect(answersIn(small).map(({ status }) => status)).toEqual([200]);
    const large = await exchangeBytes(grantry.port, expecting(10_000_000));
    expect(large).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('comes with any other expectation too', async () => {
    expect((await token([FORM, AUTHORIZATION, 'Expect: the-unexpected'])).status).toBe(200);
  });
});

describe('a second request in the first one', () => {
  const smuggled = 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n';

  it('is not found by a length beside chunks', async () => {
    const both = [FORM, AUTHORIZATION, 'Transfer-Encoding: chunked', `Content-Length: ${smuggled.length + 5}`];
    const answer = await rawAnswer(grantry.port, [requestText('POST /token HTTP/1.1', both), `0\r\n\r\n${smuggled}`]);
    expect(answer.status).toBe(400);
  });

  it.each([
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding : chunked',
    'Transfer-Encoding:\x0bchunked',
  ])('is not found by an odd %j', async (header) => {
    const request = [requestText('POST /token HTTP/1.1', [FORM, AUTHORIZATION, header]), `0\r\n\r\n${smuggled}`];
    const statuses = answersIn(await exchangeBytes(grantry.port, request)).map(({ status }) => status);
    expect(statuses).toEqual([400]);
  });

  it.each(['+29', '-1', '0x1d', '29 ', '2 9', '29,29', '999999999999999999999999', ''])(
    'is not found by the length %j',
    async (length) => {
      const request = requestText('POST /token HTTP/1.1', [FORM, AUTHORIZATION, `Content-Length: ${length}`]);
      const stream = await exchangeBytes(grantry.port, `${request}${GRANT}`, { quietMilliseconds: 1500 });
      for (const { status } of answersIn(stream)) expect([200, 400, 408, 413, 415]).toContain(status);
      expect(answersIn(stream).length).toBeLessThan(2);
    },
  );

  it.each(['5;ext="\n"\r\ngrant\r\n0\r\n\r\n', '5\ngrant\n0\n\n', '-1\r\ng\r\n0\r\n\r\n', '5\r\ngrantX\r\n0\r\n\r\n'])(
    'is not found by the chunk %j',
    async (chunks) => {
      const request = requestText('POST /token HTTP/1.1', [FORM, AUTHORIZATION, 'Transfer-Encoding: chunked']);
      expect((await rawAnswer(grantry.port, [request, chunks])).status).toBe(400);
    },
  );

  it('gets its own answer when it is honest', async () => {
    const first = `POST /token HTTP/1.1\r\nHost: a\r\n${FORM}\r\n${AUTHORIZATION}\r\nContent-Length: ${GRANT.length}\r\n\r\n${GRANT}`;
    const stream = await exchangeBytes(grantry.port, [first, requestText(`GET ${JWKS} HTTP/1.1`)]);
    expect(answersIn(stream).map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe('a connection', () => {
  it.each([
    ['garbage', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['words', 'hello there\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a version that does not exist', 'GET / HTTP/9.9\r\nHost: a\r\n\r\n'],
    ['a method that does not exist', 'STEAL /token HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a lower-case method', 'post /token HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a NUL in the target', 'GET /to\0ken HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('with %s gets 400 with every header, and ends', async (_what, bytes) => {
    const answer = await rawAnswer(grantry.port, bytes);
    expect(answer.status).toBe(400);
    expect(answer.headers).toMatchObject({ connection: 'close', 'x-content-type-options': 'nosniff' });
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
  });

  it.each([
    ['nothing at all', ''],
    ['half a request line', 'POST /tok'],
    ['half its headers', 'POST /token HTTP/1.1\r\nHost: a\r\nAuthori'],
    ['half its body', `POST /token HTTP/1.1\r\nHost: a\r\n${FORM}\r\nContent-Length: 100\r\n\r\n${GRANT}`],
    ['half a chunk', `POST /token HTTP/1.1\r\nHost: a\r\n${FORM}\r\nTransfer-Encoding: chunked\r\n\r\n20\r\ngrant`],
  ])('that has sent %s in time gets 408, and ends', async (_what, bytes) => {
    const answer = await rawAnswer(grantry.port, bytes);
    expect(answer.status).toBe(408);
    expect(answer.headers).toMatchObject({ connection: 'close' });
    expect(JSON.parse(answer.body)).toMatchObject({ error: 'invalid_request' });
  });

  it('that asks for a tunnel or another protocol gets neither', async () => {
    const tunnel = await exchangeBytes(
      grantry.port,
      'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n',
    );
    expect(tunnel).not.toMatch(/^HTTP\/1\.1 [123]/);
    const upgrade = requestText(`GET ${JWKS} HTTP/1.1`, ['Upgrade: websocket', 'Connection: Upgrade']);
    expect((await rawAnswer(grantry.port, upgrade)).status).toBe(200);
  });

  it('that ends in the middle of a request harms no other', async () => {
    await Promise.all(
      Array.from({ length: 20 }, () =>
        exchangeBytes(grantry.port, `POST /token HTTP/1.1\r\nHost: a\r\n${FORM}\r\nContent-Length: 50\r\n\r\nx`, {
          quietMilliseconds: 20,
        }),
      ),
    );
    expect((await token()).status).toBe(200);
  });
});
