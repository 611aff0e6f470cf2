import { expect, it } from 'vitest';
import { FetchSlots } from '../../src/outbound/fetch-slots.ts';

const { signal } = new AbortController();

/** Slots, and the namespaces that have got one, in order. */
function someSlots() {
  const slots = new FetchSlots();
  const entered: string[] = [];
  const enter = async (namespace: string, until = signal) => {
    const leave = await slots.enter(namespace, until);
    entered.push(namespace);
    return leave;
  };
  return { entered, enter };
}

/** Resolves after what has a slot has run on. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

it('given two fetches of a namespace → its third waits for one of them, and another namespace does not', async () => {
  const { entered, enter } = someSlots();
  const [leave] = await Promise.all([enter('a'), enter('a')]);
  const third = enter('a');
  await enter('b');
  expect(entered).toEqual(['a', 'a', 'b']);
  leave();
  await third;
  expect(entered).toEqual(['a', 'a', 'b', 'a']);
});

it('given fifteen fetches → the last five places are for namespaces without one, and the 21st fetch waits', async () => {
  const { entered, enter } = someSlots();
  const pairs: (() => void)[] = [];
  for (let index = 0; index < 14; index++) pairs.push(await enter(`pair-${index % 7}`));
  const leave = await enter('one');
  const second = enter('one');
  const first = [1, 2, 3, 4, 5, 6].map((index) => enter(`first-${index}`));
  await Promise.all(first.slice(0, 5));
  await settled();
  expect(entered.slice(15)).toEqual(['first-1', 'first-2', 'first-3', 'first-4', 'first-5']);
  pairs[0]?.();
  await first[5];
  await settled();
  expect(entered.slice(20)).toEqual(['first-6']);
  leave();
  await second;
  expect(entered.slice(20)).toEqual(['first-6', 'one']);
});

it('given fourteen fetches → a namespace has a second one', async () => {
  const { entered, enter } = someSlots();
  for (let index = 0; index < 14; index++) await enter(`n-${index}`);
  await enter('n-0');
  expect(entered).toHaveLength(15);
});

it('given a wait that ends without a slot → it takes none', async () => {
  const { entered, enter } = someSlots();
  const [leave] = await Promise.all([enter('a'), enter('a')]);
  const stop = new AbortController();
  const givenUp = enter('a', stop.signal);
  stop.abort('over');
  await expect(givenUp).rejects.toBe('over');
  await expect(enter('b', stop.signal)).rejects.toBe('over');
  leave();
  await enter('a');
  expect(entered).toEqual(['a', 'a', 'a']);
});
