import { describe, expect, it } from 'vitest';
import { jwksUriFault } from '../../../src/oauth/values/jwks-uri.ts';

describe('the address of a key set', () => {
  it.each([
    'https://keys.example.com/jwks.json',
    'https://keys.example.com:8443/jwks?state=1&code=2',
    'https://localhost:8443/jwks',
    'https://keys.team.svc.cluster.local',
    'https://1.2.3.4.example.com/',
  ])('given %s → it may be registered', (uri) => {
    expect(jwksUriFault(uri)).toBeUndefined();
  });

  it.each([
    ['http://keys.example.com/', 'not_https'],
    ['HTTPS://keys.example.com/', 'not_https'],
    ['http://localhost/', 'not_https'],
    ['file:///etc/passwd', 'not_https'],
    ['', 'not_https'],
    ['https://user@keys.example.com/', 'userinfo'],
    ['https://:secret@keys.example.com/', 'userinfo'],
    ['https://@keys.example.com/', 'userinfo'],
    ['https://keys.example.com/#', 'fragment'],
    ['https://keys.example.com/#a', 'fragment'],
    ['https://127.0.0.1/', 'address_literal'],
    ['https://93.184.215.14:443/', 'address_literal'],
    ['https://0x7f.1/', 'address_literal'],
    ['https://2130706433/', 'address_literal'],
    ['https://0177.0.0.1/', 'address_literal'],
    ['https://127.0.0.1./', 'address_literal'],
    ['https://[::1]/', 'address_literal'],
    ['https://[::ffff:7f00:1]/', 'address_literal'],
    ['https://', 'malformed'],
    ['https:///jwks', 'malformed'],
    ['https://Keys.example.com/', 'malformed'],
    ['https://keys.example.com./', 'malformed'],
    ['https://keys.example.com:0/', 'malformed'],
    ['https://keys.example.com:99999/', 'malformed'],
    ['https://keys.example.com\\@evil.example/', 'malformed'],
    ['https://keys.example.com/a b', 'malformed'],
    ['https://*.example.com/', 'malformed'],
    ['https://１２７.0.0.1/', 'address_literal'],
  ])('given %s → %s', (uri, fault) => {
    expect(jwksUriFault(uri)).toBe(fault);
  });
});
