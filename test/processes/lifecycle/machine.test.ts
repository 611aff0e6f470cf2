import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';

describe('randomness of the machine', () => {
  it('hands out as many bytes as asked, also across its pool and above it', () => {
    for (const count of [0, 1, 20, 8191, 8192, 8193, 20_000]) expect(systemRandom.bytes(count)).toHaveLength(count);
  });

  it('never hands out the same bytes twice', () => {
    const seen = new Set(Array.from({ length: 20_000 }, () => Buffer.from(systemRandom.bytes(16)).toString('hex')));
    expect(seen.size).toBe(20_000);
  });

  it('hands out copies: what a caller keeps is not wiped with the pool', () => {
    const kept = systemRandom.bytes(32);
    const before = Buffer.from(kept).toString('hex');
    for (let call = 0; call < 1000; call++) systemRandom.bytes(32);
    expect(Buffer.from(kept).toString('hex')).toBe(before);
    expect(kept.every((byte) => byte === 0)).toBe(false);
  });
});
