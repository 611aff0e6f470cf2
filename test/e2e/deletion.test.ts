// What goes with a client, and what stays: garbage collection and namespaces that end need a whole Kubernetes.

import { afterAll, expect, it } from 'vitest';
import {
  apply,
  createNamespace,
  deleteNamespaces,
  eventually,
  find,
  get,
  kubectl,
  list,
  secretValue,
  waitReady,
} from './setup/kubectl.ts';
import { sharedInstall } from './setup/shared-install.ts';
import { createMachineClient, machineSpec, oauthClient } from './setup/tenants.ts';

const TENANT = 'e2e-deletion';
const CLIENTS = 20;
/** Whether garbage collection or the controller is first is a matter of milliseconds: many tries meet both. */
const TRIES = 15;

afterAll(() => deleteNamespaces(TENANT));

/** The Secret of the release namespace that verifies a client's secret; undefined when there is none. */
async function verifierOf(uid: string | undefined) {
  return await find('secret', `grantry-client-${uid}`, sharedInstall.namespace);
}

it('the Secret of a deleted client goes with it, and so does what verified it', async () => {
  const { namespace, name, secretName } = await createMachineClient(TENANT);
  const { metadata } = await get('oauthclient', name, namespace);
  expect(await verifierOf(metadata.uid)).toBeDefined();
  const secret = await get('secret', secretName, namespace);
  expect(secret.metadata.ownerReferences).toMatchObject([{ kind: 'OAuthClient', name }]);
  await kubectl('delete', 'oauthclient', name, '-n', namespace);
  await eventually('its Secret is gone', async () => (await find('secret', secretName, namespace)) === undefined);
  await eventually('its verifier is gone', async () => (await verifierOf(metadata.uid)) === undefined);
});

it('the Secret of a deleted client stays where that was asked for', async () => {
  const auth = { clientSecret: { deletionPolicy: 'Retain' } };
  await apply(oauthClient(TENANT, 'kept', { ...machineSpec(TENANT), auth }));
  await waitReady(TENANT, 'oauthclient/kept');
  const { metadata } = await get('oauthclient', 'kept', TENANT);
  expect((await get('secret', 'kept-oauth', TENANT)).metadata.ownerReferences).toBeUndefined();
  await kubectl('delete', 'oauthclient', 'kept', '-n', TENANT);
  // What is ours to delete is gone, so whatever collects garbage had its time.
  await eventually('its verifier is gone', async () => (await verifierOf(metadata.uid)) === undefined);
  expect(await find('secret', 'kept-oauth', TENANT)).toBeDefined();
});

it('a client that is deleted and made again at once, many times → another secret each time, which stays', async () => {
  const client = oauthClient(TENANT, 'again', machineSpec(TENANT));
  const secrets: string[] = [];
  for (let made = 0; made < TRIES; made++) {
    await apply(client);
    await waitReady(TENANT, 'oauthclient/again');
    secrets.push(await secretValue(TENANT, 'again-oauth', 'client-secret'));
    if (made < TRIES - 1) await kubectl('delete', 'oauthclient', 'again', '-n', TENANT);
  }
  expect(new Set(secrets).size).toBe(TRIES);
  // A Secret that is collected after another one shows that garbage collection had its time.
  const owned = oauthClient(TENANT, 'collected', machineSpec(TENANT));
  await apply(owned);
  await waitReady(TENANT, 'oauthclient/collected');
  await kubectl('delete', 'oauthclient', 'collected', '-n', TENANT);
  const isCollected = async () => (await find('secret', 'collected-oauth', TENANT)) === undefined;
  await eventually('another Secret is collected', isCollected);
  expect(await secretValue(TENANT, 'again-oauth', 'client-secret')).toBe(secrets.at(-1));
});

it('a namespace full of clients is deleted at once', async () => {
  const namespace = await createNamespace('e2e-ending');
  const clients = Array.from({ length: CLIENTS }, (_, index) => {
    return oauthClient(namespace, `client-${index}`, machineSpec(namespace));
  });
  await apply(...clients);
  await kubectl('wait', '--for=condition=Ready', '--timeout=120s', '-n', namespace, 'oauthclients', '--all');
  const uids = (await list('oauthclients', namespace)).map(({ metadata }) => metadata.uid);
  expect(uids.length).toBe(CLIENTS);
  await deleteNamespaces(namespace);
  expect(await find('namespace', namespace)).toBeUndefined();
  await eventually('nothing of its clients is left', async () => {
    const verifiers = await list('secrets', sharedInstall.namespace, 'grantry.dev/part=verifier');
    return !verifiers.some(({ metadata }) => uids.includes(metadata.name.replace('grantry-client-', '')));
  });
});
