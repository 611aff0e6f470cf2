// Client secrets and signing keys are replaced while programs ask for tokens, and no request is refused.

import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { figure } from './setup/diagnosis.ts';
import { deleteNamespaces, eventually, get, kubectl, list, secretValue } from './setup/kubectl.ts';
import { PortForward } from './setup/port-forward.ts';
import { ISSUER, sharedInstall } from './setup/shared-install.ts';
import { createMachineClient, type MachineClient, requestToken } from './setup/tenants.ts';
import { Traffic } from './setup/traffic.ts';

const TENANT = 'e2e-rotation';
const REQUESTS_PER_SECOND = 50;
const { namespace, tokenUrl } = sharedInstall;

let client: MachineClient;
let forward: PortForward;

beforeAll(async () => {
  client = await createMachineClient(TENANT);
  forward = await PortForward.open(namespace, sharedInstall.service, { port: 80 });
});

afterAll(async () => {
  await forward?.close();
  await deleteNamespaces(TENANT);
});

async function underTraffic(change: (traffic: Traffic) => Promise<void>) {
  const traffic = await Traffic.start({ ...client, tokenUrl, requestsPerSecond: REQUESTS_PER_SECOND });
  await change(traffic);
  await traffic.goesOn(2 * REQUESTS_PER_SECOND);
  const totals = await traffic.stop();
  expect(totals.failures).toEqual([]);
  return totals;
}

/** Asks for a rotation, as the guide says. */
async function askForRotation(kind: string, where: string, name: string): Promise<void> {
  const annotation = `grantry.dev/rotate-requested-at=${new Date().toISOString()}`;
  await kubectl('annotate', '--overwrite', kind, name, '-n', where, annotation);
}

it('a client secret is replaced without a failed request, and the old one works on for its grace', async () => {
  const before = await secretValue(TENANT, client.secretName, 'client-secret');
  const { answered } = await underTraffic(async () => {
    await askForRotation('oauthclient', TENANT, client.name);
    await eventually('the Secret has another secret', async () => {
      return (await secretValue(TENANT, client.secretName, 'client-secret')) !== before;
    });
  });
  for (const secret of [before, undefined]) {
    expect((await requestToken(forward.url, client, secret)).status).toBe(200);
  }
  figure(`rotation of a client secret under ${REQUESTS_PER_SECOND} requests/s: 0 of ${answered} requests failed`);
});

it('a signing key is replaced without a failed request, and tokens of the old one verify on', async () => {
  const before = (await requestToken(forward.url, client)).token;
  const active = async () => String((await get('signingkey', 'default', namespace)).status?.activeKeyId);
  const oldKey = await active();
  const totals = await underTraffic(async (traffic) => {
    await askForRotation('signingkey', namespace, 'default');
    const published = await publishedKey();
    // Instead of waiting for a day: the next key was published two days ago.
    const past = new Date(Date.now() - 2 * 86_400_000).toISOString();
    await kubectl('annotate', '--overwrite', 'secret', published, '-n', namespace, `grantry.dev/published-at=${past}`);
    await eventually('the next key is the active one', async () => (await active()) !== oldKey);
    const newKey = await active();
    await eventually('tokens are signed with it', async () => newKey in (await traffic.totals()).tokens);
  });
  const keys = createRemoteJWKSet(new URL(`${forward.url}/.well-known/jwks.json`));
  expect(Object.keys(totals.tokens)).toContain(oldKey);
  for (const token of [before, ...Object.values(totals.tokens)]) {
    const { payload } = await jwtVerify(token, keys, { issuer: ISSUER });
    expect(payload.sub).toBe(client.clientId);
  }
  figure(`rotation of a signing key under ${REQUESTS_PER_SECOND} requests/s: 0 of ${totals.answered} requests failed`);
});

/** The Secret of the key that is to sign next. */
async function publishedKey(): Promise<string> {
  let name: string | undefined;
  await eventually('the next key is published', async () => {
    const [secret] = await list('secrets', namespace, 'grantry.dev/key-state=Published');
    name = secret?.metadata.name;
    return name !== undefined;
  });
  return name ?? '';
}
