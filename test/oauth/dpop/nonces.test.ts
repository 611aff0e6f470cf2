import { describe, expect, it } from 'vitest';
import { ProofNonces } from '../../../src/oauth/dpop/nonces.ts';

const ISSUER = 'https://auth.example';
const MINUTE = 60_000;
const START = 1_800_000_000_000;
const [PEPPER, OTHER] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

function nonces(peppers: readonly Uint8Array[] = [PEPPER], issuer = ISSUER) {
  return new ProofNonces({ issuer, peppers, rule: 'on-demand' });
}

describe('a nonce', () => {
  it('is the same at every replica for the whole minute, and another one in the next', () => {
    const made = nonces().make(START);
    expect(nonces().make(START + MINUTE - 1)).toBe(made);
    expect(nonces().make(START + MINUTE)).not.toBe(made);
    // RFC 9449 §8.1, §11.3: unpredictable, of the characters of a nonce.
    expect(made).toMatch(/^[0-9a-z]+\.[A-Za-z0-9_-]{22}$/);
  });

  it.each([
    { age: -4, passes: false },
    { age: -3, passes: true },
    { age: -1, passes: true },
    { age: 0, passes: true },
    { age: 1, passes: true },
    { age: 2, passes: false },
  ])('of minute $age → passes: $passes', ({ age, passes }) => {
    const read = nonces().read(nonces().make(START + age * MINUTE), START);
    expect(read !== undefined).toBe(passes);
    if (read) expect(read.isCurrent).toBe(age === 0);
  });

  it('passes until the moment that it says, to the millisecond', () => {
    const made = nonces().make(START);
    const { expiresAt } = nonces().read(made, START) ?? { expiresAt: 0 };
    expect(expiresAt).toBe(START + 4 * MINUTE);
    expect(nonces().read(made, expiresAt - 1)).toBeDefined();
    expect(nonces().read(made, expiresAt)).toBeUndefined();
  });

  it('of any pepper passes, and the first pepper makes it', () => {
    const rolled = nonces([OTHER, PEPPER]);
    expect(rolled.read(nonces([PEPPER]).make(START), START)).toBeDefined();
    expect(rolled.make(START)).toBe(nonces([OTHER]).make(START));
    expect(nonces([PEPPER]).read(rolled.make(START), START)).toBeUndefined();
  });

  it('of another server, another spelling, or garbage does not pass', () => {
    const made = nonces().make(START);
    const [minute = '', mac = ''] = made.split('.');
    const later = (Number.parseInt(minute, 36) + 1).toString(36);
    const wrong = [
      ...['', '.', 'x', minute, mac, `${made}.`, `${made}A`, ` ${made}`, `0${made}`, made.toUpperCase()],
      ...[`${later}.${mac}`, `${minute}.${mac.slice(1)}`, `${minute}.${'A'.repeat(22)}`, `${minute}é.${mac}`],
      nonces([PEPPER], 'https://other.example').make(START),
      nonces([OTHER]).make(START),
    ];
    for (const nonce of wrong) expect([nonce, nonces().read(nonce, START)]).toEqual([nonce, undefined]);
  });
});
