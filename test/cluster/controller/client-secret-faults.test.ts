// What becomes of a client when others get hold of its Secret, fight over it or keep it from being read.

import { beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { FaultProxy, type Match, watchOf } from '../setup/fault-proxy.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const HOUR = 3_600_000;
const OLD = 'an-example-value-that-somebody-else-puts-in-place';
const cluster = sharedCluster();
let team: string;
beforeAll(async () => {
  team = await cluster.namespace();
});

const secretPath = (name: string) => `/api/v1/namespaces/${team}/secrets/${name}-oauth`;

function secretManifest(name: string, data: Record<string, string>) {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: team, name }, stringData: data };
}

it.concurrent('a Secret that its owner replaced by another ends with the grace what was accepted, and is never overwritten', async (context) => {
  const own = await ClientInstall.make(cluster, context);
  const first = await own.start();
  await own.apply(team, 'replaced');
  const { metadata } = await own.whenReady(team, 'replaced');
  const old = (await own.secret(team, 'replaced-oauth'))?.data['client-secret'];
  await first.stop();
  await cluster.call('DELETE', secretPath('replaced'));
  await cluster.apply(secretManifest('replaced-oauth', { 'client-secret': OLD }));
  const controller = await own.start();
  const { status } = await own.whenCondition(team, 'replaced', 'CredentialsReady', 'SecretNotOwned');
  expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'Stalled', reason: 'SecretNotOwned' }));
  const { message } = status.conditions.find(({ type }: { type: string }) => type === 'CredentialsReady');
  const [{ expiresAt = 0 } = {}, ...others] = (await own.verifiers(metadata.uid))?.verifiers ?? [];
  expect(others).toEqual([]);
  expect(message).toContain(new Date(expiresAt).toISOString());
  expect(expiresAt - own.clock.now()).toBeGreaterThan(23 * HOUR);
  expect([await own.accepts(metadata.uid, old), await own.accepts(metadata.uid, OLD)]).toEqual([true, false]);
  own.ahead = 25 * HOUR;
  expect(await own.accepts(metadata.uid, old)).toBe(false);
  expect((await own.secret(team, 'replaced-oauth'))?.data).toEqual({ 'client-secret': OLD });
  await cluster.call('DELETE', secretPath('replaced'));
  await own.whenReady(team, 'replaced');
  const current = (await own.secret(team, 'replaced-oauth'))?.data['client-secret'];
  expect([old, OLD]).not.toContain(current);
  expect([await own.accepts(metadata.uid, current), await own.accepts(metadata.uid, old)]).toEqual([true, false]);
  await controller.expectEventsOf('replaced', ['SecretNotOwned', 'DriftRepaired', 'Ready']);
});

it.concurrent.for<[string, string, Match]>([
  ['', 'misnamed', () => false],
  [' also before its watch event', 'misnamed-unheard', watchOf('secrets')],
])(
  'a client whose Secret is to have a name that is taken keeps the one it has%s',
  async ([, name, isStalled], context) => {
    const own = await ClientInstall.make(cluster, context);
    const proxy = await FaultProxy.start(cluster.address);
    try {
      await own.start({ url: proxy.url });
      proxy.stall((seen) => isStalled(seen) && seen.path === '/api/v1/secrets');
      await own.apply(team, name);
      const { metadata } = await own.whenReady(team, name);
      const secret = (await own.secret(team, `${name}-oauth`))?.data['client-secret'];
      await cluster.apply(secretManifest('taken', { password: 'of another owner' }));
      await own.apply(team, name, { auth: { clientSecret: { secretName: 'taken' } } });
      await own.whenCondition(team, name, 'CredentialsReady', 'SecretNotOwned');
      expect((await own.verifiers(metadata.uid))?.verifiers[0]?.expiresAt).toBeUndefined();
      expect((await own.secret(team, `${name}-oauth`))?.data['client-secret']).toBe(secret);
    } finally {
      await proxy.stop();
    }
  },
);

it.concurrent('a value that another writer puts back each time is replaced ever less often, and status says who and until when', async (context) => {
  const own = await ClientInstall.make(cluster, context);
  const controller = await own.start();
  await own.apply(team, 'contested');
  await own.whenReady(team, 'contested');
  const path = secretPath('contested');
  const current = async () => (await own.secret(team, 'contested-oauth'))?.data['client-secret'];
  const repairs = () => controller.eventsOf('contested').filter((reason) => reason === 'DriftRepaired').length;
  const disturb = async () => {
    await cluster.call('PATCH', `${path}?fieldManager=another-operator`, {
      body: { stringData: { 'client-secret': OLD } },
    });
  };
  for (const times of [1, 2, 3]) {
    await disturb();
    await until(`it is put back ${times} times`, async () => repairs() === times && (await current()) !== OLD);
  }
  await disturb();
  const { status } = await own.whenCondition(team, 'contested', 'CredentialsReady', 'SecretContested');
  const stalled = status.conditions.find(({ type }: { type: string }) => type === 'Stalled');
  expect(stalled).toMatchObject({ status: 'True', reason: 'SecretContested' });
  expect(stalled.message).toContain('"another-operator"');
  await own.poke(team, 'contested');
  await disturb();
  await controller.whenAtRest(team, 'contested');
  expect([await current(), repairs()]).toEqual([OLD, 3]);
  own.ahead = 11_000;
  await own.poke(team, 'contested');
  await own.whenReady(team, 'contested');
  expect([OLD]).not.toContain(await current());
  expect(repairs()).toBe(4);
  // An owner who asks for a new secret gets it, contest or not.
  await disturb();
  await own.whenCondition(team, 'contested', 'CredentialsReady', 'SecretContested');
  await own.apply(team, 'contested', {}, { annotations: { 'grantry.dev/rotate-now': 'now' } });
  await own.whenReady(team, 'contested');
  expect(await current()).not.toBe(OLD);
});

it.concurrent('given another writer that removes each secret that is staged → the rotation starts over ever less often', async (context) => {
  const own = await ClientInstall.make(cluster, context);
  await own.start();
  await own.apply(team, 'pruned');
  await own.whenReady(team, 'pruned');
  const texts = async () => (await own.secret(team, 'pruned-oauth'))?.data ?? {};
  const { 'client-secret': current } = await texts();
  await own.apply(team, 'pruned', {}, { annotations: { 'grantry.dev/rotate-requested-at': 'monday' } });
  const seen = new Set<string | undefined>();
  for (const times of [1, 2, 3, 4]) {
    await until(`one is staged ${times} times`, async () => {
      const { 'client-secret.next': staged } = await texts();
      return staged !== undefined && seen.add(staged).size === times;
    });
    await cluster.call('PATCH', `${secretPath('pruned')}?fieldManager=pruner`, {
      body: { data: { 'client-secret.next': null } },
    });
  }
  await own.whenCondition(team, 'pruned', 'CredentialsReady', 'SecretContested');
  expect(await texts()).toMatchObject({ 'client-secret': current });
  expect(await texts()).not.toHaveProperty(['client-secret.next']);
  own.ahead = 11_000;
  await own.poke(team, 'pruned');
  await until('it is published', async () => (await texts())['client-secret'] !== current);
});

it.concurrent('given a Secret of another party under the name of a client → a cut ends the secret from before at once', async (context) => {
  const own = await ClientInstall.make(cluster, context);
  const first = await own.start();
  await own.apply(team, 'cut');
  const { metadata } = await own.whenReady(team, 'cut');
  const text = async () => (await own.secret(team, 'cut-oauth'))?.data['client-secret'];
  const before = await text();
  await first.stop();
  await cluster.call('DELETE', secretPath('cut'));
  await cluster.apply(secretManifest('cut-oauth', { 'client-secret': OLD }));
  await own.start();
  await own.whenCondition(team, 'cut', 'CredentialsReady', 'SecretNotOwned');
  expect(await own.accepts(metadata.uid, before)).toBe(true);
  await own.apply(team, 'cut', {}, { annotations: { 'grantry.dev/rotate-now': 'now' } });
  await until('it is not accepted any more', async () => !(await own.accepts(metadata.uid, before)));
  expect(await text()).toBe(OLD);
  await cluster.call('DELETE', secretPath('cut'));
  await own.whenReady(team, 'cut');
  expect([OLD, before]).not.toContain(await text());
  expect(await own.accepts(metadata.uid, await text())).toBe(true);
});

it.concurrent('a secret of its own with characters that some send without encoding works, and its condition goes on saying so', async (context) => {
  const own = await ClientInstall.make(cluster, context);
  const value = `${OLD}+/==`;
  await cluster.apply(secretManifest('reserved-oauth', { 'client-secret': value }));
  const first = await own.start();
  await own.apply(team, 'reserved', { auth: { clientSecret: { source: 'Existing' } } });
  const isSaid = async () => {
    const { metadata, status } = await own.whenReady(team, 'reserved');
    const condition = status.conditions.find(({ type }: { type: string }) => type === 'CredentialsReady');
    expect(condition).toMatchObject({ status: 'True', reason: 'SecretAdopted' });
    expect(condition.message).toContain('RFC 6749');
    return await own.accepts(metadata.uid, value);
  };
  expect(await isSaid()).toBe(true);
  // Reconciled once more, without reading the Secret.
  await own.poke(team, 'reserved');
  await first.whenAtRest(team, 'reserved');
  expect(await isSaid()).toBe(true);
  const statusWrites = first.writes.filter(({ kind, name }) => kind === 'OAuthClient' && name === 'reserved');
  expect(statusWrites).toHaveLength(1);
  await first.stop();
  const second = await own.start();
  await own.poke(team, 'reserved');
  await second.whenAtRest(team, 'reserved');
  expect(await isSaid()).toBe(true);
});

/** The status with which the controller is answered that reads a Secret of the team. */
async function readAs({ installation: { controllerToken: token } }: ClientInstall): Promise<number> {
  return (await cluster.call('GET', `/api/v1/namespaces/${team}/secrets/any`, { token })).status;
}

it.concurrent.for<[string, string, object]>([
  ['of its own', 'unread-own', { source: 'Existing', secretName: 'unread-own-oauth' }],
  ['that is generated', 'unread-generated', {}],
])(
  'a client with a Secret %s that may not be read says which right which account lacks',
  async ([, name, clientSecret], context) => {
    const own = await ClientInstall.make(cluster, context);
    if ('source' in clientSecret) await cluster.apply(secretManifest(`${name}-oauth`, { 'client-secret': OLD }));
    const controller = await own.start();
    await own.apply(team, name, { auth: { clientSecret } });
    const { metadata } = await own.whenReady(team, name);
    const secret = (await own.secret(team, `${name}-oauth`))?.data['client-secret'];
    const path = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${own.installation.namespace}-grantry-controller-tenants`;
    const { rules } = (await cluster.call('GET', path)).body;
    const withoutGet = (rule: { resources: string[]; verbs: string[] }) =>
      rule.resources.includes('secrets') ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== 'get') } : rule;
    await own.patch(path, { rules: rules.map(withoutGet) });
    await until('the right is gone', async () => (await readAs(own)) === 403);
    await own.patch(secretPath(name), { metadata: { labels: { 'example.com/touched': 'yes' } } });
    const { status } = await own.whenCondition(team, name, 'CredentialsReady', 'SecretNotReadable');
    const { message } = status.conditions.find(({ type }: { type: string }) => type === 'CredentialsReady');
    expect(message).toContain(`get secrets in namespace ${team} as system:serviceaccount:`);
    await until('it is an Event, too', () => controller.eventsOf(name).includes('SecretNotReadable'));
    // A Secret that could not be read is not taken for changed.
    expect(await own.accepts(metadata.uid, secret)).toBe(true);
    await own.patch(path, { rules });
    await until('the right is granted again', async () => (await readAs(own)) !== 403);
    await own.poke(team, name);
    await own.whenReady(team, name);
  },
);
