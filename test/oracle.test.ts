// The oracle itself, tried with answers that are each wrong in one way: a check that cannot fail checks nothing.

import { describe, expect, it } from 'vitest';
import { Oracle } from './oracle.ts';
import type { WireResponse } from './wire-tap.ts';

interface Change {
  readonly status?: number;
  readonly target?: string;
  readonly body?: string;
  /** Undefined takes a header away. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

const COMMON = {
  'x-request-id': 'replica0-1a',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};
const JSON_HEADERS = { ...COMMON, 'content-type': 'application/json; charset=utf-8' };
const PAGE_HEADERS = {
  ...COMMON,
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
};

function response(
  headers: Change['headers'],
  { status = 200, target = '/token', body = '', ...change }: Change,
): WireResponse {
  const pairs = Object.entries({ ...headers, ...change.headers });
  const kept = pairs.flatMap(([name, value]): [string, string[]][] => (value === undefined ? [] : [[name, [value]]]));
  return { method: 'POST', target, status, headers: new Map(kept), body };
}

function faultsOf(answer: WireResponse, issuer = 'http://127.0.0.1:9400'): readonly string[] {
  const oracle = new Oracle(() => issuer);
  oracle.inspect(answer);
  return oracle.takeFaults();
}

const error = (body: object) => ({ status: 400, body: JSON.stringify(body) });

describe('the oracle', () => {
  it.each<[string, WireResponse]>([
    ['a token', response(JSON_HEADERS, { body: '{"access_token":"x"}', headers: { pragma: 'no-cache' } })],
    ['an error', response(JSON_HEADERS, error({ error: 'invalid_request', error_description: 'No.' }))],
    ['a page', response(PAGE_HEADERS, { target: '/authorize', body: '<p>' })],
    ['a redirect', response(COMMON, { status: 302, headers: { location: 'https://app.example/cb?code=x' } })],
    [
      'metadata',
      response(JSON_HEADERS, { target: '/.well-known/jwks.json', headers: { 'cache-control': 'public, max-age=300' } }),
    ],
  ])('has nothing against %s', (_what, answer) => {
    expect(faultsOf(answer)).toEqual([]);
  });

  it('lets one 503 of the token endpoint be without Retry-After for each void code, which has to be', () => {
    const oracle = new Oracle(() => 'http://127.0.0.1:9400');
    const without = { status: 503, body: JSON.stringify({ error: 'temporarily_unavailable' }) };
    const faults = (change: Change) => {
      oracle.inspect(response(JSON_HEADERS, change));
      return oracle.takeFaults().length;
    };
    oracle.expectVoidedCode();
    expect(faults({ ...without, target: '/revoke' })).toBe(1);
    expect(faults(without)).toBe(0);
    expect(faults(without)).toBe(1);
    oracle.expectVoidedCode();
    expect(faults({ ...without, headers: { 'retry-after': '1' } })).toBe(1);
  });

  it.each<[string, WireResponse]>([
    ['without nosniff', response(JSON_HEADERS, { headers: { 'x-content-type-options': undefined } })],
    ['without X-Request-Id', response(JSON_HEADERS, { headers: { 'x-request-id': undefined } })],
    ['without Referrer-Policy', response(JSON_HEADERS, { headers: { 'referrer-policy': undefined } })],
    ['that may be kept', response(JSON_HEADERS, { headers: { 'cache-control': 'public, max-age=300' } })],
    ['with HSTS on http', response(JSON_HEADERS, { headers: { 'strict-transport-security': 'max-age=1' } })],
    ['that names its software', response(JSON_HEADERS, { headers: { server: 'x' } })],
    [
      'with credentials across origins',
      response(JSON_HEADERS, { headers: { 'access-control-allow-credentials': 'true' } }),
    ],
    ['with a token and no Pragma', response(JSON_HEADERS, { body: '{"access_token":"x"}' })],
    ['307', response(COMMON, { status: 307, headers: { location: '/x' } })],
    ['308', response(COMMON, { status: 308, headers: { location: '/x' } })],
    ['a redirect to nowhere', response(COMMON, { status: 302 })],
    ['a page with a Location', response(PAGE_HEADERS, { headers: { location: '/x' } })],
    ['401 without a challenge', response(JSON_HEADERS, { ...error({ error: 'invalid_client' }), status: 401 })],
    ['405 without Allow', response(JSON_HEADERS, { ...error({ error: 'invalid_request' }), status: 405 })],
    [
      '429 without Retry-After',
      response(JSON_HEADERS, { ...error({ error: 'temporarily_unavailable' }), status: 429 }),
    ],
    [
      '503 without Retry-After',
      response(JSON_HEADERS, { ...error({ error: 'temporarily_unavailable' }), status: 503 }),
    ],
    ['a page that may be framed', response(PAGE_HEADERS, { headers: { 'x-frame-options': undefined } })],
    ['a page without a policy', response(PAGE_HEADERS, { headers: { 'content-security-policy': undefined } })],
    [
      'a page with unsafe-inline',
      response(PAGE_HEADERS, {
        headers: { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'; style-src 'unsafe-inline'" },
      }),
    ],
    ['a page with a script', response(PAGE_HEADERS, { body: '<script>' })],
    ['an error with another member', response(JSON_HEADERS, error({ error: 'invalid_request', hint: 'x' }))],
    ['an error without its member', response(JSON_HEADERS, error({ error_description: 'x' }))],
    [
      'an error with a quote in it',
      response(JSON_HEADERS, error({ error: 'invalid_request', error_description: 'a "b"' })),
    ],
    ['an error beyond ASCII', response(JSON_HEADERS, error({ error: 'invalid_request', error_description: 'ä' }))],
    ['a stack', response(JSON_HEADERS, { body: 'Error: x\n    at f (/src/a.ts:1:2)' })],
  ])('finds fault with an answer %s', (_what, answer) => {
    expect(faultsOf(answer)).not.toEqual([]);
  });

  it('misses HSTS with an https issuer', () => {
    expect(faultsOf(response(JSON_HEADERS, {}), 'https://id.example')).not.toEqual([]);
  });

  it('finds the secrets it was given, and those the server made, in headers, pages, logs and metrics', () => {
    const oracle = new Oracle(() => 'http://127.0.0.1');
    oracle.secret('a-secret-of-a-client');
    oracle.inspect(response(JSON_HEADERS, { headers: { 'x-debug': 'a-secret-of-a-client' } }));
    expect(oracle.takeFaults()).toHaveLength(1);
    oracle.inspect(response(JSON_HEADERS, { body: '{"refresh_token":"rt1.made.by.the.server"}' }));
    oracle.inspectText('log line', 'refreshed rt1.made.by.the.server');
    expect(oracle.takeFaults()).toHaveLength(1);
    oracle.inspect(
      response(COMMON, { status: 302, headers: { location: 'https://a.example/cb?code=ac1.made.by.us' } }),
    );
    oracle.inspect(response(PAGE_HEADERS, { body: '<p>ac1.made.by.us' }));
    expect(oracle.takeFaults()).toHaveLength(1);
    oracle.inspect(response(JSON_HEADERS, { body: '{"id_token":"eyJ.made.by.the.server"}' }));
    oracle.inspectText('log line', 'a hint eyJ.made.by.the.server');
    expect(oracle.takeFaults()).toHaveLength(1);
  });

  it('lets a page hold what its form sends again, and no header, log or metric', () => {
    const oracle = new Oracle(() => 'http://127.0.0.1');
    oracle.secretButInPages('a-hint-of-a-client');
    oracle.inspect(response(PAGE_HEADERS, { body: '<input value="a-hint-of-a-client">' }));
    expect(oracle.takeFaults()).toEqual([]);
    oracle.inspect(response(JSON_HEADERS, { headers: { 'x-debug': 'a-hint-of-a-client' } }));
    oracle.inspectText('metric', 'a-hint-of-a-client');
    expect(oracle.takeFaults()).toHaveLength(2);
  });
});
