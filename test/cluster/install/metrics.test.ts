// What the metrics say of the cluster that a process follows, scraped from a token server and a controller while something
// happens that they count. Which metrics there are, and that each is documented, is in test/http/admin/admin-port.test.ts.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { FaultProxy } from '../setup/fault-proxy.ts';
import { ASKS_AGAIN, TAKES_OVER } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

/** How long a SigningKey signs that says nothing of it, in seconds. */
const ROTATION_INTERVAL = 2160 * 3600;

type Labels = Readonly<Record<string, string>>;

describeRedis('the metrics', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let clients: ClientInstall;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
  let ways: { readonly server: FaultProxy; readonly controller: FaultProxy };
  let team: string;

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    clients = ClientInstall.of(cluster, install.installation);
    ways = { server: await FaultProxy.start(cluster.address), controller: await FaultProxy.start(cluster.address) };
    server = await install.start({ url: ways.server.url });
    controller = await startController(install, { replicas: [server], url: ways.controller.url });
    team = await cluster.namespace();
    await Promise.all([controller.ready(), server.ready()]);
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await install?.stop();
    await Promise.all(Object.values(ways ?? {}).map((way) => way.stop()));
  });

  /** The value of the metric with exactly these labels; undefined while it has none. */
  async function metric({ admin }: { admin: string }, name: string, labels: Labels = {}): Promise<number | undefined> {
    const text = await (await fetch(`${admin}/metrics`)).text();
    const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    const begin = `grantry_${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} `;
    const line = text.split('\n').find((each) => each.startsWith(begin));
    return line === undefined ? undefined : Number(line.slice(begin.length));
  }

  const BOTH = ['server', 'controller'] as const;
  const processOf = (which: (typeof BOTH)[number]) => (which === 'server' ? server : controller);

  it.each(BOTH)('of a %s count the frames of its watches by kind and type', async (which) => {
    const resource = 'oauthclients.grantry.dev';
    const events = async (type: string) =>
      (await metric(processOf(which), 'watch_events_total', { resource, type })) ?? 0;
    const before = {
      added: await events('ADDED'),
      modified: await events('MODIFIED'),
      deleted: await events('DELETED'),
    };
    const name = `counted-${which}`;
    await clients.apply(team, name);
    await clients.whenReady(team, name);
    await clients.apply(team, name, { displayName: 'Counted' });
    await cluster.call('DELETE', await cluster.pathOf(clients.manifest(team, name)));
    await until('the deletion is counted', async () => (await events('DELETED')) > before.deleted);
    expect(await events('ADDED')).toBeGreaterThan(before.added);
    expect(await events('MODIFIED')).toBeGreaterThan(before.modified);
  });

  it.concurrent.each(BOTH)(
    'of a %s count the watches that restart, and say since when something may have been missed',
    async (which) => {
      const { admin } = processOf(which);
      const resource = 'oauthclients.grantry.dev';
      const name = 'watch_restarts_total';
      const restarts = async () => {
        const text = await (await fetch(`${admin}/metrics`)).text();
        const lines = text.split('\n').filter((line) => line.startsWith(`grantry_${name}{resource="${resource}",`));
        return lines.map((line) => Number(line.split(' ').at(-1))).reduce((sum, value) => sum + value, 0);
      };
      const before = await restarts();
      const way = ways[which];
      way.refuse();
      const cutAt = Date.now() / 1000;
      const progress = async () => (await metric({ admin }, 'registry_last_progress_seconds')) ?? 0;
      const staleness = async () => (await metric({ admin }, 'registry_staleness_seconds')) ?? 0;
      // What was on its way is there now.
      await until('it restarts', async () => (await restarts()) > before, ASKS_AGAIN);
      const [observed, stale] = [await progress(), await staleness()];
      expect(observed).toBeLessThan(cutAt + 1);
      await until('it grows stale', async () => (await staleness()) > stale + 1.5);
      expect(await progress()).toBe(observed);
      way.clear();
      await until('it has caught up', async () => (await progress()) > cutAt + 1, ASKS_AGAIN);
      expect(await staleness()).toBeLessThan(Date.now() / 1000 - cutAt);
    },
    150_000,
  );

  it('of a server say how old the key that signs is, and how long it has yet', async () => {
    const age = (await metric(server, 'signing_key_age_seconds')) ?? Number.NaN;
    const left = (await metric(server, 'signing_key_next_rotation_seconds')) ?? Number.NaN;
    expect(age).toBeGreaterThanOrEqual(0);
    expect(Math.abs(age + left - ROTATION_INTERVAL)).toBeLessThan(10);
    const path = `/apis/grantry.dev/v1alpha1/namespaces/${install.namespace}/signingkeys/default`;
    await cluster.call('PATCH', path, { body: { spec: { rotation: { policy: 'Manual' } } } });
    await until('no rotation is planned', async () => {
      return (await metric(server, 'signing_key_next_rotation_seconds')) === undefined;
    });
    expect(await metric(server, 'signing_key_age_seconds')).toBeGreaterThanOrEqual(age);
  });

  it('of a server count each change that is served, and how many clients are and are not', async () => {
    const swaps = async () => (await metric(server, 'registry_swap_duration_seconds_count')) ?? 0;
    const of = async (state: string) => (await metric(server, 'registry_clients', { state })) ?? 0;
    const before = { swaps: await swaps(), admitted: await of('admitted'), refused: await of('refused') };
    await clients.apply(team, 'served');
    await clients.apply(team, 'implicit', { grantTypes: ['implicit'] });
    await until('both are counted', async () => {
      return (await of('admitted')) === before.admitted + 1 && (await of('refused')) === before.refused + 1;
    });
    expect(await swaps()).toBeGreaterThan(before.swaps);
    expect(await metric(server, 'registry_swap_duration_seconds_sum')).toBeGreaterThan(0);
  });

  it('of a controller count its looks by kind, how they end, and how long they take', async () => {
    const kind = 'OAuthClient';
    const looks = async (result: string) => (await metric(controller, 'reconcile_total', { kind, result })) ?? 0;
    const timed = async () => (await metric(controller, 'reconcile_duration_seconds_count', { kind })) ?? 0;
    await until('it leads', async () => (await metric(controller, 'lease_held')) === 1, TAKES_OVER);
    const before = { done: await looks('done'), failed: await looks('failed') };
    await clients.apply(team, 'looked-at');
    await clients.whenReady(team, 'looked-at');
    // A reconcile ends after its status can be seen.
    await until('a reconcile is counted', async () => (await looks('done')) > before.done);
    ways.controller.answer(({ method, path }) => method === 'PATCH' && path.endsWith('/oauthclients/failing/status'), {
      status: 500,
      reason: 'InternalError',
      times: 1,
    });
    await clients.apply(team, 'failing');
    await clients.whenReady(team, 'failing');
    expect(await looks('failed')).toBeGreaterThan(before.failed);
    // There may be one between two scrapes.
    await until('each was timed', async () => (await timed()) === (await looks('done')) + (await looks('failed')));
    await until('nothing waits', async () => (await metric(controller, 'work_queue_depth')) === 0);
    expect(await metric(controller, 'reconcile_duration_seconds_sum', { kind })).toBeGreaterThan(0);
  }, 120_000);
});
