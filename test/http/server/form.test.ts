// The strict form parser (security rows S1, S4; RFC 3986: decoded once).

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isFormMediaType, parseForm } from '../../../src/http/server/form.ts';

function parse(text: string) {
  const parsed = parseForm(Buffer.from(text, 'latin1'));
  return typeof parsed === 'string' ? parsed : Object.fromEntries(parsed);
}

const text = fc
  .string({ unit: 'grapheme', maxLength: 20 })
  .filter((value) => value.isWellFormed() && !value.includes('\0'));
const pairs = fc.array(fc.tuple(text, text), { maxLength: 100 });

describe('the form parser', () => {
  it('reads back whatever a browser would write, in order and with every repetition', () => {
    fc.assert(
      fc.property(pairs, (written) => {
        fc.pre(!written[0]?.[0].startsWith('\uFEFF'));
        const expected = new Map<string, string[]>();
        for (const [name, value] of written) expected.set(name, [...(expected.get(name) ?? []), value]);
        const parsed = parseForm(Buffer.from(new URLSearchParams(written).toString()));
        expect(parsed).toEqual(expected);
      }),
    );
  });

  it('reads what encodeURIComponent wrote', () => {
    fc.assert(
      fc.property(pairs, (written) => {
        fc.pre(!written[0]?.[0].startsWith('\uFEFF'));
        const body = written.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
        const parsed = parseForm(Buffer.from(body));
        expect(typeof parsed).not.toBe('string');
      }),
    );
  });

  it('answers any bytes at all with parameters or a fault, and throws nothing', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const parsed = parseForm(bytes);
        if (typeof parsed === 'string') return;
        for (const [name, values] of parsed) {
          expect([name, ...values].every((value) => value.isWellFormed() && !value.includes('\0'))).toBe(true);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('decodes once', () => {
    fc.assert(
      fc.property(text, (value) => {
        const twice = encodeURIComponent(encodeURIComponent(value));
        expect(parse(`a=${twice}`)).toEqual({ a: [encodeURIComponent(value)] });
      }),
    );
  });

  it.each([
    ['a=%4', 'malformed_percent_encoding'],
    ['a=%', 'malformed_percent_encoding'],
    ['a=%g0', 'malformed_percent_encoding'],
    ['%=a', 'malformed_percent_encoding'],
    ['a=%+1', 'malformed_percent_encoding'],
    ['a=%c0%af', 'malformed_utf8'],
    ['a=%ff', 'malformed_utf8'],
    ['a=%ed%a0%80', 'malformed_utf8'],
    ['a=%f4%90%80%80', 'malformed_utf8'],
    ['a=\xff', 'malformed_utf8'],
    ['a=%00', 'nul_character'],
    ['\0=a', 'nul_character'],
    ['\xef\xbb\xbfa=1', 'byte_order_mark'],
    ['%ef%bb%bfa=1', 'byte_order_mark'],
    ['a&'.repeat(101), 'too_many_parameters'],
    ['a'.repeat(64 * 1024 + 1), 'form_too_large'],
  ])('finds the fault in %.20s…', (body, fault) => {
    expect(parse(body)).toBe(fault);
  });

  it('takes names of object members for what they are', () => {
    const parsed = parseForm(Buffer.from('__proto__=1&constructor=2&toString=3'));
    expect(parsed).toEqual(
      new Map([
        ['__proto__', ['1']],
        ['constructor', ['2']],
        ['toString', ['3']],
      ]),
    );
    expect(({} as Record<string, unknown>)['1']).toBeUndefined();
  });

  it('knows no arrays, no objects and no other separator', () => {
    expect(parse('a[]=1&a[0]=2&a.b=3;c=4')).toEqual({ 'a[]': ['1'], 'a[0]': ['2'], 'a.b': ['3;c=4'] });
  });

  it('takes a plus for a space, and keeps further equals signs', () => {
    expect(parse('a+b=c+d%2B=e&f&=g')).toEqual({ 'a b': ['c d+=e'], f: [''], '': ['g'] });
  });
});

describe('the check of media types', () => {
  it('accepts the form type in any case, with charset utf-8 or none', () => {
    const space = fc.constantFrom('', ' ', '\t', '  ');
    const casing = fc.array(fc.boolean(), { minLength: 48, maxLength: 48 });
    const charset = fc.constantFrom('', ';', ';charset=utf-8', '; charset="utf-8"', ';\tcharset=utf-8 ');
    fc.assert(
      fc.property(space, casing, charset, (padding, upper, parameter) => {
        const written = `application/x-www-form-urlencoded${parameter}`;
        const cased = [...written].map((char, index) => (upper[index] ? char.toUpperCase() : char)).join('');
        expect(isFormMediaType(`${padding}${cased}`)).toBe(true);
      }),
    );
  });

  it('refuses everything else', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 30 }), fc.string({ minLength: 1, maxLength: 10 }), (before, after) => {
        fc.pre(before.trim() !== '' || !/^[\s;]*$/.test(after));
        expect(isFormMediaType(`${before}x-www-form-urlencoded${after}`)).toBe(false);
      }),
    );
    expect(isFormMediaType(undefined)).toBe(false);
    expect(isFormMediaType(`application/x-www-form-urlencoded${';'.repeat(10_000)}x`)).toBe(false);
  });

  it('refuses one of more than 200 characters, however right it is', () => {
    const longest = 'application/x-www-form-urlencoded'.padEnd(200, ';');
    expect([isFormMediaType(longest), isFormMediaType(`${longest};`)]).toEqual([true, false]);
  });
});
