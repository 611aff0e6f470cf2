import { expect, it } from 'vitest';
import { MicroBatch } from '../../../src/oauth/values/micro-batch.ts';

it('callers that join in one tick run each step one right after the other at its end', async () => {
  const batch = new MicroBatch({ endOfTick: setImmediate });
  const order: string[] = [];
  const request = async (name: string) => {
    order.push(`${name} comes`);
    await batch.join();
    order.push(`${name} goes on`);
    await undefined;
    order.push(`${name} is done`);
  };
  const afterwards = new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  const [first, second] = [request('first'), Promise.resolve().then(() => request('second'))];
  await afterwards.then(() => order.push('next tick'));
  await Promise.all([first, second]);
  expect(order).toEqual([
    ...['first comes', 'second comes', 'first goes on', 'second goes on', 'first is done', 'second is done'],
    'next tick',
  ]);
});

it('a batch that has ended takes no more callers: a later one waits for the end of the next tick', async () => {
  const ends: (() => void)[] = [];
  const batch = new MicroBatch({ endOfTick: (task) => ends.push(task) });
  const first = batch.join();
  ends[0]?.();
  await first;
  let isOver = false;
  const second = batch.join().then(() => {
    isOver = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  ends[1]?.();
  await second;
  expect(ends).toHaveLength(2);
});
