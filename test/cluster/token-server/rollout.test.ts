// A replica that gets SIGTERM under constant load, as at every rollout: no request fails.

import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

/** Seconds that a replica still takes requests after the signal, and milliseconds between two readiness probes. */
const DRAIN_DELAY = 5;
const PROBE = 200;
/** Milliseconds from an answer to the next request. */
const THINKS = 5;

describeRedis('a rollout', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let client: AClient;
  beforeAll(async () => {
    install = await TokenServers.install(cluster);
    client = await install.client(await cluster.namespace(), 'busy');
  });
  afterAll(() => install?.stop());

  async function start(): Promise<TokenServerProcess> {
    const server = await install.start({ environment: { GRANTRY_DRAIN_DELAY: `${DRAIN_DELAY}s` } });
    await server.ready();
    await until('the client is served', async () => (await server.token(client)).status === 200);
    return server;
  }

  /** Concurrent requests to the replicas that were ready at the last probe, as a Service sends them. */
  function load(replicas: TokenServerProcess[]) {
    const statuses = new Map<TokenServerProcess, number[]>();
    let ready: readonly TokenServerProcess[] = [...replicas];
    let isOver = false;
    const probing = (async () => {
      while (!isOver) {
        const looked = [...replicas];
        const answers = await Promise.all(looked.map((replica) => replica.readiness()));
        ready = looked.filter((_, index) => answers[index]?.status === 200);
        await sleep(PROBE);
      }
    })();
    const asking = Array.from({ length: 8 }, async (_, asker) => {
      for (let turn = asker; !isOver; turn++) {
        const replica = ready[turn % ready.length];
        if (replica === undefined) throw new Error('no replica is ready');
        const status = await replica.token(client).then(
          (answer) => answer.status,
          () => 0,
        );
        statuses.set(replica, [...(statuses.get(replica) ?? []), status]);
        await sleep(THINKS);
      }
    });
    return {
      statuses: (replica: TokenServerProcess) => statuses.get(replica) ?? [],
      isAsked: (replica: TokenServerProcess) => ready.includes(replica),
      async end() {
        isOver = true;
        await Promise.all([probing, ...asking]);
        return [...statuses.values()].flat();
      },
    };
  }

  /** A token request of which the end is still to be sent. */
  function begun({ url }: TokenServerProcess) {
    const body = 'grant_type=client_credentials';
    const authorization = `Basic ${Buffer.from(`${client.clientId}:${client.secret}`).toString('base64')}`;
    const headers = {
      authorization,
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': body.length,
    };
    const answer = Promise.withResolvers<number>();
    const asked = request(`${url}/token`, { method: 'POST', headers }, (response) => {
      answer.resolve(response.resume().statusCode ?? 0);
    });
    asked.on('error', answer.reject);
    asked.write(body.slice(0, 5));
    return {
      finish: async () => {
        asked.end(body.slice(5));
        return await answer.promise;
      },
    };
  }

  it('fails no request, the ones that were under way when a replica got SIGTERM included', async () => {
    const old = await Promise.all([start(), start()]);
    const replicas = [...old];
    const requests = load(replicas);
    replicas.push(...(await Promise.all([start(), start()])));
    const leave = async (leaving: TokenServerProcess) => {
      const slow = begun(leaving);
      await sleep(200);
      const before = requests.statuses(leaving).length;
      const ended = leaving.process.end('SIGTERM');
      await until('it is not ready', async () => (await leaving.readiness()).status === 503);
      // Requests that are sent here before the probes fail are answered like all others.
      expect((await leaving.token(client)).status).toBe(200);
      await until('no request goes to it', () => !requests.isAsked(leaving));
      await until('it takes no new connection', async () => await isRefused(leaving), (DRAIN_DELAY + 20) * 1000);
      expect(await slow.finish()).toBe(200);
      expect(await ended).toBe(0);
      replicas.splice(replicas.indexOf(leaving), 1);
      expect(requests.statuses(leaving).length).toBeGreaterThan(before);
    };
    await Promise.all(old.map(leave));
    const statuses = await requests.end();
    expect(statuses.length).toBeGreaterThan(200);
    expect(new Set(statuses)).toEqual(new Set([200]));
  }, 120_000);
});

async function isRefused({ url }: TokenServerProcess): Promise<boolean> {
  return await new Promise((resolve) => {
    // A connection of its own: an open one is served to its end.
    const asked = request(url, { agent: false }, (response) => {
      response.resume();
      resolve(false);
    });
    asked.on('error', () => resolve(true)).end();
  });
}
