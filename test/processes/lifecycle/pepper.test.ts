import { describe, expect, it } from 'vitest';
import { parsePeppers } from '../../../src/processes/lifecycle/pepper.ts';

const [ONE, TWO] = ['a'.repeat(32), 'b'.repeat(43)];

describe('a pepper file', () => {
  it('has one value a line, the first being the one that makes', () => {
    const peppers = parsePeppers(`${ONE}\n\n  ${TWO}\r\n`);
    expect(peppers.map((pepper) => Buffer.from(pepper).toString())).toEqual([ONE, TWO]);
  });

  it.each([
    ['empty', '\n'],
    ['short', 'secret\n'],
    ['good and short', `${ONE}\nsecret`],
  ])('that is %s is refused, and its text is not shown', (_, text) => {
    expect(() => parsePeppers(text)).toThrow(RangeError);
    expect(() => parsePeppers(text)).not.toThrow(/secret$/);
  });
});
