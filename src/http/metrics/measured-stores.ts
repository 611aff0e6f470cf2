// A decorator of the stores that measures the duration of each call and counts each failure. It wraps any
// implementation, so memory and Redis are measured alike, and it counts failures that callers handle without an error.

import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import type { Stores } from '../../oauth/ports/ports.ts';
import type { Metrics } from './metrics.ts';

/** Every action of every store; the compiler misses a new one here. */
const ACTIONS: { readonly [Name in keyof Stores]: Readonly<Record<keyof Stores[Name], true>> } = {
  grants: {
    issue: true,
    redeem: true,
    rotate: true,
    noteRetryElsewhere: true,
    revoke: true,
    read: true,
    status: true,
    subjectOf: true,
  },
  accessTokens: { write: true, read: true, revoke: true },
  revokedTokens: { mark: true, has: true },
  watermarks: { raise: true, read: true },
  users: { list: true, record: true, recordAbsence: true },
  persons: { remember: true, seal: true, read: true },
  sessions: { create: true, seal: true, use: true, end: true, endAll: true, list: true },
  logouts: { list: true, take: true, postpone: true, acknowledge: true },
  interactions: { create: true, read: true, decide: true, take: true },
  consents: { read: true, give: true, withdraw: true, list: true },
  uses: { note: true, forget: true, list: true },
  replays: { claim: true },
  rateLimits: { hit: true, refund: true },
};

/** Values of the label `operation` that are older than the name of their action: queries and alerts use them. */
const OPERATIONS: Readonly<Record<string, string>> = {
  'users.record': 'users.settle',
  'users.recordAbsence': 'users.settleAbsent',
  'logouts.acknowledge': 'logouts.settle',
};

type Action = (...given: readonly unknown[]) => Promise<unknown>;

/** The same stores; `operation` in the metrics is `<store>.<action>`, or what {@link OPERATIONS} has for it. */
export function measuredStores(stores: Stores, metrics: Metrics): Stores {
  const measured = Object.entries(ACTIONS).map(([name, actions]) => {
    const store = stores[name as keyof Stores] as unknown as Readonly<Record<string, Action>>;
    return [name, measuredStore(store, name, Object.keys(actions), metrics)];
  });
  return Object.fromEntries(measured) as unknown as Stores;
}

function measuredStore(
  store: Readonly<Record<string, Action>>,
  name: string,
  actions: readonly string[],
  metrics: Metrics,
): Readonly<Record<string, Action>> {
  return Object.fromEntries(
    actions.map((action) => {
      const called = `${name}.${action}`;
      const operation = OPERATIONS[called] ?? called;
      const duration = metrics.storeDuration.series({ operation });
      async function measuredAction(...given: readonly unknown[]): Promise<unknown> {
        const startedAt = performance.now();
        try {
          return await store[action]?.(...given);
        } catch (error) {
          const reason = error instanceof StoreUnavailableError ? error.reason : 'unexpected';
          metrics.storeErrors.inc({ operation, reason });
          throw error;
        } finally {
          duration.observe((performance.now() - startedAt) / 1000);
        }
      }
      return [action, measuredAction];
    }),
  );
}
