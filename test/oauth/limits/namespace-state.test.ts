// What the clients of a namespace have alive in the store without a person (docs/scope.md: 6819-1).

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HeldRecord, NamespaceState, storedBytes } from '../../../src/oauth/limits/namespace-state.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';

const TEAM = { namespace: 'team', maxState: 1000 };
const SECOND = 1000;

function aLimiter() {
  const time = { now: 1_700_000_000_000 };
  const limiter = new NamespaceState({ clock: { now: () => time.now } });
  const written: HeldRecord[] = [];
  /** Holds a record. @returns seconds to wait; 0 when it was written */
  async function hold(bytes: number, lifetime: number, client = TEAM): Promise<number> {
    const record = { bytes, expiresAtSeconds: Math.floor(time.now / SECOND) + lifetime };
    try {
      await limiter.hold(client, record, async () => void written.push(record));
      return 0;
    } catch (error) {
      expect(error).toMatchObject({ code: 'rate_limited', reason: 'namespace_state_full' });
      return (error as { retryAfterSeconds: number }).retryAfterSeconds;
    }
  }
  return { limiter, time, hold, written };
}

describe('the state of a namespace', () => {
  it('its share is alive → nothing more is written, until as much has expired', async () => {
    const { time, hold, written } = aLimiter();
    expect(await hold(600, 10)).toBe(0);
    expect(await hold(400, 15)).toBe(0);
    expect(await hold(500, 10)).toBe(10);
    expect(await hold(700, 10)).toBe(15);
    expect(written).toHaveLength(2);
    time.now += 10 * SECOND;
    expect(await hold(601, 10)).toBe(5);
    expect(await hold(600, 10)).toBe(0);
  });

  it('of another namespace counts for itself, and so does the limit of each client', async () => {
    const { hold } = aLimiter();
    await hold(1000, 10);
    expect(await hold(1000, 10, { namespace: 'other', maxState: 1000 })).toBe(0);
    expect(await hold(1000, 10, { ...TEAM, maxState: 2000 })).toBe(0);
  });

  it('a write that a store could not do does not count', async () => {
    const { limiter, time, hold } = aLimiter();
    const record = { bytes: 1000, expiresAtSeconds: time.now / SECOND + 10 };
    const failure = new StoreUnavailableError('write');
    await expect(limiter.hold(TEAM, record, () => Promise.reject(failure))).rejects.toBe(failure);
    expect(await hold(1000, 10)).toBe(0);
  });

  it('a write that turns out to keep nothing does not count', async () => {
    const { limiter, time, hold } = aLimiter();
    const isKept = (answer: string) => answer === 'fresh';
    const record = { bytes: 600, expiresAtSeconds: time.now / SECOND + 10, isKept };
    for (const answer of ['seen', 'seen', 'fresh']) {
      expect(await limiter.hold(TEAM, record, async () => answer)).toBe(answer);
    }
    expect(await hold(401, 10)).toBe(10);
    expect(await hold(400, 10)).toBe(0);
  });

  it('counts a write that is still under way', async () => {
    const { limiter, time, hold } = aLimiter();
    const record = { bytes: 1000, expiresAtSeconds: time.now / SECOND + 10 };
    const { promise, resolve } = Promise.withResolvers<void>();
    const writing = limiter.hold(TEAM, record, () => promise);
    expect(await hold(1, 10)).toBe(10);
    resolve();
    await writing;
  });

  it('a record that is larger than the share → refused, and never with less than a second to wait', async () => {
    const { hold } = aLimiter();
    expect(await hold(1001, 10)).toBe(1);
  });

  it('whatever is written for however long, never more than the share is alive, and no wait is longer than needed', async () => {
    const steps = fc.array(
      fc.record({
        bytes: fc.integer({ min: 1, max: 400 }),
        lifetime: fc.integer({ min: 1, max: 90_000 }),
        pause: fc.nat(5000),
      }),
      { maxLength: 200 },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const { time, hold, written } = aLimiter();
        for (const { bytes, lifetime, pause } of all) {
          const wait = await hold(bytes, lifetime);
          const alive = (at: number) =>
            written.filter(({ expiresAtSeconds }) => expiresAtSeconds > at).reduce((sum, each) => sum + each.bytes, 0);
          const now = Math.floor(time.now / SECOND);
          expect(alive(now)).toBeLessThanOrEqual(TEAM.maxState);
          // By then there is room; a record counts for at most a sixteenth longer than it lives.
          if (wait > 0) expect(alive(now + wait) + bytes).toBeLessThanOrEqual(TEAM.maxState);
          expect(wait).toBeLessThanOrEqual(Math.ceil(90_000 * (1 + 1 / 16)));
          time.now += pause * SECOND;
        }
      }),
      { numRuns: 50 },
    );
  });

  it('64Mi hold some 200 opaque tokens of ten minutes a second', () => {
    const token = {
      tokenId: `007.${'x'.repeat(43)}`,
      issuedAtSeconds: 1_700_000_000,
      expiresAtSeconds: 1_700_000_600,
      clientUid: '6a0c4d1e-3c5b-5f43-9d0a-0f6f1f6f0001',
      clientId: 'shop.web',
      subject: 'shop.web',
      scope: ['shop/read'],
      audience: 'urn:grantry:ns:shop:default',
    };
    const perSecond = (64 * 2 ** 20) / storedBytes(token) / 600;
    expect(perSecond).toBeGreaterThan(190);
    expect(perSecond).toBeLessThan(210);
  });
});
