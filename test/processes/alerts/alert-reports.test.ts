// What a replica reports to the controller of alerts, with a Redis that answers a hundred questions together.

import { expect, it } from 'vitest';
import type { Alert } from '../../../src/oauth/ports/audit.ts';
import { SHARDS } from '../../../src/oauth/values/shard.ts';
import { AlertReports } from '../../../src/processes/alerts/alert-reports.ts';
import type { Place } from '../../../src/redis/stores/outbox.ts';

const MANY = 1000;

function alertOf(index: number): Alert {
  const grantId = `${SHARDS[index % SHARDS.length]}.${index}`;
  return {
    id: `${grantId}.state_lost`,
    type: 'state_lost',
    time: 0,
    clientUid: 'u',
    clientId: 'c',
    subject: 's',
    grantId,
    presentedGeneration: 1,
    currentGeneration: 2,
    address: '192.0.2.1',
    lastAddress: undefined,
    action: 'healed_forward',
  };
}

/** Answers nothing until it was asked so often again. */
function answeringTogether(times: number, answer: (id: string) => boolean) {
  let asked = 0;
  let all = Promise.withResolvers<void>();
  return async ({ name }: Place) => {
    asked += 1;
    const { promise, resolve } = all;
    if (asked % times === 0) {
      resolve();
      all = Promise.withResolvers();
    }
    await promise;
    return answer(name);
  };
}

it('a thousand alerts cost a report no thousand turns to Redis, one after the other', async () => {
  const settled = new Set<string>();
  const alerts = Array.from({ length: MANY }, (_, index) => alertOf(index));
  const [first, ...others] = alerts.map(({ id }) => id);
  const acknowledged = others.slice(0, MANY / 2);
  const reports = new AlertReports({
    settle: answeringTogether(100, (id) => settled.size < settled.add(id).size),
    has: answeringTogether(100, (id) => id !== first),
  });
  for (const alert of alerts) reports.note(alert);
  const told = await reports.exchange(acknowledged);
  expect(settled).toEqual(new Set(acknowledged));
  expect(told.map(({ id }) => id)).toEqual(others.slice(MANY / 2));
});
