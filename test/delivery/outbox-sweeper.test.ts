// What a sweeper begins, in which order, and how much at once.

import { pino } from 'pino';
import { expect, it } from 'vitest';
import { OutboxSweeper, type OutboxSweeperParts } from '../../src/delivery/outbox-sweeper.ts';
import { StoreUnavailableError } from '../../src/oauth/ports/error.ts';
import { SHARDS } from '../../src/oauth/values/shard.ts';
import { until } from '../until.ts';

/** A sweeper of texts, what it has begun, and the faults in its log. */
function aSweeper(different: Partial<OutboxSweeperParts<string>> = {}) {
  const begun: string[] = [];
  const faults: string[] = [];
  const log = pino(
    { level: 'error' },
    { write: (line) => void faults.push((JSON.parse(line) as { msg: string }).msg) },
  );
  const gate = Promise.withResolvers<void>();
  const sweeper = new OutboxSweeper<string>({
    list: async () => [],
    nameOf: (entry) => entry,
    handle: async (entry) => {
      begun.push(entry);
      await gate.promise;
    },
    log,
    faultMessage: 'a fault',
    ...different,
  });
  return { sweeper, begun, faults, open: () => gate.resolve() };
}

const many = (count: number) => Array.from({ length: count }, (_, index) => `entry ${index}`);

it('given more than sixteen entries → sixteen are handled at once, the others in their order', async () => {
  const { sweeper, begun, open } = aSweeper();
  sweeper.enqueue(many(40));
  expect(begun).toEqual(many(16));
  open();
  await until('all were begun', () => begun.length === 40);
  expect(begun).toEqual(many(40));
});

it('given more than wait → the rest is left to the sweep', async () => {
  const { sweeper, begun, open } = aSweeper();
  sweeper.enqueue(many(16));
  sweeper.enqueue(many(1020).slice(16));
  open();
  await until('all that wait were begun', () => begun.length >= 1016);
  await sweeper.stop();
  expect(begun).toEqual(many(1016));
});

it('given an entry that is under way → it is not begun again, by a sweep neither, until it ends', async () => {
  const { sweeper, begun, open } = aSweeper({ list: async (shard) => (shard === '000' ? ['one'] : []) });
  sweeper.enqueue(['one', 'one']);
  const swept = sweeper.sweep();
  expect([begun, sweeper.isUnderWay('one')]).toEqual([['one'], true]);
  open();
  await swept;
  expect([begun, sweeper.isUnderWay('one')]).toEqual([['one'], false]);
  await sweeper.sweep();
  expect(begun).toEqual(['one', 'one']);
});

it('given a shard and an entry that fail → the others are handled, and only what is no absence of the store is logged', async () => {
  const handled: string[] = [];
  const { sweeper, faults } = aSweeper({
    async list(shard) {
      if (shard === '001') throw new StoreUnavailableError('outboxList');
      if (shard === '002') throw new TypeError('not a hash');
      return [shard];
    },
    async handle(shard) {
      if (shard === '003') throw new TypeError('no entry');
      if (shard === '004') throw new StoreUnavailableError('outboxTake');
      handled.push(shard);
    },
  });
  await sweeper.sweep();
  expect(handled).toEqual(SHARDS.filter((shard) => !['001', '002', '003', '004'].includes(shard)));
  expect(faults).toEqual(['a fault', 'a fault']);
});

it('given a stop → what is under way ends, and nothing begins any more', async () => {
  const { sweeper, begun, open } = aSweeper({ list: async () => ['left'] });
  sweeper.enqueue(many(20));
  const stopped = sweeper.stop();
  sweeper.enqueue(['late']);
  open();
  await stopped;
  await sweeper.sweep();
  expect([begun, sweeper.isStopped]).toEqual([many(16), true]);
});

it('given a start → it sweeps again and again, until the stop', async () => {
  let lists = 0;
  const { sweeper } = aSweeper({
    pause: 1,
    async list() {
      lists += 1;
      return [];
    },
  });
  sweeper.start();
  await until('it has swept twice', () => lists >= 2 * SHARDS.length);
  await sweeper.stop();
});
