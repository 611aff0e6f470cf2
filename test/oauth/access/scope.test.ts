import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientAccess } from '../../../src/oauth/access/client-access.ts';
import { formatScope, isSubset, parseScope, resolveScope } from '../../../src/oauth/access/scope.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { aClient } from '../a-client.ts';
import { aResource, declared } from '../a-resource.ts';
import { refusalOf } from '../refusal.ts';

const tokenCharacters = Array.from({ length: 0x7f - 0x21 }, (_, index) => String.fromCharCode(0x21 + index)).filter(
  (character) => character !== '"' && character !== '\\',
);
const aToken = fc.string({ unit: fc.constantFrom(...tokenCharacters), minLength: 1, maxLength: 12 });
const someTokens = fc.array(aToken, { minLength: 1, maxLength: 8 });

describe('the syntax of scope (RFC 6749 §3.3)', () => {
  it.each([
    ['one token', 'read', ['read']],
    ['several tokens in the order sent', 'write read', ['write', 'read']],
    ['a repeated token once', 'read write read', ['read', 'write']],
    ['every allowed punctuation mark', "!#$%&'()*+,-./:;<=>?@[]^_`{|}~", ["!#$%&'()*+,-./:;<=>?@[]^_`{|}~"]],
    ['tokens that differ in case apart', 'Read read', ['Read', 'read']],
    ['a comma as part of a token', 'read,write', ['read,write']],
  ])('reads %s', (_, value, tokens) => {
    expect(parseScope(value)).toEqual(tokens);
  });

  it.each([
    ['nothing', ''],
    ['a single space', ' '],
    ['a leading space', ' read'],
    ['a trailing space', 'read '],
    ['two spaces in a row', 'read  write'],
    ['a tab', 'read\twrite'],
    ['a line break', 'read\nwrite'],
    ['a trailing line break', 'read\n'],
    ['a double quote', 'rea"d'],
    ['a backslash', 'rea\\d'],
    ['DEL', 'read\x7f'],
    ['NUL', 'read\0'],
    ['a no-break space', 'read\u00a0write'],
    ['a letter outside ASCII', 'lés'],
  ])('refuses %s', (_, value) => {
    expect(parseScope(value)).toBeUndefined();
  });

  it('reads back whatever it wrote, each token once', () => {
    fc.assert(
      fc.property(someTokens, (tokens) => {
        const distinct = [...new Set(tokens)];
        expect(parseScope(formatScope(tokens))).toEqual(distinct);
        expect(parseScope(formatScope(distinct))).toEqual(distinct);
      }),
    );
  });

  it('accepts no text with a character outside the syntax', () => {
    const strange = fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }).filter((text) => {
      return [...text].some((character) => character !== ' ' && !tokenCharacters.includes(character));
    });
    fc.assert(
      fc.property(fc.string(), strange, fc.string(), (before, bad, after) => {
        expect(parseScope(before + bad + after)).toBeUndefined();
      }),
    );
  });
});

describe('the subset of scopes', () => {
  it('holds for every selection of a scope, in any order and with repeats', () => {
    const selection = someTokens.chain((whole) => fc.tuple(fc.array(fc.constantFrom(...whole)), fc.constant(whole)));
    fc.assert(
      fc.property(selection, ([part, whole]) => {
        expect(isSubset(part, whole)).toBe(true);
      }),
    );
  });

  it('fails as soon as one token is foreign', () => {
    fc.assert(
      fc.property(someTokens, aToken, fc.nat(), (whole, foreign, place) => {
        fc.pre(!whole.includes(foreign));
        expect(isSubset(whole.toSpliced(place % (whole.length + 1), 0, foreign), whole)).toBe(false);
      }),
    );
  });

  it('is transitive', () => {
    const small = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 4 });
    fc.assert(
      fc.property(small, small, small, (first, second, third) => {
        fc.pre(isSubset(first, second) && isSubset(second, third));
        expect(isSubset(first, third)).toBe(true);
      }),
    );
  });

  it('is case-sensitive', () => {
    expect(isSubset(['READ'], ['read'])).toBe(false);
  });
});

describe('the scope a request means', () => {
  const A = 'https://a.example/api';
  const B = 'https://b.example/api';
  const resources = new Resources([
    aResource({ name: 'a', identifier: A, scopes: declared('a.read', 'a.write', 'shared') }),
    aResource({ name: 'b', identifier: B, scopes: declared('b.read', 'shared') }),
  ]);
  const access = (client: Parameters<typeof aClient>[0]) => clientAccess(aClient(client), { resources });
  const manifest = { audiences: ['https://m.example/'], scopes: ['a', 'b', 'c'], defaultScopes: ['b', 'a'] };
  const at = (client: Parameters<typeof aClient>[0], ...audiences: string[]) => ({ access: access(client), audiences });
  const plain = at(manifest, 'https://m.example/');
  const referring = {
    audiences: [],
    scopes: [],
    resources: [
      { namespace: undefined, name: 'a', scopes: undefined },
      { namespace: undefined, name: 'b', scopes: undefined },
    ],
    defaultScopes: ['b.read', 'shared', 'a.read'],
  };

  it.each([
    ['what was asked, each token once', 'c a c', plain, ['c', 'a']],
    ['the default scope when none is asked', undefined, plain, ['b', 'a']],
    ['the default scopes that the resource has', undefined, at(referring, A), ['shared', 'a.read']],
    [
      'the default scopes of all resources that are asked for',
      undefined,
      at(referring, B, A),
      ['b.read', 'shared', 'a.read'],
    ],
    ['scopes of several resources', 'b.read a.write', at(referring, A, B), ['b.read', 'a.write']],
  ])('is %s', (_, requested, { access, audiences }, scope) => {
    expect(resolveScope(requested, audiences, access)).toEqual(scope);
  });

  it.each([
    ['a scope that is not registered', 'a x', plain, 'scope_not_registered'],
    ['a registered scope in other case', 'A', plain, 'scope_not_registered'],
    ['a malformed scope', 'a  b', plain, 'scope_malformed'],
    [
      'no scope where the client has no defaults',
      undefined,
      at({ ...manifest, defaultScopes: [] }, 'https://m.example/'),
      'scope_missing',
    ],
    [
      'no scope where the resource has none of the defaults',
      undefined,
      at({ ...referring, defaultScopes: ['b.read'] }, A),
      'scope_missing',
    ],
    ['a scope of another resource', 'a.read b.read', at(referring, A), 'scope_not_of_resource'],
    ['a scope that no resource has', 'a.read c.read', at(referring, A), 'scope_not_registered'],
  ])('is refused for %s', (_, requested, { access, audiences }, reason) => {
    expect(refusalOf(() => resolveScope(requested, audiences, access))).toEqual({ code: 'invalid_scope', reason });
  });

  it('never holds a token that is not registered, nor one that none of the resources has', () => {
    const referrer = access({ ...manifest, ...referring, audiences: manifest.audiences, scopes: manifest.scopes });
    const known = fc.constantFrom(...referrer.scopes);
    const some = fc.subarray([A, B, 'https://m.example/'], { minLength: 1 });
    fc.assert(
      fc.property(fc.array(fc.oneof(known, known, aToken), { minLength: 1 }), some, (tokens, audiences) => {
        const here = audiences.flatMap((audience) => referrer.scopesAt(audience));
        const resolve = () => resolveScope(tokens.join(' '), audiences, referrer);
        if (isSubset(tokens, here)) expect(isSubset(resolve(), here)).toBe(true);
        else expect(refusalOf(resolve).code).toBe('invalid_scope');
      }),
    );
  });
});
