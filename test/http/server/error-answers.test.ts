// What every error of an endpoint for programs looks like, whichever layer refused (RFC 6749 §5.2; docs/scope.md:
// 6749-1, 6749-12).

import { beforeAll, describe, expect, it } from 'vitest';
import { basic, type Grantry, startGrantry } from '../../grantry.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const AUTHORIZATION = { authorization: basic('team.web', SECRET) };

let grantry: Grantry;
beforeAll(async () => {
  grantry = await startGrantry({ clients: [{ clientId: 'team.web', secret: SECRET }] });
});

const CASES: readonly (readonly [what: string, status: number, error: string, init: RequestInit])[] = [
  ['a bad scope', 400, 'invalid_scope', { body: 'grant_type=client_credentials&scope=admin' }],
  ['a code of no grant', 400, 'invalid_grant', { body: 'grant_type=authorization_code&code=x&redirect_uri=x' }],
  ['a doubled parameter', 400, 'invalid_request', { body: 'grant_type=a&grant_type=a' }],
  ['a bad escape', 400, 'invalid_request', { body: 'grant_type=%zz' }],
  ['no credentials', 401, 'invalid_client', { body: 'grant_type=client_credentials', headers: FORM }],
  ['another method', 405, 'invalid_request', { method: 'PUT' }],
  ['too much', 413, 'invalid_request', { body: `grant_type=${'a'.repeat(70_000)}` }],
  ['another media type', 415, 'invalid_request', { headers: { 'content-type': 'application/json' }, body: '{}' }],
];

describe('an error of the token endpoint', () => {
  it.each(CASES)('for %s is JSON of known members that no cache may keep', async (_what, status, error, init) => {
    const request = { method: 'POST', headers: { ...FORM, ...AUTHORIZATION }, ...init };
    const response = await fetch(grantry.url('/token'), request);
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('pragma')).toBe('no-cache');
    const body = (await response.json()) as Record<string, unknown>;
    expect(body).toEqual({ error, error_description: expect.any(String) });
  });
});
