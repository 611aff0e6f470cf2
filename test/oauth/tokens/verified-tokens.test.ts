// What a verification proved is remembered for the keys that it was made with, until the token expires, and no longer.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { generateSigningKeyPem, importSigningKey, KeyRing } from '../../../src/oauth/registry/keys.ts';
import type { AccessTokenClaims } from '../../../src/oauth/tokens/access-token-claims.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { AccessTokens } from '../../../src/oauth/tokens/tokens.ts';
import { VERIFIED_TOKENS, VerifiedTokens } from '../../../src/oauth/tokens/verified-tokens.ts';
import { aClient } from '../a-client.ts';

const START = 1_800_000_000_500;

class MovingClock {
  time = START;

  now(): number {
    return this.time;
  }
}

function claimsUntil(exp: number): AccessTokenClaims {
  const iat = exp - 600;
  return { iss: 'https://id.example', sub: 's', aud: 'a', client_id: 'c', iat, exp, jti: 'j', scope: 'read' };
}

describe('verified tokens', () => {
  const keys = new KeyRing([]);
  const exp = 1_800_000_600;

  it('are found again with the same keys until they expire, to the second', () => {
    const clock = new MovingClock();
    const verified = new VerifiedTokens({ clock });
    verified.add('token', keys, claimsUntil(exp));
    clock.time = 1000 * exp - 1;
    expect(verified.find('token', keys)).toEqual(claimsUntil(exp));
    expect(verified.find('token ', keys)).toBeUndefined();
    clock.time = 1000 * exp;
    expect(verified.find('token', keys)).toBeUndefined();
  });

  it('are not found with other keys, not even with others that are equal', () => {
    const verified = new VerifiedTokens({ clock: new MovingClock() });
    verified.add('token', keys, claimsUntil(exp));
    expect(verified.find('token', new KeyRing([]))).toBeUndefined();
    verified.add('other', new KeyRing([]), claimsUntil(exp));
    expect(verified.find('token', keys)).toBeUndefined();
    expect(verified.find('other', keys)).toBeUndefined();
  });

  it('are as many as there is room for; the first goes first', () => {
    const verified = new VerifiedTokens({ clock: new MovingClock() });
    for (let made = 0; made <= VERIFIED_TOKENS; made++) verified.add(`token ${made}`, keys, claimsUntil(exp));
    expect(verified.find('token 0', keys)).toBeUndefined();
    expect(verified.find('token 1', keys)).toBeDefined();
    expect(verified.find(`token ${VERIFIED_TOKENS}`, keys)).toBeDefined();
  });
});

describe('a token that was verified before', () => {
  it('is refused once it has expired, once its key has gone, and with a changed byte', async () => {
    const clock = new MovingClock();
    const random = { bytes: randomBytes };
    const issuer = 'https://id.example';
    const handles = new Handles({ issuer, peppers: [Buffer.alloc(32, 1)], random });
    const tokens = new AccessTokens({ issuer, clock, random, handles, endOfTick: setImmediate });
    const key = await importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active');
    const keys = new KeyRing([key]);
    const token = await tokens.prepare(aClient(), keys).issue({
      subject: 'usr_alice',
      scope: ['shop/read'],
      audience: 'https://api.shop.example/',
      grantId: undefined,
      authTime: undefined,
      refreshToken: undefined,
    });
    const claims = await tokens.verify(token, keys);
    expect(claims).toMatchObject({ sub: 'usr_alice' });
    expect(await tokens.verify(token, keys)).toEqual(claims);

    expect(
      await tokens.verify(`${token.slice(0, 200)}${token[200] === 'A' ? 'B' : 'A'}${token.slice(201)}`, keys),
    ).toBe(undefined);
    expect(await tokens.verify(token, new KeyRing([]))).toBeUndefined();
    expect(await tokens.verify(token, keys)).toEqual(claims);
    clock.time += 600_000;
    expect(await tokens.verify(token, keys)).toBeUndefined();
    const untouchable = new KeyRing([
      {
        ...key,
        get publicKey(): never {
          throw new Error('an expired token is not worth a verification');
        },
      },
    ]);
    expect(await tokens.verify(token, untouchable)).toBeUndefined();
  });
});
