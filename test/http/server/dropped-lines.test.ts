// The admin port counts lines that the output could not take in time. That they are dropped and counted is log-output.ts's.

import { expect, it } from 'vitest';
import { Metrics } from '../../../src/http/metrics/metrics.ts';

it('lines that were dropped are counted since the start, however often that is read', async () => {
  let dropped = 0;
  const metrics = new Metrics({ clients: () => 0, logDropped: () => dropped, processMetrics: false });
  const counted = async () => /^grantry_audit_dropped_total (\S+)$/m.exec(await metrics.text())?.[1];
  expect(await counted()).toBe('0');
  dropped = 3;
  expect([await counted(), await counted()]).toEqual(['3', '3']);
  dropped = 5;
  expect(await counted()).toBe('5');
});
