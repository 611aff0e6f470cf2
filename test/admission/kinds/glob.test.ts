import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expandNamespace, globMatches, SEGMENT_ENDS } from '../../../src/admission/kinds/glob.ts';

const { host, path } = SEGMENT_ENDS;

describe('a glob', () => {
  it.each([
    ['team/*', 'team/read', path, true],
    ['team/*', 'team/', path, true],
    ['team/*', 'team/admin/read', path, false],
    ['team/*', 'team', path, false],
    ['team/*', 'other/read', path, false],
    ['team/**', 'team/admin/read', path, true],
    ['urn:x:*', 'urn:x:a', path, true],
    ['urn:x:*', 'urn:x:a:b', path, false],
    ['urn:x:*:read', 'urn:x:a:read', path, true],
    ['urn:x:**:read', 'urn:x:a:b:read', path, true],
    ['com.example.*', 'com.example.notes.app', path, true],
    ['*.example.com', 'app.example.com', host, true],
    ['*.example.com', 'a.b.example.com', host, false],
    ['*.example.com', 'example.com', host, false],
    ['**.example.com', 'a.b.example.com', host, true],
    ['*.example.com', 'app.example.com.evil.test', host, false],
    ['https://*.example.com', 'https://app.example.com', host, true],
    ['https://*.example.com', 'https://app.example.com:8443', host, false],
    ['https://*', 'https://localhost:3000', host, false],
    ['a*c*e', 'abcde', path, true],
    ['a*c*e', 'abcd', path, false],
    ['**', '', path, true],
    ['', '', path, true],
    ['', 'x', path, false],
    ['a.c', 'abc', host, false],
    ['[a-z]?', 'b1', path, false],
    ['Team/*', 'team/read', path, false],
  ] as const)('%s on %s is %s %s', (pattern, value, ends, expected) => {
    expect(globMatches(pattern, value, ends)).toBe(expected);
  });

  const word = fc.string({ unit: fc.constantFrom('a', 'b', '/', ':', '.'), maxLength: 12 });
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*', '.'), maxLength: 10 });

  it('means what the regular expression of the same shape means', () => {
    fc.assert(
      fc.property(pattern, word, (glob, value) => {
        const source = glob.replace(/\*+|[^*]/g, (token) => {
          if (token === '*') return '[^/:]*';
          return token.startsWith('*') ? '[^]*' : `[${token}]`;
        });
        expect(globMatches(glob, value, path)).toBe(new RegExp(`^${source}$`).test(value));
      }),
      { numRuns: 1000 },
    );
  });

  it('without a star matches itself alone', () => {
    fc.assert(
      fc.property(word, word, (glob, value) => {
        expect(globMatches(glob, value, path)).toBe(glob === value);
      }),
    );
  });

  it('of two stars around a value matches everything that holds it', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.string(),
        fc.string().filter((text) => !text.includes('*')),
        (before, after, middle) => {
          expect(globMatches(`**${middle}**`, before + middle + after, path)).toBe(true);
        },
      ),
    );
  });

  // A matcher that tries one star after the other would not come back from this.
  it('with many stars is decided at once', () => {
    expect(globMatches(`${'*a'.repeat(128)}b`, 'a'.repeat(512), path)).toBe(false);
  });

  it('holds the namespace wherever its variable stands, as plain text', () => {
    expect(expandNamespace(`\${namespace}/*:\${namespace}`, 'team-$&')).toBe('team-$&/*:team-$&');
  });
});
