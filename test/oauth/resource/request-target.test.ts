// The addresses that a proof may name (RFC 9449 §4.3 check 9).

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isTargetUri } from '../../../src/oauth/dpop/target-uri.ts';
import { normalizedPath, readTarget, targetAddresses } from '../../../src/oauth/resource/request-target.ts';

describe('a request target', () => {
  it.each([
    ['/a/b?c=d?e', '/a/b', 'c=d?e'],
    ['/a', '/a', ''],
    ['?c', '/', 'c'],
    ['http://evil.example/a?b', '/a', 'b'],
    ['http://evil.example', '/', ''],
    ['/a#b?c', '/a', ''],
  ])('%s → path %s, query %s', (target, path, query) => {
    expect(readTarget(target)).toEqual({ path, query });
  });
});

describe('a path', () => {
  it.each([
    ['/a/b', '/a/b'],
    ['/%7euser/%2f%c3%a4', '/~user/%2F%C3%A4'],
    ['/a/./b/../c', '/a/c'],
    ['/a/%2e%2e/b', '/b'],
    ['/a/..', '/'],
    ['/a/b/.', '/a/b/'],
    ['/../../a', '/a'],
    ['/a//b', '/a//b'],
  ])('%s → %s', (path, normalized) => {
    expect(normalizedPath(path)).toBe(normalized);
  });

  it('normalised twice → the same as once, and as a URL parser leaves it', () => {
    const path = fc.stringMatching(/^(\/(\.|\.\.|[A-Za-z0-9._~-]|%2[EeFf]|%7[Ee]|%[Cc]3){0,4}){1,6}$/);
    fc.assert(
      fc.property(path, (given) => {
        const once = normalizedPath(given);
        expect(normalizedPath(once)).toBe(once);
        expect(new URL(`https://a.example${once}`).pathname).toBe(once);
      }),
    );
  });

  it('has its address at each origin, normalised', () => {
    expect(targetAddresses(['https://a', 'https://b'], '/%7e')).toEqual(['https://a/~', 'https://b/~']);
  });
});

describe('a proof', () => {
  const ORIGIN = 'https://api.example';
  /** A character of a path as a client may write it: several spellings of one meaning. */
  const character = fc.constantFrom(
    ['a', '%61'],
    ['~', '%7E', '%7e'],
    ['-', '%2D', '%2d'],
    ['%2F', '%2f'],
    ['%C3%A4', '%c3%a4'],
  );
  const spelling = character.chain((spellings) =>
    fc.tuple(fc.constantFrom(...spellings), fc.constantFrom(...spellings)),
  );
  const detour = fc.constantFrom('', '', './', '%2e/', 'x/../', 'x/%2E%2e/');
  const segment = fc.tuple(detour, fc.array(spelling, { minLength: 1, maxLength: 4 }), detour);
  /** Two spellings of one path. */
  const paths = fc.array(segment, { maxLength: 4 }).map((segments) =>
    ([0, 1] as const).map(
      (which) =>
        segments
          .map(([one, characters, other]) => {
            const text = characters.map((spellings) => spellings[which]).join('');
            return `/${which === 0 ? one : other}${text}`;
          })
          .join('') || '/',
    ),
  );
  const names = (htu: string, path: string) =>
    isTargetUri(`${ORIGIN}${htu}`, targetAddresses([ORIGIN], path), normalizedPath);

  it('of another spelling of the path → names the request; of another path → does not', () => {
    fc.assert(
      fc.property(paths, paths, ([one = '', other = ''], [foreign = '']) => {
        expect(names(one, other)).toBe(true);
        expect(names(one, foreign)).toBe(normalizedPath(one) === normalizedPath(foreign));
        expect(names(`${one}b`, other)).toBe(false);
      }),
    );
  });
});
