// Random histories over the stores of one process. Over Redis: `test/redis/grants/model.test.ts`.

import { describe, it } from 'vitest';
import { memoryStores } from '../../../src/memory/stores.ts';
import { runModel } from './model-run.ts';

describe('any history of grants over memory stores', () => {
  it('keeps one redemption, revoked families revoked, scopes from growing, tokens with their client, one alert each', async () => {
    await runModel('memory stores', async (clock) => ({ replicas: [memoryStores({ clock })] }), { runs: 60 });
  });
});
