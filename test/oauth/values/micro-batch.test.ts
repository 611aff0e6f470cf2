import { expect, it } from 'vitest';
import { MicroBatch } from '../../../src/oauth/values/micro-batch.ts';

it('whoever waits for the end of a turn does each step together with all others of that turn', async () => {
  const turns = new MicroBatch({ endOfTurn: setImmediate });
  const order: string[] = [];
  const request = async (name: string) => {
    order.push(`${name} comes`);
    await turns.end();
    order.push(`${name} goes on`);
    await undefined;
    order.push(`${name} is done`);
  };
  const afterwards = new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  const [first, second] = [request('first'), Promise.resolve().then(() => request('second'))];
  await afterwards.then(() => order.push('next turn'));
  await Promise.all([first, second]);
  expect(order).toEqual([
    ...['first comes', 'second comes', 'first goes on', 'second goes on', 'first is done', 'second is done'],
    'next turn',
  ]);
});

it('a turn that has ended keeps nobody: who comes later waits for the end of the next', async () => {
  const ends: (() => void)[] = [];
  const turns = new MicroBatch({ endOfTurn: (task) => ends.push(task) });
  const first = turns.end();
  ends[0]?.();
  await first;
  let isOver = false;
  const second = turns.end().then(() => {
    isOver = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  ends[1]?.();
  await second;
  expect(ends).toHaveLength(2);
});
