// Clients without a secret, by the processes of an install: a key that is put into a ConfigMap, and a ServiceAccount that is
// deleted and made again, count at the token server for what they are, and no Secret of the team exists.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { aKey, sign, type TestKey } from '../../oauth/values/signed-tokens.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

describeRedis('a client without a secret', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
  let clients: ClientInstall;
  let team: string;

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    server = await install.start();
    controller = await startController(install, { replicas: [server] });
    await Promise.all([controller.ready(), server.ready()]);
    clients = ClientInstall.of(cluster, install.installation);
    team = await cluster.namespace();
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await install?.stop();
  });

  /** @returns the status of a token request */
  async function statusBy(name: string, assertion: string): Promise<number> {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: `${team}.${name}`,
      client_assertion_type: JWT_BEARER,
      client_assertion: assertion,
    });
    return (await fetch(`${server.url}/token`, { method: 'POST', body })).status;
  }

  async function isReady(name: string): Promise<void> {
    await clients.whenReady(team, name);
  }

  it('is known by the keys that lie in its ConfigMap now', async () => {
    const [before, after] = [aKey('ES256'), aKey('EdDSA')];
    const publish = (...keys: readonly TestKey[]) =>
      cluster.apply({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace: team, name: 'keys' },
        data: { 'jwks.json': JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }) },
      });
    const statusWith = async (key: TestKey) => statusBy('signing', await assertionOf(`${team}.signing`, key));
    await publish(before);
    const privateKeyJwt = { jwksConfigMapRef: { name: 'keys' } };
    const scopes = { defaultScopes: [`${team}/read`] };
    await clients.apply(team, 'signing', { ...scopes, auth: { method: 'private_key_jwt', privateKeyJwt } });
    await isReady('signing');
    expect([await statusWith(before), await statusWith(after)]).toEqual([200, 401]);
    await publish(before, after);
    await until('the new key counts', async () => (await statusWith(after)) === 200);
    expect(await statusWith(before)).toBe(200);
    await publish(after);
    await until('the old key counts no more', async () => (await statusWith(before)) === 401);
    expect(await statusWith(after)).toBe(200);
  });

  it('is known by the tokens of its ServiceAccount, and by none of one that was deleted', async () => {
    const token = () => cluster.token({ namespace: team, name: 'worker' }, { audiences: [ISSUER] });
    const before = await token();
    const serviceAccounts = [{ name: 'worker' }];
    const scopes = { defaultScopes: [`${team}/read`] };
    const auth = { method: 'kubernetes_service_account', serviceAccounts };
    await clients.apply(team, 'working', { ...scopes, auth });
    await isReady('working');
    expect(await statusBy('working', before)).toBe(200);
    const elsewhere = await cluster.token(
      { namespace: await cluster.namespace(), name: 'worker' },
      { audiences: [ISSUER] },
    );
    expect(await statusBy('working', elsewhere)).toBe(401);
    await cluster.call('DELETE', `/api/v1/namespaces/${team}/serviceaccounts/worker`);
    const after = await token();
    await until('the account that was made again counts', async () => (await statusBy('working', after)) === 200);
    expect(await statusBy('working', before)).toBe(401);
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${team}/secrets`);
    expect(body.items).toEqual([]);
  });

  function assertionOf(clientId: string, key: TestKey): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    return sign(key, { iss: clientId, sub: clientId, aud: ISSUER, iat: now, exp: now + 60, jti: randomUUID() });
  }
});
