import { expect, it } from 'vitest';
import { validateManifests } from '../../src/folder-registry/manifest-verdicts.ts';
import { machineClient, manifestsOf } from '../manifests/a-folder.ts';

const AUTH = '  auth:\n    method: kubernetes_service_account\n    serviceAccounts: [{name: worker}, {name: helper}]\n';

function account(name: string): string {
  return `apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${name}}\n`;
}

async function validated(...accounts: readonly string[]) {
  const set = await manifestsOf({ 'a.yaml': [machineClient('working', AUTH), ...accounts.map(account)].join('---\n') });
  return await validateManifests(set, {
    supportedAuthMethods: ['kubernetes_service_account'],
    issuer: 'http://127.0.0.1:9400',
    unknownFields: 'ignore',
    now: 0,
    classes: 'default',
    releaseNamespace: 'default',
    reservedNamespace: undefined,
    defaultPolicy: 'Baseline',
    references: { verifiersOf: () => [], assumeMissing: false },
    reachable: { status: 'Unknown', reason: 'NotObserved', message: '' },
    programmed: { status: 'True', reason: 'Programmed', message: 'Served.' },
    userFiles: 'refuse',
  });
}

it('a ServiceAccount that is missing beside another → a warning at its line, and the client is served', async () => {
  const { clients, faults, advisories } = await validated('worker');
  expect(faults).toEqual([]);
  expect(clients[0]?.client?.serviceAccounts.map(({ name }) => name)).toEqual(['worker']);
  const field = 'spec.auth.serviceAccounts[1].name';
  expect(advisories).toMatchObject([{ reason: 'ServiceAccountNotFound', place: { file: 'a.yaml', field } }]);
});

it('every ServiceAccount is missing → faults and no warning', async () => {
  const { clients, faults, advisories } = await validated();
  expect(clients[0]?.client).toBeUndefined();
  expect(faults.map(({ reason }) => reason)).toEqual(['ServiceAccountNotFound', 'ServiceAccountNotFound']);
  expect(advisories).toEqual([]);
});
