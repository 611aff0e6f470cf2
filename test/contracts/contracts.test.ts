// Every store contract on the stores of one process.

import { memoryStores } from '../../src/memory/stores.ts';
import { allContracts } from './all-contracts.ts';

allContracts('memory', async () => {
  let now = 1_800_000_000_000;
  return {
    stores: memoryStores({ clock: { now: () => now } }),
    now: () => now,
    advance(milliseconds) {
      now += milliseconds;
    },
    tick: 1,
    dispose: async () => {},
  };
});
