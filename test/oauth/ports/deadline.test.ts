import { describe, expect, it } from 'vitest';
import { withDeadline } from '../../../src/oauth/ports/deadline.ts';

const FAULT = new Error('of the work');
const REASON = new Error('of the deadline');

describe('work with a deadline', () => {
  it('that ends before → its outcome', async () => {
    const { signal } = new AbortController();
    expect(await withDeadline(signal, Promise.resolve('done'))).toBe('done');
    await expect(withDeadline(signal, Promise.reject(FAULT))).rejects.toBe(FAULT);
  });

  it.each([
    ['that never ends', () => new Promise<never>(() => {})],
    [
      'that fails of it first',
      (signal: AbortSignal) =>
        new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(FAULT))),
    ],
  ])('%s → the reason of the signal', async (_, work) => {
    const controller = new AbortController();
    const settled = withDeadline(controller.signal, work(controller.signal));
    controller.abort(REASON);
    await expect(settled).rejects.toBe(REASON);
  });

  it('that is over already → the reason of the signal', async () => {
    await expect(withDeadline(AbortSignal.abort(REASON), new Promise(() => {}))).rejects.toBe(REASON);
  });
});
