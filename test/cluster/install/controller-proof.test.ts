// A replica reports only to its controller, which proves itself by a key that both read in the release namespace, and to
// no other peer that reaches its admin port.

import { randomBytes } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { CONTROLLER_SECRET } from '../../../src/admission/references/secret-parts.ts';
import { endProcesses } from '../../processes/grantry-process.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { startController } from '../setup/controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { TokenServers } from '../setup/token-servers.ts';

describeRedis('what a replica reports on its admin port', () => {
  const cluster = sharedCluster();
  const made: TokenServers[] = [];
  afterEach(async () => {
    await endProcesses();
    for (const each of made.splice(0)) await each.stop();
  });

  async function installed(options: { complete?: boolean } = {}): Promise<TokenServers> {
    const install = await TokenServers.install(cluster, options);
    made.push(install);
    return install;
  }

  const secretPath = ({ namespace }: TokenServers) =>
    `/api/v1/namespaces/${namespace}/secrets/${CONTROLLER_SECRET.name}`;
  const PATHS = ['/registry/observed', '/registry/report'] as const;
  const questionAt = (path: string) => (path === '/registry/observed' ? { uids: [] } : { after: 'none' });

  it('is reported to no peer before there is a key, then only to one with the present key', async () => {
    const install = await installed({ complete: false });
    await install.writePepper();
    await install.writeKey();
    const [server] = await install.startReady(1);
    if (server === undefined) throw new Error('nothing was started');
    const statuses = async (key?: string) =>
      await Promise.all(PATHS.map(async (path) => (await install.ask(server, path, questionAt(path), key)).status));
    expect(await statuses()).toEqual([403, 403]);
    await install.writeProofKey();
    await until('the key counts', async () => String(await statuses()) === '200,200');
    const next = randomBytes(32).toString('base64url');
    expect(await statuses(next)).toEqual([403, 403]);
    await install.writeProofKey(next);
    await until('the next one counts', async () => String(await statuses(next)) === '200,200');
    expect(await statuses()).toEqual([403, 403]);
    await cluster.call('DELETE', secretPath(install));
    await until('none counts', async () => String(await statuses(next)) === '403,403');
    await server.process.printed(/"route":"registry_report".*"reason":"proof_key_missing"/);
    expect(server.process.output).not.toContain(next);
  });

  it('is reported to its controller, also when the key has become another and whatever becomes of signing keys', async () => {
    const install = await installed({ complete: false });
    const server = await install.start();
    const controller = await startController(install, { replicas: [server] });
    await Promise.all([controller.ready(), server.ready()]);
    const clients = ClientInstall.of(cluster, install.installation);
    const team = await cluster.namespace();
    await clients.apply(team, 'before');
    await clients.whenReady(team, 'before');

    const value = Buffer.from(randomBytes(32).toString('base64url')).toString('base64');
    const answer = await cluster.call('PATCH', secretPath(install), {
      body: { data: { [CONTROLLER_SECRET.key]: value } },
    });
    expect(answer.status).toBe(200);
    const key = `/apis/grantry.dev/v1alpha1/namespaces/${install.namespace}/signingkeys/default`;
    const activeKeyId = async () => (await cluster.call('GET', key)).body.status?.activeKeyId;
    // A server serves a key that it finds, whether or not its status shows it yet.
    await until('the status shows the key', async () => (await activeKeyId()) !== undefined);
    const revoked = await cluster.call('PATCH', key, { body: { spec: { revokedKeyIds: [await activeKeyId()] } } });
    expect(revoked.status).toBe(200);
    await clients.apply(team, 'after');
    await clients.whenReady(team, 'after');

    await cluster.call('DELETE', secretPath(install));
    const isRestored = async () =>
      (await cluster.call('GET', secretPath(install))).body.data?.[CONTROLLER_SECRET.key] === value;
    await until('it is restored with its value', isRestored);
    await clients.apply(team, 'again');
    await clients.whenReady(team, 'again');
  }, 120_000);

  it('is reported for no access token, and a proof is no token', async () => {
    const install = await installed();
    const [server] = await install.startReady(1);
    if (server === undefined) throw new Error('nothing was started');
    const client = await install.client(await cluster.namespace(), 'curious');
    await until('it is served', async () => (await server.token(client)).status === 200);
    const { access_token: token } = (await server.token(client)).body;
    for (const path of PATHS) {
      const response = await fetch(`${server.admin}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify(questionAt(path)),
      });
      expect(response.status).toBe(403);
    }
  });
});
