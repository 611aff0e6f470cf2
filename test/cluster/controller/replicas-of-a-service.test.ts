// The replicas as a controller finds them in a cluster: by the EndpointSlices of their Service, as they come and go.

import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const SERVICE = 'grantry-admin';

/** The API server takes no loopback address into an EndpointSlice; undefined on a machine that has no other: passed over there, failing where CI=true. */
const ADDRESS = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.254.'))?.address;

describeRedis('the replicas of a Service', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let controller: ControllerProcess;
  let clients: ClientInstall;
  let team: string;

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    controller = await startController(install, { environment: { GRANTRY_SERVER_SERVICE: SERVICE } });
    await controller.ready();
    clients = ClientInstall.of(cluster, install.installation);
    team = await cluster.namespace();
  });
  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await install?.stop();
  });

  /** How many changes of EndpointSlices the controller has observed. */
  async function heard(): Promise<number> {
    const text = await (await fetch(`${controller.admin}/metrics`)).text();
    const resource = 'endpointslices\\.discovery\\.k8s\\.io';
    const count = new RegExp(`^grantry_watch_events_total\\{resource="${resource}",type="[A-Z]+ED"\\} (\\d+)$`, 'gm');
    return [...text.matchAll(count)].reduce((sum, [, frames]) => sum + Number(frames), 0);
  }

  /** Changes an EndpointSlice, and waits until the controller observes it: a later event need not be by it. */
  async function told(change: () => Promise<unknown>): Promise<void> {
    const before = await heard();
    await change();
    await until('the controller has observed it', async () => (await heard()) > before);
  }

  /** A replica that is a pod of this name; it takes requests where it says so. */
  async function endpoint(pod: string, { admin }: TokenServerProcess, ready: boolean): Promise<void> {
    const { namespace } = install;
    const targetRef = { kind: 'Pod', namespace, name: pod };
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      addressType: 'IPv4',
      metadata: { namespace, name: pod, labels: { 'kubernetes.io/service-name': SERVICE } },
      endpoints: [{ addresses: [ADDRESS], conditions: { ready }, targetRef }],
      ports: [{ name: 'admin', protocol: 'TCP', port: Number(new URL(admin).port) }],
    };
    await told(() => cluster.apply(slice));
  }

  async function programmed(name: string): Promise<{ readonly reason?: string; readonly message?: string }> {
    const { status } = await clients.client(team, name);
    return status?.conditions?.find(({ type }: { type: string }) => type === 'Programmed') ?? {};
  }

  it.skipIf(ADDRESS === undefined && process.env.CI !== 'true')(
    'are asked from when they are ready until they leave, and waited for no longer than that',
    async () => {
      if (ADDRESS === undefined) throw new Error('this machine has no address but those of the loopback');
      await clients.apply(team, 'alone');
      await clients.whenCondition(team, 'alone', 'Programmed', 'NoReplicas');

      const environment = { GRANTRY_HOST: '0.0.0.0' };
      const start = () => install.start({ environment });
      const [first, second, third] = await Promise.all([start(), start(), start()]);
      await Promise.all([first, second, third].map((each) => each.ready()));
      await endpoint('pod-1', first, true);
      await endpoint('pod-2', second, false);
      await clients.whenReady(team, 'alone');

      // One that is not ready does not count: whatever it does, no client waits for it.
      second.process.signal('SIGSTOP');
      await clients.apply(team, 'of-one');
      await clients.whenReady(team, 'of-one');

      await endpoint('pod-2', second, true);
      await clients.apply(team, 'of-two');
      const message = 'Not served yet by pod-2.';
      await until('the silent one alone is named', async () => (await programmed('of-two')).message === message);
      expect((await programmed('of-two')).reason).toBe('Pending');

      // It leaves: what waited for it does not wait for the next poll, which is ever later.
      await endpoint('pod-2', second, false);
      await clients.whenReady(team, 'of-two');

      second.process.signal('SIGCONT');
      await endpoint('pod-2', second, true);
      await clients.apply(team, 'of-both');
      const { metadata } = await clients.whenReady(team, 'of-both');
      const { data } = (await clients.secret(team, 'of-both-oauth')) ?? { data: {} as Record<string, string> };
      const made = { clientId: `${team}.of-both`, secret: data['client-secret'] ?? '' };
      const client = { ...made, uid: metadata.uid, namespace: team, name: 'of-both' };
      for (const server of [first, second]) {
        expect((await server.token(client, { scope: `${team}/read` })).status).toBe(200);
      }

      // A rollout: the Service has other pods under other addresses, and in the end none.
      for (const pod of ['pod-1', 'pod-2']) {
        const metadataOfSlice = { namespace: install.namespace, name: pod };
        const path = await cluster.pathOf({
          apiVersion: 'discovery.k8s.io/v1',
          kind: 'EndpointSlice',
          metadata: metadataOfSlice,
        });
        await told(() => cluster.call('DELETE', path));
      }
      await clients.apply(team, 'of-none');
      await clients.whenCondition(team, 'of-none', 'Programmed', 'NoReplicas');
      await endpoint('pod-3', third, true);
      await clients.whenReady(team, 'of-none');
    },
    150_000,
  );
});
