// What a replica reports of its identity providers.

import { expect, it } from 'vitest';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { Replica, type ReplicaOptions } from '../../../src/processes/server/replica.ts';

type Reports = ReturnType<NonNullable<ReturnType<ReplicaOptions['providerClients']>>['reports']>;

it.each<[string, Reports, object]>([
  ['no word of it yet', new Map(), { generation: 2, reachable: false, reason: 'NotObserved' }],
  [
    'word of another generation',
    new Map([['corp', { generation: 1, reach: 'Reachable', isOverage: true }]]),
    { generation: 2, reachable: false, reason: 'NotObserved' },
  ],
  [
    'a provider that is reached',
    new Map([['corp', { generation: 2, reach: 'Reachable', isOverage: false }]]),
    { generation: 2, reachable: true, reason: 'Reachable' },
  ],
  [
    'people who signed in without groups',
    new Map([['corp', { generation: 2, reach: 'DiscoveryFailed', isOverage: true }]]),
    { generation: 2, reachable: false, reason: 'DiscoveryFailed', isOverage: true },
  ],
])('given %s → its report', (_, reports, expected) => {
  const registry = { servedProviders: new Map([['corp', { generation: 2 }]]) };
  const usage = { since: () => ({ cursor: 'a', lastUsed: {}, denied: {} }) };
  const replica = new Replica({
    registry: registry as unknown as ReplicaOptions['registry'],
    usage: usage as unknown as ReplicaOptions['usage'],
    providerClients: () => ({ reports: () => reports }),
    users: () => new Map(),
    clock: systemClock,
  });
  expect(replica.report({}).providers).toEqual({ corp: expected });
});
