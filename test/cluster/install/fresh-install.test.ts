// A fresh install as processes: with nothing but the CRDs and the rights of its ServiceAccounts it comes to a token by
// itself, and a key that is revoked is gone from every replica at once.

import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectWithin, timed } from '../../redis/setup/connect.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { introspect } from '../setup/signed-in.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

describeRedis('a fresh install', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let servers: readonly TokenServerProcess[];
  let controller: ControllerProcess | undefined;

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    servers = await Promise.all([install.start(), install.start()]);
  });
  afterAll(async () => {
    await controller?.process.end();
    await install?.stop();
  });

  const path = () => `/apis/grantry.dev/v1alpha1/namespaces/${install.namespace}/signingkeys/default`;
  const status = async () => (await cluster.call('GET', path())).body.status ?? {};
  const keysOf = async ({ url }: TokenServerProcess): Promise<readonly { kid: string; alg: string }[]> => {
    const response = await fetch(`${url}/.well-known/jwks.json`);
    return ((await response.json()) as { keys: { kid: string; alg: string }[] }).keys;
  };
  /** Without the key of `default-rs256`. */
  const keyIds = async (server: TokenServerProcess): Promise<readonly string[]> =>
    (await keysOf(server)).filter(({ alg }) => alg === 'ES256').map(({ kid }) => kid);

  it('waits for its controller, which makes the key and the pepper', async () => {
    for (const server of servers) await server.saysUnready(/^pepper: waiting/m);
    controller = await startController(install, { replicas: servers });
    for (const server of servers) await server.ready();
    // A server serves a key that it finds, whether or not its status shows it yet.
    await until('the status shows the key', async () => (await status()).activeKeyId !== undefined);
    const { activeKeyId } = await status();
    for (const server of servers) {
      expect(await keyIds(server)).toEqual([activeKeyId]);
      await until('there is one for ID tokens', async () => (await keysOf(server)).at(-1)?.alg === 'RS256');
    }
  }, 120_000);

  it('honours within a second nothing any more that a revoked key signed, and has the key replaced', async () => {
    const team = await cluster.namespace();
    const clients = ClientInstall.of(cluster, install.installation);
    await clients.apply(team, 'shop', { defaultScopes: [`${team}/read`] });
    const { metadata } = await clients.whenReady(team, 'shop');
    const secret = (await clients.secret(team, 'shop-oauth'))?.data['client-secret'] ?? '';
    const shop = { clientId: `${team}.shop`, uid: metadata.uid, secret, namespace: team, name: 'shop' };
    const revokedKeyIds: string[] = [];

    await expectWithin(1000, async () => {
      const { activeKeyId } = await status();
      const signed = await Promise.all(
        servers.map(async (server) => (await server.token(shop)).body.access_token ?? ''),
      );
      expect(signed.map((token) => decodeProtectedHeader(token).kid)).toEqual(servers.map(() => activeKeyId));
      const honoured = async () => {
        const asked = servers.flatMap((server) => signed.map((token) => introspect(server, shop, token)));
        const active = (await Promise.all(asked)).map(({ body }) => body.active);
        const published = await Promise.all(
          servers.map(async (server) => (await keyIds(server)).includes(activeKeyId)),
        );
        return [...active, ...published];
      };
      expect(await honoured()).toEqual(Array.from({ length: 6 }, () => true));
      revokedKeyIds.push(activeKeyId);
      const { error, milliseconds } = await timed(async () => {
        await cluster.call('PATCH', path(), { body: { spec: { revokedKeyIds } } });
        await until('no server honours it', async () => (await honoured()).every((each) => each === false));
      });
      expect(error).toBeUndefined();

      const isReplaced = async () => ![undefined, activeKeyId].includes((await status()).activeKeyId);
      await until('another key signs', isReplaced);
      const next = (await status()).activeKeyId;
      for (const server of servers) {
        await until('it has the next key alone', async () => String(await keyIds(server)) === next);
        expect((await server.readiness()).status).toBe(200);
        const token = (await server.token(shop)).body.access_token ?? '';
        expect((await introspect(server, shop, token)).body.active).toBe(true);
      }
      return milliseconds;
    });
  }, 120_000);

  it('publishes a key before it signs', async () => {
    const { activeKeyId } = await status();
    await cluster.call('PATCH', path(), {
      body: { metadata: { annotations: { 'grantry.dev/rotate-requested-at': 'now' } } },
    });
    for (const server of servers) await until('both are published', async () => (await keyIds(server)).length === 2);
    expect((await status()).activeKeyId).toBe(activeKeyId);
  });
});
