// `grantry server` when the API server is unavailable or says no: what it serves on with, and what it says.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { Cluster } from '../setup/cluster.ts';
import { FaultProxy } from '../setup/fault-proxy.ts';
import { ASKS_AGAIN, STARTS } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

/** So many at a time ask each replica for each client, and each so long after its last answer, in milliseconds. */
const CALLERS = 2;
const THINKS = 20;
/** How many requests are answered while the API server is unavailable. Hours are in test/cluster-registry/. */
const REQUESTS_MEANWHILE = 500;

/** Requests for tokens until `end`; the status of each. */
function load(servers: readonly TokenServerProcess[], clients: readonly AClient[]) {
  const statuses: number[] = [];
  let isOver = false;
  const ask = async (server: TokenServerProcess, client: AClient) => {
    while (!isOver) {
      const { status } = await server.token(client).catch(() => ({ status: 0 }));
      statuses.push(status);
      await sleep(THINKS);
    }
  };
  const pairs = servers.flatMap((server) => clients.map((client) => [server, client] as const));
  const done = Promise.all(pairs.flatMap((pair) => Array.from({ length: CALLERS }, () => ask(...pair))));
  return {
    statuses,
    async end() {
      isOver = true;
      await done;
    },
  };
}

describe('a token server whose API server goes away', () => {
  let server: ApiServer;
  let cluster: Cluster;
  let install: TokenServers;

  beforeAll(async () => {
    server = await ApiServer.start(sharedCluster().address.assets);
    cluster = new Cluster(server.address);
    await cluster.applyCrds();
    install = await TokenServers.install(cluster);
  });
  afterAll(async () => {
    await install.stop();
    await server.stop();
  });

  it('answers every request meanwhile, and follows again when it recovers; one that starts meanwhile waits', async () => {
    const tenant = await cluster.namespace();
    const clients = [await install.client(tenant, 'steady'), await install.client(tenant, 'other')];
    const replicas = await install.startReady(2);
    for (const each of replicas) {
      for (const client of clients) {
        await until('both are served', async () => (await each.token(client)).status === 200);
      }
    }
    const requests = load(replicas, clients);
    const { statuses } = requests;
    await server.kill();
    const before = statuses.length;
    const late = await install.start();
    await until(
      'the late one says what it waits for',
      async () => {
        const { status, text } = await late.readiness();
        return status === 503 && /^registry: .*oauthclients.*$/m.test(text) && !/^registry: waiting/m.test(text);
      },
      STARTS,
    );
    for (const each of replicas) {
      await until('it says that it hears nothing', async () =>
        /^kubernetes: no update since/m.test((await each.readiness()).text),
      );
      expect((await each.readiness()).status).toBe(200);
    }
    await until('many are answered meanwhile', () => statuses.length - before > REQUESTS_MEANWHILE, STARTS);
    expect((await late.readiness()).status).toBe(503);
    await server.start();
    await late.ready(ASKS_AGAIN);
    await requests.end();
    expect(new Set(statuses)).toEqual(new Set([200]));
    const next = await install.client(tenant, 'next');
    for (const each of [...replicas, late]) {
      await until('the next client is served', async () => (await each.token(next)).status === 200, ASKS_AGAIN);
    }
    for (const each of replicas) {
      await until('it is well again', async () => /^kubernetes: ok$/m.test((await each.readiness()).text), ASKS_AGAIN);
    }
  }, 180_000);
});

describe('a token server that is refused', () => {
  const cluster = sharedCluster();
  const made: { stop(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of made.splice(0)) await each.stop();
  });

  async function installed(options: { complete?: boolean } = {}): Promise<TokenServers> {
    const install = await TokenServers.install(cluster, options);
    made.push(install);
    return install;
  }

  it('names verb, resource and ServiceAccount of a right it lacks, and is ready once it has it', async () => {
    const install = await installed();
    const { namespace } = install;
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles/grantry-server`;
    const { body } = await cluster.call('GET', path);
    const without = body.rules.filter((rule: { resources: string[] }) => !rule.resources.includes('signingkeys'));
    await cluster.call('PATCH', path, { body: { rules: without } });
    const list = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/signingkeys`;
    const { serverToken: token } = install.installation;
    await until('it is taken', async () => (await cluster.call('GET', list, { token })).status === 403);
    const server = await install.start();
    const account = `system:serviceaccount:${namespace}:grantry-server`;
    const line = `list signingkeys.grantry.dev in namespace ${namespace} as ${account}: 403 Forbidden`;
    await server.saysUnready(new RegExp(`^registry: .*${line}`, 'm'));
    await server.process.printed(new RegExp(line));
    await cluster.call('PATCH', path, { body: { rules: body.rules } });
    await server.ready(ASKS_AGAIN);
  }, 120_000);

  it('says that its credentials are not believed', async () => {
    const install = await installed();
    const server = await install.start({ token: 'expired' });
    await server.saysUnready(/^registry: .*401 Unauthorized/m);
    await server.process.printed(/401 Unauthorized/);
  });

  it('says that the API server does not answer', async () => {
    const install = await installed();
    const proxy = await FaultProxy.start(cluster.address);
    made.push(proxy);
    proxy.refuse();
    const server = await install.start({ url: proxy.url });
    await server.saysUnready(/^registry: list oauthclients\.grantry\.dev .*(refused|reset)/im);
    proxy.clear();
    await proxy.stop();
  });

  it('waits for the pepper and for a key, and says so', async () => {
    const install = await installed({ complete: false });
    const server = await install.start();
    await server.saysUnready(/^pepper: waiting for the Secret grantry-pepper/m);
    await install.writePepper();
    await server.saysUnready(/^pepper: ok$[\s\S]*^public port: ok$/m);
    expect((await server.readiness()).text).toMatch(/^signing key: no active key$/m);
    await install.writeKey();
    await server.ready();
  });

  it('ends at once on a signal before it serves', async () => {
    const install = await installed({ complete: false });
    const server = await install.start();
    await server.saysUnready(/^pepper: waiting/m);
    expect(await server.process.end('SIGTERM')).toBe(0);
  });
});

describe('a token server on an API server without the CRDs', () => {
  it('names what is missing, and is ready once it is there', async () => {
    const server = await ApiServer.start(sharedCluster().address.assets);
    const cluster = new Cluster(server.address);
    let install: TokenServers | undefined;
    try {
      install = await TokenServers.install(cluster, { complete: false });
      const started = await install.start();
      await until(
        'it names them',
        async () => {
          const { text } = await started.readiness();
          return /^registry: .*oauthclients\.grantry\.dev.*CRDs/m.test(text);
        },
        STARTS,
      );
      await started.process.printed(/oauthclients\.grantry\.dev.*are its CRDs installed/);
      await cluster.applyCrds();
      await install.writePepper();
      await install.writeKey();
      await started.ready(ASKS_AGAIN);
    } finally {
      await install?.stop();
      await server.stop();
    }
  }, 120_000);
});
