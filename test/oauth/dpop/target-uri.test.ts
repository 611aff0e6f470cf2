import { describe, expect, it } from 'vitest';
import { isTargetUri } from '../../../src/oauth/dpop/target-uri.ts';

describe('a target URI', () => {
  it.each([
    'https://auth.example/tenant/token',
    'HTTPS://AUTH.Example/tenant/token',
    'https://auth.example:443/tenant/token',
    'https://auth.example:/tenant/token',
    'https://auth.example/tenant/token?a=b&c',
    'https://auth.example/tenant/token#fragment',
    'https://auth.example/tenant/token?a#b',
    'https://mtls.example:8443/tenant/token',
  ])('%s → is one of the addresses', (htu) => {
    expect(isTargetUri(htu, ['https://auth.example/tenant/token', 'https://mtls.example:8443/tenant/token'])).toBe(
      true,
    );
  });

  it.each([
    '',
    '/tenant/token',
    'auth.example/tenant/token',
    'http://auth.example/tenant/token',
    'https://auth.example:444/tenant/token',
    'https://auth.example:80/tenant/token',
    'https://auth.example/Tenant/token',
    'https://auth.example/tenant/token/',
    'https://auth.example/tenant//token',
    'https://auth.example/tenant/x/../token',
    'https://auth.example/tenant/%74oken',
    'https://auth.example\\tenant\\token',
    'https://auth.example',
    'https://user@auth.example/tenant/token',
    'https://auth.example.evil.example/tenant/token',
    'https://evil.example/?https://auth.example/tenant/token',
    'https://evil.example#https://auth.example/tenant/token',
    ' https://auth.example/tenant/token',
    'https://auth.example/tenant/token ',
    'https://auth.example/tenant/token\n',
    'https:///tenant/token',
    // The lower case of U+212A is the k of ASCII.
    'https://auth.example/to\u212Aen',
  ])('%j → is none of them', (htu) => {
    expect(isTargetUri(htu, ['https://auth.example/tenant/token', 'https://auth.example/token'])).toBe(false);
  });

  it('of a resource without a path → may end with the host or with a slash', () => {
    for (const htu of ['https://api.example', 'https://api.example/', 'https://api.example?x']) {
      expect(isTargetUri(htu, ['https://api.example/'])).toBe(true);
      expect(isTargetUri(htu, ['https://api.example'])).toBe(true);
    }
  });
});
