// Unforeseen requests: pieces of good and bad requests, put together and damaged by chance. Whatever comes,
// the server answers in its own words or hangs up, never with 5xx; the oracle checks every answer (security row S7).

import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic, type Grantry, startGrantry } from '../../grantry.ts';
import { answersIn, exchangeBytes } from './raw-socket.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({
    clients: [{ clientId: 'team.machine', secret: SECRET, allowedCorsOrigins: ['https://spa.example'] }],
    timeouts: { headers: 100, request: 150, check: 20 },
  });
});

const method = fc.constantFrom(
  'GET',
  'POST',
  'POST',
  'POST',
  'POST',
  'HEAD',
  'OPTIONS',
  'PUT',
  'DELETE',
  'TRACE',
  'get',
  'X',
);
const path = fc.constantFrom(
  ...['/token', '/token', '/revoke', '/introspect', '/authorize', '/login', '/consent/a', '/authorize/resume/a', '/'],
  ...['/userinfo', '/userinfo', '/userinfo?access_token=x'],
  ...['/.well-known/jwks.json', '/.well-known/oauth-authorization-server', '/token?grant_type=x', '/authorize?%zz'],
  ...[
    '/authorize?client_id=team.machine&redirect_uri=https://app.example/cb&state=%22%5c',
    'http://a/token',
    '//token',
  ],
);
const header = fc.constantFrom(
  ...['Host: a', 'Host: a', 'Content-Type: application/x-www-form-urlencoded', 'Content-Type: text/plain'],
  ...[`Authorization: ${basic('team.machine', SECRET)}`, 'Authorization: Basic é', 'Authorization: Bearer x'],
  ...['Authorization: DPoP x', 'Authorization: Bearer', 'DPoP: a.b.c'],
  ...[
    'Origin: https://spa.example',
    'Origin: null',
    'Cookie: grantry-session=a; grantry-browser=',
    'Accept: text/html',
  ],
  ...['Content-Length: 29', 'Content-Length: 3', 'Transfer-Encoding: chunked', 'Expect: 100-continue', 'Upgrade: h2c'],
  ...['X-Forwarded-For: 1.2.3.4', 'Connection: keep-alive', 'Connection: close', ' folded', 'Bad Header: x'],
);
const body = fc.constantFrom(
  ...['', 'grant_type=client_credentials', 'grant_type=authorization_code&code=ac1.&redirect_uri=&code_verifier='],
  ...[
    'access_token=x',
    'token=%00',
    'a=%',
    'username=a&password=b&csrf=c',
    'decision=allow',
    '0\r\n\r\n',
    '\xef\xbb\xbf',
    'scope="&\\',
  ],
);
/** Mostly none: a damaged request rarely gets past the parser. */
const damage = fc.oneof(
  { weight: 3, arbitrary: fc.constant([] as [number, number][]) },
  { weight: 1, arbitrary: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 2 }) },
);
/** What most requests need to be understood at all. */
const foundation = fc.constantFrom(
  ['Host: a', 'Connection: close'],
  ['Host: a', 'Connection: close', 'Content-Type: application/x-www-form-urlencoded'],
  [
    'Host: a',
    'Connection: close',
    'Content-Type: application/x-www-form-urlencoded',
    `Authorization: ${basic('team.machine', SECRET)}`,
  ],
  [],
);

describe('the server', () => {
  it('answers anything in its own words, or hangs up', { timeout: 60_000 }, async () => {
    const seen = new Set<number>();
    const request = fc.record({ method, path, foundation, headers: fc.array(header, { maxLength: 2 }), body, damage });
    await fc.assert(
      fc.asyncProperty(request, async (pieces) => {
        const length = `Content-Length: ${pieces.body.length}`;
        const lines = [`${pieces.method} ${pieces.path} HTTP/1.1`, ...pieces.foundation, length, ...pieces.headers];
        const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${pieces.body}`, 'latin1');
        for (const [position, value] of pieces.damage) bytes[position % bytes.length] = value;
        const stream = await exchangeBytes(grantry.port, bytes, { quietMilliseconds: 400 });
        for (const { status, headers } of answersIn(stream)) {
          seen.add(status);
          expect(status).toBeGreaterThanOrEqual(200);
          expect(status).toBeLessThan(500);
          expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
        }
        expect(stream).toMatch(/^(HTTP\/1\.1 |$)/);
      }),
      { numRuns: 400 },
    );
    // It got past the parser, and everywhere behind it.
    expect(seen.size).toBeGreaterThanOrEqual(5);
  });
});
