// The addresses that a proof may name (RFC 9449 §4.3 check 9).

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
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

  it('has its addresses at each origin, as sent and normalised', () => {
    expect(targetAddresses(['https://a', 'https://b'], '/x')).toEqual(['https://a/x', 'https://b/x']);
    expect(targetAddresses(['https://a'], '/%7e')).toEqual(['https://a/%7e', 'https://a/~']);
  });
});
