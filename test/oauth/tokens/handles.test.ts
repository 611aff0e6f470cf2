import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Handles } from '../../../src/oauth/tokens/handles.ts';

const random = { bytes: randomBytes };
const issuer = 'https://id.example';
const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const handles = new Handles({ issuer, peppers: [first], random });

describe('authorization codes', () => {
  it('name the grant they start and carry 160 bits of secret', () => {
    const made = handles.newCode('usr_alice');
    expect(handles.parseCode(made.code)).toEqual({
      shard: made.shard,
      family: made.family,
      grantId: made.grantId,
      secretHash: made.secretHash,
    });
    const [, , family, secret] = made.code.split('.');
    expect(Buffer.from(family ?? '', 'base64url')).toHaveLength(20);
    expect(Buffer.from(secret ?? '', 'base64url')).toHaveLength(20);
  });

  it('of one person are in one shard, those of many in all of them', () => {
    const shards = (subject: string) => [1, 2].map(() => handles.newCode(subject).shard);
    const people = Array.from({ length: 4000 }, (_, index) => shards(`usr_${index}`));
    for (const [first, second] of people) expect(second).toBe(first);
    expect(new Set(people.flat()).size).toBe(256);
  });

  it('never repeat and use every bit of their secret', () => {
    const secrets = Array.from({ length: 10_000 }, () => handles.newCode('usr_alice').code.split('.')[3] ?? '');
    expect(new Set(secrets).size).toBe(10_000);
    const ones = new Array<number>(160).fill(0);
    for (const secret of secrets) {
      const bytes = Buffer.from(secret, 'base64url');
      for (let bit = 0; bit < 160; bit++) ones[bit] = (ones[bit] ?? 0) + (((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1);
    }
    // Six standard deviations around 5 000: a stuck or biased bit falls out, chance does not.
    for (const count of ones) expect(Math.abs(count - 5000)).toBeLessThan(300);
  });

  it.each(['', 'ac1', 'ac1.000.x.y', 'ac1.256.aaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaa', 'rt1.0.0.0.0'])(
    'are not read from %j',
    (text) => {
      expect(handles.parseCode(text)).toBeUndefined();
    },
  );
});

describe('refresh tokens', () => {
  const { shard, family, grantId } = handles.newCode('usr_alice');

  it('of one generation are always the same text', () => {
    expect(handles.refreshToken({ shard, family }, 7)).toBe(handles.refreshToken({ shard, family }, 7));
    expect(handles.parseRefreshToken(handles.refreshToken({ shard, family }, 7))).toEqual({
      shard,
      family,
      grantId,
      generation: 7,
    });
  });

  it('with any one character changed are not ours', () => {
    const token = handles.refreshToken({ shard, family }, 3);
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom(...'AZaz09-_.!'), (index, character) => {
        fc.pre(token[index] !== character);
        const changed = token.slice(0, index) + character + token.slice(index + 1);
        expect(handles.parseRefreshToken(changed)).toBeUndefined();
      }),
    );
  });

  it('cannot move to another family or generation', () => {
    const parts = handles.refreshToken({ shard, family }, 3).split('.');
    const other = handles.newCode('usr_alice');
    expect(handles.parseRefreshToken(parts.with(2, other.family).join('.'))).toBeUndefined();
    expect(handles.parseRefreshToken(parts.with(3, '4').join('.'))).toBeUndefined();
    expect(handles.parseRefreshToken(parts.with(3, '03').join('.'))).toBeUndefined();
  });

  it('of another issuer or pepper are not ours', () => {
    const token = handles.refreshToken({ shard, family }, 0);
    const elsewhere = new Handles({ issuer: 'https://other.example', peppers: [first], random });
    const peppered = new Handles({ issuer, peppers: [second], random });
    expect(elsewhere.parseRefreshToken(token)).toBeUndefined();
    expect(peppered.parseRefreshToken(token)).toBeUndefined();
  });

  it('survive a roll-over of the pepper: the first makes, all are accepted', () => {
    const token = handles.refreshToken({ shard, family }, 0);
    const rolled = new Handles({ issuer, peppers: [second, first], random });
    expect(rolled.parseRefreshToken(token)?.grantId).toBe(grantId);
    expect(handles.parseRefreshToken(rolled.refreshToken({ shard, family }, 0))).toBeUndefined();
  });

  it('need a pepper', () => {
    expect(() => new Handles({ issuer, peppers: [], random })).toThrow(TypeError);
  });
});

describe('opaque access tokens', () => {
  it('name their grant only by its hash, in the same shard', () => {
    const { grantId, family } = handles.newCode('usr_alice');
    const { token, tokenId } = handles.newAccessToken(grantId);
    expect(token).toContain(grantId);
    expect(token).not.toContain(family);
    expect(tokenId.slice(0, 4)).toBe(grantId.slice(0, 4));
    expect(handles.accessTokenId(token)).toBe(tokenId);
  });

  it('without a grant are as long and as distinct', () => {
    const one = handles.newAccessToken(undefined);
    expect(handles.accessTokenId(one.token)).toBe(one.tokenId);
    expect(handles.newAccessToken(undefined).token).not.toBe(one.token);
  });

  it('without a grant are in any shard by chance, for any client', () => {
    const made = Array.from({ length: 4000 }, () => handles.newAccessToken(undefined));
    const shards = made.map(({ token, tokenId }) => {
      const [, shard, grant] = token.split('.');
      expect(tokenId.split('.')[0]).toBe(shard);
      return { shard, grant };
    });
    // Chance leaves out one in 25 000 runs, and never six.
    expect(new Set(shards.map(({ shard }) => shard)).size).toBeGreaterThan(250);
    expect(new Set(shards.map(({ grant }) => grant)).size).toBe(4000);
  });

  it('are not read from other text', () => {
    expect(handles.accessTokenId('at1.300.x.y')).toBeUndefined();
    expect(handles.accessTokenId('eyJhbGciOiJFUzI1NiJ9.e30.')).toBeUndefined();
  });
});
