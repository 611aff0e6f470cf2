// The accounts of kubernetes_service_account clients.

import { describe, expect, it } from 'vitest';
import { admitOne, clientDocument, MACHINE, summaryOf, type WorldSettings } from '../world.ts';

const SUPPORTED: WorldSettings = { supportedAuthMethods: ['kubernetes_service_account'] };

function account(name: string, namespace = 'team') {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } };
}

function admitted(names: readonly string[], accounts: readonly object[], settings: WorldSettings = {}) {
  const serviceAccounts = names.map((name) => ({ name }));
  const spec = { ...MACHINE, auth: { method: 'kubernetes_service_account', serviceAccounts } };
  return admitOne([clientDocument(spec), ...accounts], { ...SUPPORTED, ...settings });
}

describe('the ServiceAccounts of a client', () => {
  it('are served with the uids that they have now', () => {
    const accountUids = { worker: 'uid-2' };
    const { client, conditions } = admitted(['worker', 'helper'], [account('worker'), account('helper')], {
      accountUids,
    });
    expect(client?.serviceAccounts).toEqual([
      { name: 'worker', uid: 'uid-2' },
      { name: 'helper', uid: 'uid-of-helper' },
    ]);
    expect(summaryOf(conditions)).toContain('CredentialsReady=True/NotRequired');
  });

  it('one is missing → the others work, and the condition names it', () => {
    const { client, faults, conditions } = admitted(['worker', 'helper'], [account('worker')]);
    expect(client?.serviceAccounts).toEqual([{ name: 'worker', uid: 'uid-of-worker' }]);
    expect(faults).toEqual([]);
    expect(conditions.find(({ type }) => type === 'CredentialsReady')?.message).toContain('helper');
  });

  it('all are missing, one of them in another namespace → ServiceAccountNotFound for each', () => {
    const { client, faults, conditions } = admitted(['worker', 'helper'], [account('worker', 'other')]);
    expect(client).toBeUndefined();
    expect(faults.map(({ reason }) => reason)).toEqual(['ServiceAccountNotFound', 'ServiceAccountNotFound']);
    expect(summaryOf(conditions)).toContain('ResolvedRefs=False/ServiceAccountNotFound');
  });

  it.each([
    ['none', [], ['spec', 'auth', 'serviceAccounts']],
    ['default among others', ['worker', 'default'], ['spec', 'auth', 'serviceAccounts', 1, 'name']],
  ])('%s → InvalidManifest', (_, names, path) => {
    const { client, faults } = admitted(names, [account('worker'), account('default')]);
    expect(faults).toMatchObject([{ reason: 'InvalidManifest', path }]);
    expect(client).toBeUndefined();
  });

  it('assumed by an offline check → no fault, and not served', () => {
    const { client, faults } = admitted(['worker'], [], { otherAccounts: 'assumed' });
    expect([client, faults]).toEqual([undefined, []]);
  });

  it('not known to a token server yet → pending', () => {
    const { client, faults, conditions } = admitted(['worker'], [], { otherAccounts: 'withheld' });
    expect([client, faults]).toEqual([undefined, []]);
    expect(summaryOf(conditions)).toContain('CredentialsReady=Unknown/Pending');
  });
});
