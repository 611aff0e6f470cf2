// Which people a block means.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Block, type Blockable, Blocks } from '../../src/login/blocks.ts';

const SUB = 'usr_eve-------------------';
const EVE: Blockable = {
  subject: SUB,
  username: 'eve',
  email: 'eve@corp.example.com',
  provider: { name: 'corp', unverifiedEmail: 'eve@home.example.com' },
};
const LOCAL: Blockable = { subject: SUB, username: 'eve', email: 'eve@corp.example.com' };
const OUT = Number.POSITIVE_INFINITY;

const strictest = (blocks: readonly Block[], person = EVE) => new Blocks(blocks).strictest(person);

describe('a block', () => {
  it.each<[string, Block, number]>([
    ['of the subject, of whatever provider', { sub: SUB, disabled: true }, OUT],
    ['of the subject at the provider', { sub: SUB, provider: 'corp', disabled: true }, OUT],
    ['of the subject at another provider', { sub: SUB, provider: 'github', disabled: true }, 0],
    ['of the subject in another case', { sub: SUB.toUpperCase(), disabled: true }, 0],
    ['of the address', { provider: 'corp', email: 'eve@corp.example.com', disabled: true }, OUT],
    ['of the address in another case', { provider: 'corp', email: 'EVE@Corp.example.com', disabled: true }, OUT],
    ['of the address that is not verified', { provider: 'corp', email: 'Eve@home.example.com', disabled: true }, OUT],
    ['of the address at another provider', { provider: 'github', email: 'eve@corp.example.com', disabled: true }, 0],
    ['of another address', { provider: 'corp', email: 'eve@corp.example.co', disabled: true }, 0],
    ['of the username in another case', { provider: 'corp', username: 'EVE', disabled: true }, OUT],
    ['of the username as address', { provider: 'corp', email: 'eve', disabled: true }, 0],
    ['of the address as username', { provider: 'corp', username: 'eve@corp.example.com', disabled: true }, 0],
    ['of the local user of that name', { provider: 'local', username: 'eve', disabled: true }, 0],
    ['before a time', { provider: 'corp', username: 'eve', revokeTokensBefore: 7 }, 7],
  ])('%s', (_case, block, expected) => {
    expect(strictest([block])).toBe(expected);
  });

  it.each([
    ['straße', 'STRASSE'],
    ['\u212a', 'k'],
    ['ΟΔΟΣ', 'οδος'],
    ['e\u0301va', 'ÉVA'],
  ])('of a name in other letters: %s is %s', (username, other) => {
    for (const [typed, known] of [
      [username, other],
      [other, username],
    ] as const) {
      const block = { provider: 'corp', username: typed, disabled: true };
      expect(strictest([block], { ...EVE, username: known })).toBe(OUT);
    }
  });

  it('of a local user means no person of a provider, and the other way round', () => {
    const local: Block = { provider: 'local', email: 'EVE@corp.example.com', disabled: true };
    expect([strictest([local], LOCAL), strictest([local])]).toEqual([OUT, 0]);
    expect(strictest([{ provider: 'corp', username: 'eve', disabled: true }], LOCAL)).toBe(0);
    expect(strictest([{ sub: SUB, disabled: true }], LOCAL)).toBe(OUT);
  });

  it('of several in any order → the strictest of those that mean the person', () => {
    const times = fc.constantFrom(undefined, 5, 9, OUT);
    const keys = fc.constantFrom<Block>(
      { sub: SUB },
      { sub: 'usr_ada-------------------' },
      { provider: 'corp', email: 'EVE@corp.example.com' },
      { provider: 'github', email: 'eve@corp.example.com' },
      { provider: 'corp', username: 'Eve' },
      { provider: 'corp', username: 'ada' },
    );
    const block = fc.tuple(keys, times).map(([key, time]): Block => {
      return time === OUT ? { ...key, disabled: true } : { ...key, revokeTokensBefore: time };
    });
    fc.assert(
      fc.property(fc.array(block), (blocks) => {
        const alone = blocks.map((each) => strictest([each]));
        expect(strictest(blocks)).toBe(Math.max(0, ...alone));
      }),
    );
  });

  it('is gone with the next list; the revision is another one after a change', () => {
    const blocks = new Blocks();
    const revisions = [
      [],
      [{ sub: SUB, disabled: true }],
      [{ sub: SUB, disabled: true }],
      [{ sub: SUB, revokeTokensBefore: 1 }],
      [],
    ].map((list) => {
      blocks.replace(list);
      return blocks.revision;
    });
    expect(new Set(revisions).size).toBe(4);
    expect(revisions[1]).toBe(revisions[2]);
    expect(blocks.strictest(EVE)).toBe(0);
  });
});
