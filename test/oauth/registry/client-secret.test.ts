import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { generateClientSecret, secretMatches, secretVerifier } from '../../../src/oauth/registry/client-secret.ts';

const uid = '6f0b5c3e-0000-4000-8000-000000000001';
const client = { uid, secretVerifiers: [secretVerifier(uid, 'new'), secretVerifier(uid, 'old')] };

describe('client secrets', () => {
  it('have 256 bits in base64url', () => {
    const secret = generateClientSecret({ bytes: randomBytes });
    expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
  });

  it('match while either of two verifiers is accepted', () => {
    expect(secretMatches(client, ['new'])).toBe(true);
    expect(secretMatches(client, ['old'])).toBe(true);
    expect(secretMatches(client, ['other'])).toBe(false);
  });

  it('match in any of the presented spellings', () => {
    expect(secretMatches(client, ['n%65w', 'new'])).toBe(true);
  });

  it('of another object are not accepted, though the secret is the same', () => {
    expect(secretMatches({ ...client, uid: 'another' }, ['new'])).toBe(false);
  });

  it('of no client match nothing, not even the empty one', () => {
    expect(secretMatches(undefined, [''])).toBe(false);
    expect(secretMatches({ uid: 'nobody', secretVerifiers: [] }, [''])).toBe(false);
  });
});
