// A tenant that gives Secrets the labels of its clients, as many as it likes, and changes the clients all the time: the
// controller reads none of them, and a neighbour is served as if it were alone. Nor may one namespace have all workers.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../until.ts';
import { ClientInstall, type Write } from '../setup/client-controllers.ts';
import { FaultProxy } from '../setup/fault-proxy.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const CLIENTS = 16;
const SECRETS_OF_EACH = 40;
const cluster = sharedCluster();

/** Carries out a call for each, a few at a time. */
async function forEach<One>(all: readonly One[], call: (one: One) => Promise<unknown>): Promise<void> {
  const left = [...all];
  const next = async () => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await call(one);
  };
  await Promise.all(Array.from({ length: 16 }, next));
}

it('a flood of Secrets with the labels of clients that change every second → none is read, and a neighbour is Ready within 2 s of its time alone', async () => {
  const install = await ClientInstall.make(cluster);
  const [flood, team] = [await cluster.namespace(), await cluster.namespace()];
  const proxy = await FaultProxy.start(cluster.address);
  onTestFinished(() => proxy.stop());
  await install.start({ url: proxy.url });
  const clients = Array.from({ length: CLIENTS }, (_, index) => `flood-${index}`);
  await forEach(clients, (name) => install.apply(flood, name));
  const secrets = await Promise.all(
    clients.map(async (name) => {
      const { uid } = (await install.whenReady(flood, name)).metadata;
      const labels = { 'grantry.dev/client': name, 'grantry.dev/client-uid': uid };
      return Array.from({ length: SECRETS_OF_EACH }, (_, index) => ({ name: `${name}-copy-${index}`, labels }));
    }),
  );
  await forEach(secrets.flat(), async ({ name, labels }) => {
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: flood, name, labels } };
    expect((await cluster.call('POST', `/api/v1/namespaces/${flood}/secrets`, { body })).status).toBe(201);
  });
  const untilReady = async (name: string) => {
    const begun = performance.now();
    await install.apply(team, name);
    await install.whenReady(team, name);
    return performance.now() - begun;
  };
  const alone = await untilReady('alone');
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const changing = (async () => {
    for (let round = 0; !ending.signal.aborted; round++) {
      const spec = { displayName: `Round ${round}` };
      const path = `/apis/grantry.dev/v1alpha1/namespaces/${flood}/oauthclients`;
      await forEach(clients, (name) => install.patch(`${path}/${name}`, { spec }));
      const labels = { 'example.com/round': String(round) };
      const one = (name: string) => `/api/v1/namespaces/${flood}/secrets/${name}-copy-${round % SECRETS_OF_EACH}`;
      await forEach(clients, (name) => install.patch(one(name), { metadata: { labels } }));
      await sleep(1000, undefined, { signal: ending.signal }).catch(() => {});
    }
  })();
  const waited: number[] = [];
  for (const name of ['first', 'second', 'third', 'fourth', 'fifth']) {
    waited.push(await untilReady(name));
    await sleep(500);
  }
  ending.abort();
  await changing;
  // Most of them: on a busy machine one may wait for the machine.
  expect(waited.sort((one, other) => one - other)[3]).toBeLessThan(alone + 2000);
  const reads = proxy.count(({ method, path }) => method === 'GET' && path.includes('-copy-'));
  expect(reads).toBe(0);
}, 120_000);

it('clients of one namespace whose writes stay without an answer → they have a quarter of the workers, and a neighbour is Ready', async () => {
  const install = await ClientInstall.make(cluster);
  const [slow, team] = [await cluster.namespace(), await cluster.namespace()];
  const released = Promise.withResolvers<void>();
  let waiting = 0;
  const onItsWay = async ({ verb, name }: Write) => {
    if (verb !== 'create' || !name.startsWith('slow-')) return;
    waiting += 1;
    await released.promise;
  };
  await install.start({ onItsWay });
  const clients = Array.from({ length: 20 }, (_, index) => `slow-${index}`);
  await forEach(clients, (name) => install.apply(slow, name));
  try {
    await until('so many are on their way', () => waiting >= 4);
    await install.apply(team, 'neighbour');
    await install.whenReady(team, 'neighbour');
    expect(waiting).toBe(4);
  } finally {
    // The controller ends only when they have an answer.
    released.resolve();
  }
});
