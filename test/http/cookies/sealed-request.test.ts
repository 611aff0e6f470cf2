import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Destination, SealedRequests } from '../../../src/http/cookies/sealed-request.ts';
import type { AuthorizationSnapshot } from '../../../src/oauth/ports/login-stores.ts';

const request: AuthorizationSnapshot = {
  clientUid: '6f0f0b52-6f0e-5c6a-9d57-0f5d2a6f2b11',
  clientId: 'shop.web',
  redirectUri: 'https://app.example.com/cb',
  scope: ['orders:read'],
  audiences: ['https://api.example.com'],
  codeChallenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  state: 'a b+c%20é"<',
};
const destination: Destination = { request };
const pepper = Buffer.alloc(32, 1);
const otherPepper = Buffer.alloc(32, 2);
const issuer = 'https://auth.example.com';

function sealer({ peppers = [pepper], from = issuer } = {}) {
  const clock = { time: 1_800_000_000_000, now: () => clock.time };
  const random = { bytes: (count: number) => randomBytes(count) };
  return { clock, requests: new SealedRequests({ issuer: from, peppers, clock, random }) };
}

describe('a sealed request', () => {
  it('opens to what was sealed, for the same browser', () => {
    const { requests, clock } = sealer();
    const opened = requests.open(requests.seal(destination, 'browser'), 'browser');
    expect(opened).toEqual({ destination, refused: undefined, sealedAt: clock.now(), isExpired: false });
  });

  it('keeps what a request of OpenID Connect says', () => {
    const openid = { nonce: 'n"é', prompt: ['consent'] as const, maxAge: 0, loginHint: 'bob', subject: 'usr_bob' };
    const { requests } = sealer();
    const sealed = requests.seal({ request: { ...request, openid } }, 'browser');
    expect(requests.open(sealed, 'browser')?.destination).toEqual({ request: { ...request, openid } });
  });

  it('given a page of ours → that page; given any other path or address, sealed by another version → nothing', () => {
    const { requests } = sealer();
    const opened = (path: string) =>
      requests.open(requests.seal({ path } as Destination, 'browser'), 'browser')?.destination;
    for (const path of ['/account', '/account/sessions', '/account/applications'])
      expect(opened(path)).toEqual({ path });
    for (const path of ['https://evil.example/', '//evil.example', '/account/', '/account/security', '', '/login']) {
      expect(opened(path), path).toBeUndefined();
    }
  });

  it('given a refused form → what its page shows, and nothing of it can be read', () => {
    const { requests } = sealer();
    const refused = { username: 'a-typed-name', problem: { kind: 'wrong' } } as const;
    const sealed = requests.seal(destination, 'browser', refused);
    expect(requests.open(sealed, 'browser')).toMatchObject({ destination, refused });
    expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toMatch(/a-typed-name|wrong/);
  });

  it('opens on another replica with the same peppers', () => {
    const sealed = sealer().requests.seal(destination, 'browser');
    expect(sealer().requests.open(sealed, 'browser')?.destination).toEqual(destination);
  });

  it('shows nothing of the request', () => {
    const bytes = Buffer.from(sealer().requests.seal(destination, 'browser'), 'base64url').toString('latin1');
    for (const word of ['shop.web', 'orders', 'example', 'E9Mel']) expect(bytes).not.toContain(word);
  });

  it('is another text each time', () => {
    const { requests } = sealer();
    expect(requests.seal(destination, 'browser')).not.toBe(requests.seal(destination, 'browser'));
  });

  it('does not open for another browser', () => {
    const { requests } = sealer();
    const sealed = requests.seal(destination, 'browser');
    expect(requests.open(sealed, 'another')).toBeUndefined();
    expect(requests.open(sealed, '')).toBeUndefined();
  });

  it('expires in ten minutes and not a moment later', () => {
    const { requests, clock } = sealer();
    const sealed = requests.seal(destination, 'browser');
    clock.time += 599_999;
    expect(requests.open(sealed, 'browser')).toMatchObject({ destination, isExpired: false });
    clock.time += 1;
    expect(requests.open(sealed, 'browser')).toMatchObject({ destination, isExpired: true });
  });

  it('does not open once any bit of it was changed', () => {
    const { requests } = sealer();
    const sealed = Buffer.from(requests.seal(destination, 'browser'), 'base64url');
    fc.assert(
      fc.property(fc.nat(sealed.length * 8 - 1), (bit) => {
        const changed = Buffer.from(sealed);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(requests.open(changed.toString('base64url'), 'browser')).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });

  it('does not open cut short, lengthened, or spelled in another way', () => {
    const { requests } = sealer();
    const sealed = requests.seal(destination, 'browser');
    for (const text of [
      '',
      'A',
      sealed.slice(0, 40),
      sealed.slice(0, -4),
      `${sealed}AAAA`,
      `${sealed}=`,
      ` ${sealed}`,
    ]) {
      expect(requests.open(text, 'browser')).toBeUndefined();
    }
  });

  it('opens while its pepper is among the accepted ones, also when another one seals now', () => {
    const sealed = sealer({ peppers: [pepper] }).requests.seal(destination, 'browser');
    expect(sealer({ peppers: [otherPepper, pepper] }).requests.open(sealed, 'browser')?.destination).toEqual(
      destination,
    );
    expect(sealer({ peppers: [otherPepper] }).requests.open(sealed, 'browser')).toBeUndefined();
  });

  it('of another issuer with the same pepper does not open', () => {
    const sealed = sealer({ from: 'https://other.example.com' }).requests.seal(destination, 'browser');
    expect(sealer().requests.open(sealed, 'browser')).toBeUndefined();
  });

  it('cannot be made without a pepper', () => {
    expect(() => sealer({ peppers: [] })).toThrow(TypeError);
  });
});
