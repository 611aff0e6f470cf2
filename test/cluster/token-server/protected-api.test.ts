// An API whose token server loses Redis, its API server or both: what the verifiers of `grantry/resource-server` say meanwhile.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { AccessDenied, createVerifier, type Verifier } from '../../../src/resource-server/index.ts';
import { describeRedis, type RedisServer, startRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { Cluster } from '../setup/cluster.ts';
import { ASKS_AGAIN } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type AClient, ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

/** How long after an answer about the revoked token the next question follows, in milliseconds. */
const THINKS = 20;

const UNKNOWN = '503 introspection_unavailable';
const REFUSED = '401 token_inactive';

async function outcome(verifier: Verifier, token: string): Promise<string> {
  try {
    await verifier.verify(new Request('https://api.example/', { headers: { authorization: `Bearer ${token}` } }));
    return 'passes';
  } catch (error) {
    if (!(error instanceof AccessDenied)) throw error;
    return `${error.status} ${error.reason}`;
  }
}

describeRedis('an API whose token server', () => {
  let apiServer: ApiServer;
  let redis: RedisServer;
  let install: TokenServers;
  let issuer: TokenServerProcess;
  let audience: string;
  let api: AClient;
  let active: string;
  let revoked: string;

  beforeAll(async () => {
    [apiServer, redis] = await Promise.all([
      ApiServer.start(sharedCluster().address.assets),
      startRedis({ persistent: true }),
    ]);
    const cluster = new Cluster(apiServer.address);
    await cluster.applyCrds();
    install = await TokenServers.install(cluster);
    const tenant = await cluster.namespace();
    audience = `urn:grantry:ns:${tenant}:default`;
    const job = await install.client(tenant, 'job');
    api = await install.client(tenant, 'api', { resourceServer: { audiences: [audience] } });
    issuer = await install.start({ environment: { GRANTRY_REDIS_URL: redis.url } });
    await issuer.ready();
    const token = async () => (await issuer.token(job)).body.access_token ?? '';
    [active, revoked] = [await token(), await token()];
    await revoke(job, revoked);
    await until('the API is known', async () => (await outcome(asking(), active)) === 'passes');
    expect(await outcome(asking(), revoked)).toBe(REFUSED);
  });
  afterAll(async () => {
    await install?.stop();
    await Promise.all([redis?.stop(), apiServer?.stop()]);
  });

  async function revoke({ clientId, secret }: AClient, token: string): Promise<void> {
    const authorization = `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`;
    const init = { method: 'POST', headers: { authorization }, body: new URLSearchParams({ token }) };
    expect((await fetch(`${issuer.url}/revoke`, init)).status).toBe(200);
  }

  const common = () => ({
    issuer: ISSUER,
    audience,
    fetch: (url: string, init: RequestInit) => fetch(url.replace(ISSUER, issuer.url), init),
  });
  const local = () => createVerifier({ ...common(), mode: 'local' });
  const asking = () => {
    const { clientId, secret } = api;
    return createVerifier({
      ...common(),
      mode: 'introspection',
      introspection: { clientId, clientSecret: secret },
    });
  };

  const REDIS = {
    lose: () => redis.kill(),
    regain: () => redis.start(),
    away: /^redis: away/m,
    well: /^redis: ok$/m,
  };
  const API_SERVER = {
    lose: () => apiServer.kill(),
    regain: () => apiServer.start(),
    away: /^kubernetes: no update since/m,
    well: /^kubernetes: ok$/m,
  };
  const says = (line: RegExp) =>
    until(`it says ${line}`, async () => line.test((await issuer.readiness()).text), ASKS_AGAIN);

  /** Asks again and again until the test ends: the outcomes of an active token by keys, and of a revoked one by asking. */
  function watch(knowing: Verifier, asker: Verifier) {
    const seen = { byKeys: new Set<string>(), ofRevoked: new Set<string>() };
    let isOver = false;
    const ask = async () => {
      while (!isOver) {
        seen.byKeys.add(await outcome(knowing, active));
        seen.ofRevoked.add(await outcome(asker, revoked));
        await sleep(THINKS);
      }
    };
    const done = ask();
    onTestFinished(async () => {
      isOver = true;
      await done;
    });
    return seen;
  }

  it.each([
    ['Redis', [REDIS], { active: UNKNOWN, revoked: UNKNOWN }],
    ['the API server', [API_SERVER], { active: 'passes', revoked: REFUSED }],
    ['both', [REDIS, API_SERVER], { active: UNKNOWN, revoked: UNKNOWN }],
  ])(
    'loses %s → by its keys tokens pass; by asking no revoked one passes at any time, and what is not known is 503',
    async (_, lost, expected) => {
      const [knowing, asker] = [local(), asking()];
      const seen = watch(knowing, asker);
      expect([await outcome(knowing, active), await outcome(asker, active)]).toEqual(['passes', 'passes']);

      await Promise.all(lost.map(({ lose }) => lose()));
      for (const { away } of lost) await says(away);
      expect([await outcome(local(), active), await outcome(knowing, active)]).toEqual(['passes', 'passes']);
      for (const each of [asker, asking()]) {
        expect(await outcome(each, active)).toBe(expected.active);
        expect(await outcome(each, revoked)).toBe(expected.revoked);
      }

      for (const { regain } of lost) await regain();
      for (const { well } of lost) await says(well);
      await until('it is asked again', async () => (await outcome(asker, active)) === 'passes');
      expect(await outcome(asker, revoked)).toBe(REFUSED);
      expect(seen.byKeys).toEqual(new Set(['passes']));
      expect([...seen.ofRevoked].filter((each) => each !== REFUSED && each !== UNKNOWN)).toEqual([]);
    },
    180_000,
  );
});
