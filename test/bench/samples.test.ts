// The verdict of the soak on memory.

import { expect, it } from 'vitest';
import { growthOf, type Sample } from '../../bench/soak/samples.ts';

function sample(residentMegabytes: number): Sample {
  return { residentMegabytes, heapMegabytes: 50, redisMegabytes: 3, delayP99: 1, delayMax: 2 };
}

const resident = (megabytes: readonly number[]) => growthOf(megabytes.map(sample))[0]?.isFlat;

it('memory that rises at first and is level from the second quarter on → flat', () => {
  expect(resident([50, 90, 100, 101, 100, 99, 104, 105])).toBe(true);
});

it('memory that is a tenth larger in the last quarter than in the second → flat; more than that → not', () => {
  expect(resident([50, 90, 100, 100, 105, 108, 110, 110])).toBe(true);
  expect(resident([50, 90, 100, 100, 105, 108, 111, 111])).toBe(false);
});

it('one sample that stands out → flat, for medians are compared', () => {
  expect(resident([100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 300, 100])).toBe(true);
});

it('the heap and the memory of Redis are compared by themselves', () => {
  const growing = [1, 1, 2, 2, 3, 3, 4, 4].map((redisMegabytes) => ({ ...sample(100), redisMegabytes }));
  expect(growthOf(growing).map(({ isFlat }) => isFlat)).toEqual([true, true, false]);
});
