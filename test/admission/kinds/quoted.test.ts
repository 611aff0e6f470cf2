// How text of a tenant is printed in conditions, Events, logs and reports.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPath } from '../../../src/admission/kinds/field-path.ts';
import { printed, quoted } from '../../../src/admission/kinds/quoted.ts';

describe('text of a tenant', () => {
  it.each([
    ['printable ASCII, quotes and backslashes', 'a "b" \\c ~', 'a "b" \\c ~', '"a \\"b\\" \\\\c ~"'],
    ['a line break', 'a\nb', 'a\\u{a}b', '"a\\u{a}b"'],
    ['DEL and C1 controls', '\u007f\u009b', '\\u{7f}\\u{9b}', '"\\u{7f}\\u{9b}"'],
    ['what turns the direction of text', '\u202e', '\\u{202e}', '"\\u{202e}"'],
    ['half of a pair', 'a\ud800b', 'a\\u{d800}b', '"a\\u{d800}b"'],
    ['letters and pictograms', 'é\u{1f600}', '\\u{e9}\\u{1f600}', '"\\u{e9}\\u{1f600}"'],
    ['120 characters', 'x'.repeat(120), 'x'.repeat(120), `"${'x'.repeat(120)}"`],
    ['121 characters', 'x'.repeat(121), `${'x'.repeat(117)}...`, `"${'x'.repeat(117)}..."`],
    ['an escape that no longer fits', `${'x'.repeat(116)}\u202e`, `${'x'.repeat(116)}...`, `"${'x'.repeat(116)}..."`],
  ])('with %s → printed and quoted as %j', (_, text, asPrinted, asQuoted) => {
    expect([printed(text), quoted(text)]).toEqual([asPrinted, asQuoted]);
  });

  it('of any characters and length → printable ASCII of at most 120 characters', () => {
    const text = fc.string({ unit: 'binary', maxLength: 400 });
    fc.assert(
      fc.property(text, (value) => {
        const both = `${printed(value)}\n${quoted(value)}`;
        return /^[\x20-\x7e]{0,120}\n"(?=[\x20-\x7e]{0,120}"$)(?:[^"\\]|\\.)*"$/.test(both);
      }),
    );
  });

  it('that names a field → printed in the path, cut like any other', () => {
    expect(formatPath(['spec', 'scopes', 0, 'a\u202e', 'x'.repeat(300)])).toBe(
      `spec.scopes[0]["a\\u{202e}"]["${'x'.repeat(117)}..."]`,
    );
  });
});
