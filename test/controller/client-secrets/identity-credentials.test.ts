// The ServiceAccounts that authenticate a client, as the controller finds them.

import { expect, it } from 'vitest';
import { accountUids } from '../../../src/controller/client-secrets/identity-credentials.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';

it('a ServiceAccount → has its uid until it is deleted or about to be', () => {
  const accounts = new Map<string, KubernetesObject>();
  const uid = () => accountUids(accounts)('team', 'worker');
  const account = (metadata: object) => {
    const identity = { name: 'worker', namespace: 'team', uid: 'one', resourceVersion: '1' };
    const created = { creationTimestamp: '2026-01-01T00:00:00Z' };
    accounts.set('team/worker', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { ...identity, ...created, ...metadata },
    });
  };
  expect(uid()).toBeUndefined();
  account({});
  expect(uid()).toBe('one');
  account({ deletionTimestamp: '2026-01-02T00:00:00Z' });
  expect(uid()).toBeUndefined();
});
