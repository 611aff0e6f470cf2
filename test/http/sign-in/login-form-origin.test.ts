import { describe, expect, it } from 'vitest';
import { FormTokens, isOwnForm } from '../../../src/http/sign-in/form-origin.ts';

const own = 'https://auth.example.com';

describe('the origin of a form post', () => {
  it.each([
    ['our own origin', { origin: own }],
    ['our own origin, whatever else is said', { origin: own, 'sec-fetch-site': 'none' }],
    ['null from the same origin', { origin: 'null', 'sec-fetch-site': 'same-origin' }],
    ['null without more (the csrf value decides)', { origin: 'null' }],
    ['nothing at all (the csrf value decides)', {}],
    ['no origin from the same origin', { 'sec-fetch-site': 'same-origin' }],
  ])('is accepted: %s', (_what, headers) => {
    expect(isOwnForm(headers, own)).toBe(true);
  });

  it.each([
    ['another origin', { origin: 'https://evil.example.com' }],
    ['another origin that claims to be the same site', { origin: 'https://evil.com', 'sec-fetch-site': 'same-origin' }],
    ['our host by http', { origin: 'http://auth.example.com' }],
    ['our host at another port', { origin: 'https://auth.example.com:8443' }],
    ['our origin with a slash', { origin: `${own}/` }],
    ['our origin in capitals', { origin: 'HTTPS://AUTH.EXAMPLE.COM' }],
    ['our origin as a prefix', { origin: `${own}.evil.com` }],
    ['an empty origin', { origin: '' }],
    ['null from another site', { origin: 'null', 'sec-fetch-site': 'cross-site' }],
    ['null from another host of the site', { origin: 'null', 'sec-fetch-site': 'same-site' }],
    ['null from nowhere', { origin: 'null', 'sec-fetch-site': 'none' }],
    ['no origin from another site', { 'sec-fetch-site': 'cross-site' }],
  ])('is refused: %s', (_what, headers) => {
    expect(isOwnForm(headers, own)).toBe(false);
  });
});

describe('a csrf value', () => {
  const pepper = Buffer.alloc(32, 1);
  const otherPepper = Buffer.alloc(32, 2);
  const tokens = new FormTokens({ issuer: own, peppers: [pepper] });

  it('is valid for its holder and matter only', () => {
    const value = tokens.make('cookie', 'interaction');
    expect(tokens.check(value, 'cookie', 'interaction')).toBe(true);
    expect(tokens.check(value, 'another', 'interaction')).toBe(false);
    expect(tokens.check(value, 'cookie', 'another')).toBe(false);
    expect(tokens.check(value, 'cookie\0interaction', '')).toBe(false);
  });

  it.each([undefined, '', 'AAAA', 'x'.repeat(43), 'é'])('is not %j', (value) => {
    expect(tokens.check(value, 'cookie', 'interaction')).toBe(false);
  });

  it('of any accepted pepper is good', () => {
    const value = tokens.make('cookie', 'interaction');
    const swapped = new FormTokens({ issuer: own, peppers: [otherPepper, pepper] });
    expect(swapped.check(value, 'cookie', 'interaction')).toBe(true);
    expect(swapped.make('cookie', 'interaction')).not.toBe(value);
    const gone = new FormTokens({ issuer: own, peppers: [otherPepper] });
    expect(gone.check(value, 'cookie', 'interaction')).toBe(false);
  });

  it('cannot be made without a pepper', () => {
    expect(() => new FormTokens({ issuer: own, peppers: [] })).toThrow(TypeError);
  });
});
