import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isChallenge, isVerifier, s256 } from '../../../src/oauth/values/pkce.ts';

const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
const UNRESERVED = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~';

const aVerifier = fc.string({ unit: fc.constantFrom(...UNRESERVED), minLength: 43, maxLength: 128 });

describe('the S256 transform (RFC 7636 §4.2)', () => {
  it('turns the verifier of appendix B into its challenge', () => {
    expect(s256(VERIFIER)).toBe(CHALLENGE);
  });

  it('makes a well-formed challenge of every verifier, and another one of another verifier', () => {
    fc.assert(
      fc.property(aVerifier, aVerifier, (one, other) => {
        expect(isVerifier(one)).toBe(true);
        expect(isChallenge(s256(one))).toBe(true);
        expect(s256(one) === s256(other)).toBe(one === other);
      }),
    );
  });

  it('never gives back the challenge: a challenge sent as the verifier proves nothing', () => {
    expect(s256(CHALLENGE)).not.toBe(CHALLENGE);
  });
});

describe('a code challenge', () => {
  it.each([
    ['the one of appendix B', CHALLENGE],
    ['43 characters of base64url', '-_'.repeat(21).concat('A')],
  ])('may be %s', (_, value) => {
    expect(isChallenge(value)).toBe(true);
  });

  it.each([
    ['nothing', ''],
    ['42 characters', CHALLENGE.slice(1)],
    ['44 characters', `${CHALLENGE}A`],
    ['padding', `${CHALLENGE}=`],
    ['padding in place of a character', `${CHALLENGE.slice(1)}=`],
    ['a plus sign', `+${CHALLENGE.slice(1)}`],
    ['a slash', `/${CHALLENGE.slice(1)}`],
    ['a dot', `.${CHALLENGE.slice(1)}`],
    ['a tilde', `~${CHALLENGE.slice(1)}`],
    ['a trailing line break', `${CHALLENGE}\n`],
    ['a line break in place of a character', `${CHALLENGE.slice(1)}\n`],
    ['a letter outside ASCII', `é${CHALLENGE.slice(1)}`],
    ['a full-width digit', `\uff11${CHALLENGE.slice(1)}`],
  ])('may not be %s', (_, value) => {
    expect(isChallenge(value)).toBe(false);
  });
});

describe('a code verifier', () => {
  it.each([
    ['43 characters', 'a'.repeat(43)],
    ['128 characters', 'a'.repeat(128)],
    ['every unreserved character', UNRESERVED],
  ])('may be %s', (_, value) => {
    expect(isVerifier(value)).toBe(true);
  });

  it.each([
    ['nothing', ''],
    ['one character', 'a'],
    ['42 characters', 'a'.repeat(42)],
    ['129 characters', 'a'.repeat(129)],
    ['white space only', ' '.repeat(43)],
    ['a percent sign', `%${'a'.repeat(42)}`],
    ['NUL', `\0${'a'.repeat(42)}`],
    ['a trailing line break', `${'a'.repeat(43)}\n`],
    ['a plus sign', `+${'a'.repeat(42)}`],
    ['a letter outside ASCII', `é${'a'.repeat(42)}`],
  ])('may not be %s', (_, value) => {
    expect(isVerifier(value)).toBe(false);
  });

  it('may hold no other character anywhere', () => {
    const other = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((c) => !UNRESERVED.includes(c));
    fc.assert(
      fc.property(aVerifier, other, fc.nat(), (verifier, character, place) => {
        const at = place % verifier.length;
        expect(isVerifier(verifier.slice(0, at) + character + verifier.slice(at + 1))).toBe(false);
      }),
    );
  });
});
