import { describe, expect, it } from 'vitest';
import { untilLastUsedReport } from '../../../src/controller/clients/client-reconciler.ts';

describe('the day of the last use', () => {
  it('is reported at a time of day of each client, spread over the day', () => {
    const midnight = Date.parse('2026-03-01T00:00:00Z');
    const times = Array.from({ length: 240 }, (_, index) => untilLastUsedReport(`uid-${index}`, midnight));
    const hours = new Set(times.map((time) => Math.floor(time / 3_600_000)));
    expect(hours.size).toBe(24);
    const [first = 0] = times;
    expect(untilLastUsedReport('uid-0', midnight + first - 1)).toBe(1);
    expect(untilLastUsedReport('uid-0', midnight + first)).toBe(0);
    expect(untilLastUsedReport('uid-0', midnight + 86_400_000)).toBe(first);
  });
});
