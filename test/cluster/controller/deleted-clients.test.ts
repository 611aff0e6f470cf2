// What remains of a client that is deleted: of one that is deleted during its first reconcile nothing, and of one that is made
// again under its name only what it retained. The cluster has no garbage collector: what it would remove stays.

import { expect, it } from 'vitest';
import { verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import type { ControllerSources } from '../../../src/processes/controller/controller-sources.ts';
import { until } from '../../until.ts';
import { ClientInstall, type RunningController, type Write } from '../setup/client-controllers.ts';
import { FaultProxy, watchOf } from '../setup/fault-proxy.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();
const VALUE = 'an-example-value-of-a-client-that-was-deleted';
const OAUTH_CLIENT = { apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient' };

it.each([
  ['verifier', ({ name }: Write) => name.startsWith('grantry-client-')],
  ['Secret', ({ name }: Write) => name.endsWith('-oauth')],
])(
  'a client that is deleted while its first %s is on its way → the verifier Secret is removed within a minute',
  async (_, isMeant) => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    let sources: ControllerSources | undefined;
    let uid: string | undefined;
    const onItsWay = async (write: Write) => {
      if (uid !== undefined || write.verb !== 'create' || !isMeant(write)) return;
      ({ uid } = (await install.client(team, 'brief')).metadata);
      await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients/brief`);
      await until('the deletion is observed', () => sources?.clients.get(`${team}/brief`) === undefined);
    };
    const controller = await install.start({
      onItsWay,
      beforeLeading: async (known) => {
        sources = known;
      },
    });
    await install.apply(team, 'brief');
    const verifier = () => verifierSecretName(uid ?? '');
    const removals = () => controller.writes.filter(({ verb, name }) => verb === 'delete' && name === verifier());
    const isGone = async () => removals().length > 0 && (await install.verifiers(uid ?? '')) === undefined;
    await until('the verifier Secret is removed', isGone, 60_000);
  },
);

async function deleteClient(team: string, name: string): Promise<void> {
  await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients/${name}`);
}

it.each([
  ['', {}, {}],
  [', its owner called its controller', {}, { controller: true, blockOwnerDeletion: true }],
  [' with `Retain`', { clientSecret: { deletionPolicy: 'Retain' } }, {}],
  [' with the same `secretName`', { clientSecret: { secretName: 'web-oauth' } }, {}],
])(
  'a client that is deleted and made again at once%s → another secret in another Secret, and the former one is accepted nowhere',
  async (_, auth, reference) => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    const controller = await install.start();
    await install.apply(team, 'web');
    const former = (await install.whenReady(team, 'web')).metadata;
    const first = await install.secret(team, 'web-oauth');
    const ownerReferences = [{ ...first?.metadata.ownerReferences[0], ...reference }];
    await install.patch(`/api/v1/namespaces/${team}/secrets/web-oauth`, { metadata: { ownerReferences } });
    await controller.whenAtRest(team, 'web');
    await deleteClient(team, 'web');
    await install.apply(team, 'web', { auth });
    const { metadata } = await install.whenReady(team, 'web');
    expect(metadata.uid).not.toBe(former.uid);
    const second = await install.secret(team, 'web-oauth');
    expect(second?.metadata.uid).not.toBe(first?.metadata.uid);
    const [old, value] = [first, second].map((secret) => secret?.data['client-secret']);
    expect([await install.accepts(metadata.uid, old), await install.accepts(metadata.uid, value)]).toEqual([
      false,
      true,
    ]);
    const owners = second?.metadata.ownerReferences?.map(({ uid }: { uid: string }) => uid) ?? [];
    expect(owners).toEqual('clientSecret' in auth && 'deletionPolicy' in auth.clientSecret ? [] : [metadata.uid]);
    await controller.expectEventsOf('web', ['SecretCreated', 'SecretCreated']);
  },
);

it('a client with `Retain` that is deleted and made again at once → its Secret keeps its value, which is accepted', async () => {
  const install = await ClientInstall.make(cluster);
  const team = await cluster.namespace();
  const controller = await install.start();
  const auth = { clientSecret: { deletionPolicy: 'Retain' } };
  await install.apply(team, 'web', { auth });
  await install.whenReady(team, 'web');
  const first = await install.secret(team, 'web-oauth');
  await deleteClient(team, 'web');
  await install.apply(team, 'web', { auth });
  const { metadata } = await install.whenReady(team, 'web');
  const second = await install.secret(team, 'web-oauth');
  expect([second?.metadata.uid, second?.data]).toEqual([first?.metadata.uid, first?.data]);
  expect(await install.accepts(metadata.uid, first?.data['client-secret'])).toBe(true);
  await controller.expectEventsOf('web', ['SecretCreated', 'SecretAdopted']);
});

/** A Secret of the name of a client that is not there yet, with the labels of one that was deleted. */
async function leftOver(team: string, metadata: object): Promise<void> {
  const labels = { 'grantry.dev/client': 'web', 'grantry.dev/client-uid': crypto.randomUUID() };
  const object = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: team, name: 'web-oauth', labels, ...metadata },
  };
  await cluster.apply({ ...object, stringData: { 'client-secret': VALUE } });
}

async function inNewTeam(): Promise<{ install: ClientInstall; team: string; controller: RunningController }> {
  const install = await ClientInstall.make(cluster);
  return { install, team: await cluster.namespace(), controller: await install.start() };
}

it.each([
  ['another controller', { apiVersion: 'apps/v1', kind: 'Deployment' }],
  ['an object of another kind of grantry', { ...OAUTH_CLIENT, kind: 'ProtectedResource' }],
  ['an OAuthClient of another API group', { ...OAUTH_CLIENT, apiVersion: 'example.com/v1' }],
])('a Secret of a deleted client that %s owns → adopted with its value and its owner', async (_, kind) => {
  const { install, team, controller } = await inNewTeam();
  const owner = { ...kind, name: 'web', uid: crypto.randomUUID(), controller: true };
  await leftOver(team, { ownerReferences: [owner] });
  await install.apply(team, 'web');
  const { metadata } = await install.whenReady(team, 'web');
  const secret = await install.secret(team, 'web-oauth');
  expect(secret?.data['client-secret']).toBe(VALUE);
  expect(secret?.metadata.ownerReferences).toMatchObject([owner, { uid: metadata.uid }]);
  await controller.expectEventsOf('web', ['SecretAdopted']);
});

it('a Secret of a deleted client that is restored without owners over the Secret of the present one → adopted with its value', async () => {
  const { install, team, controller } = await inNewTeam();
  await install.apply(team, 'web');
  const { uid } = (await install.whenReady(team, 'web')).metadata;
  const before = await install.secret(team, 'web-oauth');
  await leftOver(team, {});
  await until('its value is accepted', async () => await install.accepts(uid, VALUE));
  await controller.whenAtRest(team, 'web');
  const after = await install.secret(team, 'web-oauth');
  expect([after?.metadata.uid, after?.data['client-secret']]).toEqual([before?.metadata.uid, VALUE]);
  await controller.expectEventsOf('web', ['SecretCreated', 'SecretAdopted']);
});

it.each([
  [
    'an owner more',
    async (team: string) => {
      const other = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: crypto.randomUUID() };
      await leftOver(team, { ownerReferences: [{ ...OAUTH_CLIENT, name: 'web', uid: crypto.randomUUID() }, other] });
    },
  ],
  [
    'an OAuthClient that exists as its owner',
    async (team: string, install: ClientInstall) => {
      await install.apply(team, 'other');
      const { uid } = (await install.whenReady(team, 'other')).metadata;
      await leftOver(team, { ownerReferences: [{ ...OAUTH_CLIENT, name: 'other', uid }] });
    },
  ],
  [
    'an OAuthClient that exists as its owner, by another name',
    async (team: string, install: ClientInstall) => {
      await install.apply(team, 'other');
      const { uid } = (await install.whenReady(team, 'other')).metadata;
      await leftOver(team, { ownerReferences: [{ ...OAUTH_CLIENT, name: 'web', uid }] });
    },
  ],
  [
    'an OAuthClient of another name as its owner',
    async (team: string) =>
      await leftOver(team, { ownerReferences: [{ ...OAUTH_CLIENT, name: 'gone', uid: crypto.randomUUID() }] }),
  ],
])('a Secret of a deleted client with %s → SecretNotOwned, and it stays as it is', async (_, make) => {
  const { install, team, controller } = await inNewTeam();
  await make(team, install);
  const before = await install.secret(team, 'web-oauth');
  await install.apply(team, 'web');
  const { metadata } = await install.whenCondition(team, 'web', 'CredentialsReady', 'SecretNotOwned');
  expect(await install.secret(team, 'web-oauth')).toEqual(before);
  expect(await install.verifiers(metadata.uid)).toBeUndefined();
  await controller.expectEventsOf('web', ['SecretNotOwned']);
});

it('a Secret of a deleted client that a finalizer keeps → SecretNotOwned until it is gone, and then another one', async () => {
  const { install, team, controller } = await inNewTeam();
  const ownerReferences = [{ ...OAUTH_CLIENT, name: 'web', uid: crypto.randomUUID() }];
  await leftOver(team, { ownerReferences, finalizers: ['example.com/backup'] });
  await install.apply(team, 'web');
  await install.whenCondition(team, 'web', 'CredentialsReady', 'SecretNotOwned');
  const kept = await install.secret(team, 'web-oauth');
  expect([kept?.data, typeof kept?.metadata.deletionTimestamp]).toEqual([{ 'client-secret': VALUE }, 'string']);
  await install.patch(`/api/v1/namespaces/${team}/secrets/web-oauth`, { metadata: { finalizers: null } });
  const { metadata } = await install.whenReady(team, 'web');
  const secret = await install.secret(team, 'web-oauth');
  expect(secret?.data['client-secret']).not.toBe(VALUE);
  expect(await install.accepts(metadata.uid, VALUE)).toBe(false);
  expect((await install.verifiers(metadata.uid))?.verifiers).toHaveLength(1);
  await controller.expectEventsOf('web', ['SecretNotOwned', 'SecretCreated', 'Ready']);
});

it('a Secret whose owner is removed, as `--cascade=orphan` does, before its deletion arrives → adopted with its value', async () => {
  const install = await ClientInstall.make(cluster);
  const team = await cluster.namespace();
  let isOrphaned = false;
  const before = async ({ verb, name }: Write) => {
    if (isOrphaned || verb !== 'delete' || name !== 'web-oauth') return;
    isOrphaned = true;
    await install.patch(`/api/v1/namespaces/${team}/secrets/web-oauth`, { metadata: { ownerReferences: null } });
  };
  const controller = await install.start({ before });
  await leftOver(team, { ownerReferences: [{ ...OAUTH_CLIENT, name: 'web', uid: crypto.randomUUID() }] });
  await install.apply(team, 'web');
  const { metadata } = await install.whenReady(team, 'web');
  expect(isOrphaned).toBe(true);
  expect((await install.secret(team, 'web-oauth'))?.data['client-secret']).toBe(VALUE);
  expect(await install.accepts(metadata.uid, VALUE)).toBe(true);
  await controller.expectEventsOf('web', ['SecretAdopted']);
});

it('a leader whose watch of clients is behind, and knows the former client of the name alone → the Secret of the present one is not deleted', async () => {
  const install = await ClientInstall.make(cluster);
  const team = await cluster.namespace();
  await install.apply(team, 'web');
  const proxy = await FaultProxy.start(cluster.address);
  try {
    const behind = await install.start({
      url: proxy.url,
      beforeLeading: async () => {
        proxy.stall(watchOf('oauthclients'));
        await deleteClient(team, 'web');
        await install.apply(team, 'web');
        const former = await install.start();
        await install.whenReady(team, 'web');
        await former.whenAtRest(team, 'web');
        await former.stop();
        proxy.requests.length = 0;
      },
    });
    const { metadata } = await install.client(team, 'web');
    const before = await install.secret(team, 'web-oauth');
    const isAsked = ({ method, path }: { method: string; path: string }) =>
      method === 'GET' && path.endsWith('/oauthclients/web');
    await until('the API server is asked for the client', () => proxy.requests.filter(isAsked).length > 1);
    expect(behind.writes.filter(({ kind }) => kind === 'Secret')).toEqual([]);
    expect(await install.secret(team, 'web-oauth')).toEqual(before);
    expect(await install.accepts(metadata.uid, before?.data['client-secret'])).toBe(true);
    proxy.clear();
    await behind.stop();
  } finally {
    await proxy.stop();
  }
});
