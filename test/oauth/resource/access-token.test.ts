// What an API demands of the claims of an access token (RFC 9068 §4; docs/scope.md: 6750-3).

import { describe, expect, it } from 'vitest';
import { headerFault, scopeOf, verifyClaims } from '../../../src/oauth/resource/access-token.ts';
import { parseJwt } from '../../../src/oauth/values/jws.ts';

const NOW = 1_800_000_000;
const EXPECTED = { issuer: 'https://auth.example', audience: 'urn:a', now: NOW * 1000, toleranceSeconds: 5 };
const RIGHT = {
  iss: 'https://auth.example',
  aud: 'urn:a',
  sub: 'usr_1',
  client_id: 'shop.app',
  jti: 'a.b',
  iat: NOW - 10,
  exp: NOW + 600,
};

function faultOf(changes: Record<string, unknown>): string {
  const result = verifyClaims({ ...RIGHT, ...changes }, EXPECTED);
  return typeof result === 'string' ? result : 'passes';
}

describe('claims', () => {
  it('that are right → pass as they are', () => {
    expect(verifyClaims({ ...RIGHT, more: 1 }, EXPECTED)).toEqual({ ...RIGHT, more: 1 });
    expect(faultOf({ aud: ['urn:a'] })).toBe('passes');
  });

  it.each([
    [{ iss: 'https://auth.example/' }, 'issuer_mismatch'],
    [{ iss: undefined }, 'issuer_mismatch'],
    [{ aud: 'urn:b' }, 'audience_mismatch'],
    [{ aud: 'urn:A' }, 'audience_mismatch'],
    [{ aud: ['urn:a', 'urn:b'] }, 'audience_mismatch'],
    [{ aud: [] }, 'audience_mismatch'],
    [{ aud: undefined }, 'audience_mismatch'],
    [{ sub: undefined }, 'claim_missing'],
    [{ sub: '' }, 'claim_missing'],
    [{ client_id: 1 }, 'claim_missing'],
    [{ jti: undefined }, 'claim_missing'],
    [{ exp: undefined }, 'time_malformed'],
    [{ exp: '1900000000' }, 'time_malformed'],
    [{ iat: undefined }, 'time_malformed'],
    [{ nbf: 'x' }, 'time_malformed'],
    [{ exp: NOW - 4 }, 'passes'],
    [{ exp: NOW - 5 }, 'token_expired'],
    [{ iat: NOW + 5 }, 'passes'],
    [{ iat: NOW + 6 }, 'issued_in_future'],
    [{ nbf: NOW + 6 }, 'not_yet_valid'],
  ])('%j → %s', (changes, fault) => {
    expect(faultOf(changes)).toBe(fault);
  });
});

describe('a header', () => {
  const fault = (header: object) => {
    const text = [header, {}].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    const jwt = parseJwt(`${text}.AA`);
    return typeof jwt === 'string' ? jwt : headerFault(jwt);
  };

  it.each(['at+jwt', 'application/at+jwt', 'AT+JWT'])('of type %s → passes', (typ) => {
    expect(fault({ alg: 'ES256', kid: '1', typ })).toBeUndefined();
  });

  it.each([
    [{ alg: 'ES256', kid: '1' }, 'token_type_wrong'],
    [{ alg: 'ES256', kid: '1', typ: 'JWT' }, 'token_type_wrong'],
    [{ alg: 'none', kid: '1', typ: 'at+jwt' }, 'algorithm_not_allowed'],
    [{ alg: 'HS256', kid: '1', typ: 'at+jwt' }, 'algorithm_not_allowed'],
    [{ alg: 'RS512', kid: '1', typ: 'at+jwt' }, 'algorithm_not_allowed'],
    [{ alg: 'ES256', typ: 'at+jwt' }, 'key_id_missing'],
    [{ alg: 'ES256', kid: '', typ: 'at+jwt' }, 'key_id_missing'],
    [{ alg: 'ES256', kid: '1', typ: 'at+jwt', crit: ['exp'] }, 'critical_header'],
  ])('%j → %s', (header, expected) => {
    expect(fault(header)).toBe(expected);
  });
});

it('a scope that is no text is none', () => {
  expect(scopeOf({ scope: 'a  b' })).toEqual(['a', 'b']);
  for (const scope of [undefined, '', 1, ['a']]) expect(scopeOf({ scope })).toEqual([]);
});
