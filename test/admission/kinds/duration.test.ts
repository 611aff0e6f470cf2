import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from '../../../src/admission/kinds/duration.ts';

describe('a Go duration', () => {
  it.each([
    ['0', 0],
    ['15m', 900],
    ['1h30m', 5400],
    ['1.5s', 1.5],
    ['.5s', 0.5],
    ['1.s', 1],
    ['+10s', 10],
    ['1h1m1s1ms1us1ns', 3661.001001001],
    ['3µs', 0.000003],
    ['3μs', 0.000003],
    ['9223372036s', 9223372036],
  ])('reads %s as %d seconds', (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  it.each([
    '',
    '+',
    '-1s',
    '1',
    '1d',
    '1 h',
    ' 1h',
    '1h ',
    's',
    '.s',
    '1.2.3s',
    '1H',
    '1e3s',
    '0x1s',
    '1h-1m',
    '++1s',
    '00',
  ])('refuses %j', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  it('refuses what Go cannot hold and what is written too long', () => {
    expect(parseDuration('9223372037s')).toBeUndefined();
    expect(parseDuration(`${'0'.repeat(64)}1s`)).toBeUndefined();
  });

  it('is the sum of its parts, in any order', () => {
    const part = fc.record({ count: fc.nat(9999), unit: fc.constantFrom('h', 'm', 's', 'ms') });
    const scale = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
        const milliseconds = parts.reduce((sum, { count, unit }) => sum + count * scale[unit as keyof typeof scale], 0);
        expect(parseDuration(parts.map(({ count, unit }) => `${count}${unit}`).join(''))).toBe(milliseconds / 1000);
      }),
    );
  });

  it('written by us is read back as the same', () => {
    fc.assert(
      fc.property(fc.nat(40_000_000), (seconds) => {
        expect(parseDuration(formatDuration(seconds))).toBe(seconds);
      }),
    );
  });

  it('is never anything but a number of seconds or refused, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.hmsnuµ+- e') }), (text) => {
        const seconds = parseDuration(text);
        expect(seconds === undefined || (Number.isFinite(seconds) && seconds >= 0)).toBe(true);
      }),
    );
  });
});
