// The ports of tests: two who ask before the server of either listens.

import { expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../free-port.ts';

it('a port that was given out is not given out again', async () => {
  const chance = Math.random();
  const random = vi.spyOn(Math, 'random').mockReturnValueOnce(chance).mockReturnValueOnce(chance);
  onTestFinished(() => random.mockRestore());
  const first = await freePort();
  expect(await freePort()).not.toBe(first);
});
