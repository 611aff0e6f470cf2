// An install that goes and comes back: clients, their Secrets, signing keys and the pepper are there before and after, and
// what was handed out works on.

import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { afterAll, expect, it } from 'vitest';
import { deleteNamespaces, find, get, list, outcomeOf, run, secretValue, waitReady } from './setup/kubectl.ts';
import { PortForward } from './setup/port-forward.ts';
import { ISSUER, sharedInstall } from './setup/shared-install.ts';
import { createMachineClient, type MachineClient, requestToken } from './setup/tenants.ts';

const TENANT = 'e2e-kept';
const CRDS = ['oauthclients', 'protectedresources', 'identityproviders', 'signingkeys', 'clientpolicies'].map(
  (name) => `${name}.grantry.dev`,
);
const { namespace } = sharedInstall;

afterAll(() => deleteNamespaces(TENANT));

async function crdsExist(): Promise<boolean> {
  return (await outcomeOf('kubectl', ['get', 'crds', ...CRDS])).code === 0;
}

/** What must not change: uids and values of what clients and tokens stand on. */
async function foundations() {
  const keys = await list('secrets', namespace, 'grantry.dev/part=signing-key');
  const { metadata } = await get('oauthclient', 'worker', TENANT);
  return {
    client: metadata.uid,
    secret: await secretValue(TENANT, 'worker-oauth', 'client-secret'),
    pepper: (await get('secret', 'grantry-pepper', namespace)).data,
    keys: keys.map(({ metadata }) => metadata.uid).sort(),
  };
}

it('CRDs and clients stay when crds.enabled becomes false', async () => {
  await createMachineClient(TENANT);
  const before = await foundations();
  await sharedInstall.upgrade({ crds: { enabled: false } });
  expect(await crdsExist()).toBe(true);
  expect(await foundations()).toEqual(before);
  await sharedInstall.upgrade({ crds: { enabled: true } });
});

it('everything is as it was when an install is uninstalled and installed again', async () => {
  const client = await createMachineClient(TENANT);
  const values = JSON.parse(await run('helm', ['get', 'values', sharedInstall.name, '-n', namespace, '-o', 'json']));
  const before = await foundations();
  const { token } = await ask(client);
  await sharedInstall.uninstall();
  expect(await list('deployments', namespace)).toEqual([]);
  expect(await crdsExist()).toBe(true);
  expect(await foundations()).toEqual(before);
  await sharedInstall.install(values);
  await waitReady(TENANT, 'oauthclient/worker');
  expect(await foundations()).toEqual(before);
  const again = await ask(client);
  expect(again.status).toBe(200);
  for (const each of [token, again.token]) await jwtVerify(each, again.keys, { issuer: ISSUER });
  expect(await find('oauthclient', 'report-job', 'default')).toBeDefined();
});

/** A token, and the keys that are published. */
async function ask(client: MachineClient) {
  const forward = await PortForward.open(namespace, sharedInstall.service, { port: 80 });
  try {
    const response = await requestToken(forward.url, client);
    const keys = createLocalJWKSet(
      (await (await fetch(`${forward.url}/.well-known/jwks.json`)).json()) as JSONWebKeySet,
    );
    return { ...response, keys };
  } finally {
    await forward.close();
  }
}
