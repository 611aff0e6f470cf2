// Where the token of a request is (docs/scope.md: 6750-2, 6750-5, 6750-6).

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { presentedCredentials, type RequestParts } from '../../../src/oauth/resource/credentials.ts';

const FORM = 'application/x-www-form-urlencoded';

function presented(changes: Partial<RequestParts>) {
  const parts = { method: 'GET', authorization: [], query: '', contentType: undefined, formTokens: undefined };
  return presentedCredentials(Object.assign(parts, changes));
}

function form(formTokens: readonly string[], changes: Partial<RequestParts> = {}) {
  return presented({ method: 'POST', contentType: FORM, formTokens, ...changes });
}

describe('the Authorization header', () => {
  it.each([
    ['Bearer a.b-c_d~e+f/g==', 'Bearer', 'a.b-c_d~e+f/g=='],
    ['bEARER abc', 'Bearer', 'abc'],
    ['Bearer   abc', 'Bearer', 'abc'],
    ['DPoP abc', 'DPoP', 'abc'],
    ['dpop abc', 'DPoP', 'abc'],
  ])('%s → a token', (header, scheme, token) => {
    expect(presented({ authorization: [header] })).toEqual({ token, scheme, transport: 'header' });
  });

  it.each([
    ['Basic YTpi', 'other_scheme'],
    ['Digest username="a", realm="b"', 'other_scheme'],
    ['', 'no_credentials'],
  ])('%j → no credentials', (header, reason) => {
    expect(presented({ authorization: [header] })).toEqual({ code: undefined, reason });
  });

  it.each([
    ['Bearer', 'token_malformed'],
    ['Bearer ', 'authorization_malformed'],
    ['Bearer a b', 'token_malformed'],
    ['Bearer a,b', 'token_malformed'],
    ['Bearer a, Bearer b', 'token_malformed'],
    ['Bearer ä', 'authorization_malformed'],
    ['Bearer a=b', 'token_malformed'],
    ['Bearer ==', 'token_malformed'],
    ['Bearer "a"', 'token_malformed'],
    ['Bearer\ta', 'authorization_malformed'],
    ['"Bearer" a', 'authorization_malformed'],
  ])('%j → invalid_request', (header, reason) => {
    expect(presented({ authorization: [header] })).toMatchObject({ code: 'invalid_request', reason });
  });

  it('twice, also with another scheme → invalid_request', () => {
    for (const second of ['Bearer a', 'Bearer b', 'Basic YTpi']) {
      expect(presented({ authorization: ['Bearer a', second] })).toMatchObject({ reason: 'authorization_repeated' });
    }
  });

  it('of any text → a token of the alphabet that stands there literally, or a refusal', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.stringMatching(/^([Bb]earer|DPoP|dpop) +[!-~]*$/),
    );
    fc.assert(
      fc.property(text, (header) => {
        const result = presented({ authorization: [header] });
        if ('reason' in result) return;
        expect(result.token).toMatch(/^[A-Za-z0-9._~+/-]+=*$/);
        expect(header.endsWith(` ${result.token}`)).toBe(true);
        expect(header.slice(0, result.scheme.length).toLowerCase()).toBe(result.scheme.toLowerCase());
      }),
      { numRuns: 2000 },
    );
  });

  it('of any b64token in any case of the scheme → that token', () => {
    const token = fc.stringMatching(/^[A-Za-z0-9._~+/-]{1,80}={0,2}$/);
    const scheme = fc.mixedCase(fc.constantFrom('bearer', 'dpop'));
    fc.assert(
      fc.property(scheme, token, (name, value) => {
        expect(presented({ authorization: [`${name} ${value}`] })).toMatchObject({ token: value });
      }),
    );
  });
});

describe('the query', () => {
  it.each(['access_token=abc', 'a=b&access_token=', 'access%5Ftoken=abc', '%61ccess_token'])(
    '%s → invalid_request, whatever else is there',
    (query) => {
      const refusal = { code: 'invalid_request', reason: 'token_in_query' };
      expect(presented({ query })).toMatchObject(refusal);
      expect(presented({ query, authorization: ['Bearer abc'] })).toMatchObject(refusal);
    },
  );

  it('without one → has no say', () => {
    expect(presented({ query: 'token=1&x=access_token' })).toEqual({ code: undefined, reason: 'no_credentials' });
  });
});

describe('the form body', () => {
  it('of a POST → a token', () => {
    const expected = { token: 'abc', scheme: 'Bearer', transport: 'form' };
    expect(form(['abc'])).toEqual(expected);
    expect(form(['abc'], { contentType: 'Application/X-WWW-Form-URLencoded; charset=utf-8' })).toEqual(expected);
  });

  it.each([
    { method: 'GET' },
    { method: 'PUT' },
    { contentType: 'application/json' },
    { contentType: undefined },
    { formTokens: undefined },
  ])('where it may hold none (%j) → no credentials', (changes) => {
    expect(form(['abc'], changes)).toEqual({ code: undefined, reason: 'no_credentials' });
  });

  it('twice, malformed, or beside a header of any scheme → invalid_request', () => {
    expect(form(['abc', 'abc'])).toMatchObject({ code: 'invalid_request', reason: 'token_repeated' });
    expect(form(['a b'])).toMatchObject({ code: 'invalid_request', reason: 'token_malformed' });
    for (const header of ['Bearer abc', 'DPoP abc', 'Basic YTpi']) {
      expect(form(['abc'], { authorization: [header] })).toMatchObject({ code: 'invalid_request' });
    }
  });
});
