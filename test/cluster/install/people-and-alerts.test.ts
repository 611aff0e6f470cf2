// A whole install with people in it: who may sign in is a mounted file, and a stolen refresh token is reported to the
// webhook and, through the controller, to the owner of the client.

import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CONTROLLER_SECRET, WEBHOOK_SECRET } from '../../../src/admission/references/secret-parts.ts';
import { hashPassword } from '../../../src/login/local/local-users.ts';
import { startReplica } from '../../controller/replicas/replica-servers.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { succeeds, until } from '../../until.ts';
import { type Received, type Receiver, startReceiver } from '../../webhook/receiver.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { FaultProxy, type Match } from '../setup/fault-proxy.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { CALLBACK, type Credentials, codeFor, type Person, redeem, refresh } from '../setup/signed-in.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const ADA: Person = { username: 'ada', password: 'the password of ada' };
const GRACE: Person = { username: 'grace', password: 'the password of grace' };

describeRedis('an install with people', () => {
  const cluster = sharedCluster();
  let folder: string;
  let receiver: Receiver;
  let install: TokenServers;
  let servers: readonly TokenServerProcess[];
  let controller: ControllerProcess;
  let clients: ClientInstall;
  let team: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grantry-people-'));
    await writeUsers([ADA]);
    [receiver, install] = await Promise.all([startReceiver(), TokenServers.install(cluster, { complete: false })]);
    const environment = { GRANTRY_USERS_FILE: join(folder, 'users.yaml'), GRANTRY_ALERT_WEBHOOK_URL: receiver.url };
    servers = await Promise.all([install.start({ environment }), install.start({ environment })]);
    controller = await startController(install, { replicas: servers });
    await Promise.all([controller.ready(), ...servers.map((server) => server.ready())]);
    clients = ClientInstall.of(cluster, install.installation);
    team = await cluster.namespace();
  });
  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await install?.stop();
    receiver?.stop();
    await rm(folder, { recursive: true });
  });

  async function writeUsers(people: readonly Person[]): Promise<void> {
    const entries = people.map(async ({ username, password }) => ({
      username,
      passwordHash: await hashPassword(password),
    }));
    await writeFile(join(folder, 'users.yaml'), JSON.stringify(await Promise.all(entries)));
  }

  async function webClient(name: string, tokens: object = {}): Promise<Credentials & { readonly uid: string }> {
    const grantTypes = ['authorization_code', 'refresh_token'];
    const defaultScopes = [`${team}/read`];
    await clients.apply(team, name, { grantTypes, redirectUris: [CALLBACK], defaultScopes, tokens });
    const { metadata } = await clients.whenReady(team, name);
    const { data } = (await clients.secret(team, `${name}-oauth`)) ?? { data: {} as Record<string, string> };
    return { clientId: data['client-id'] ?? '', secret: data['client-secret'] ?? '', uid: metadata.uid };
  }

  const [first, second] = [() => servers[0] as TokenServerProcess, () => servers[1] as TokenServerProcess];

  /** A refresh token after which its client got another. */
  async function replacedToken(client: Credentials): Promise<string> {
    const { body } = await redeem(first(), client, await codeFor(first(), client.clientId, GRACE));
    const token = body.refresh_token ?? '';
    expect((await refresh(first(), client, token)).status).toBe(200);
    return token;
  }

  async function reuseEvents(name: string): Promise<readonly Record<string, unknown>[]> {
    const { items } = (await cluster.call('GET', `/apis/events.k8s.io/v1/namespaces/${team}/events`)).body;
    const events: { reason: string; regarding: { name: string } }[] = items;
    return events.filter(({ reason, regarding }) => reason === 'RefreshTokenReuse' && regarding.name === name);
  }

  /** The text of a Secret that the controller made. */
  async function secretText({ name, key }: typeof WEBHOOK_SECRET): Promise<string> {
    return (await clients.secret(install.namespace, name))?.data[key] ?? '';
  }

  it('lets those sign in who are in the file now', async () => {
    const client = await webClient('people');
    const tokens = await redeem(second(), client, await codeFor(first(), client.clientId, ADA));
    expect(tokens.status).toBe(200);
    await expect(codeFor(first(), client.clientId, GRACE)).rejects.toThrow(/circles/);
    await writeUsers([GRACE]);
    for (const server of servers) {
      const letsIn = async (person: Person) =>
        await codeFor(server, client.clientId, person).then(
          () => true,
          () => false,
        );
      await until('the file is read again', () => letsIn(GRACE));
      expect(await letsIn(ADA)).toBe(false);
      const refused = await refresh(server, client, tokens.body.refresh_token ?? '');
      expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    }
    await writeUsers([ADA, GRACE]);
    for (const server of servers)
      await until('the file is read', () => succeeds(codeFor(server, client.clientId, ADA)));
  });

  it('a users file with a fault in one entry → another entry disables its user, and /readyz names the fault', async () => {
    const client = await webClient('typo');
    const grace = { username: GRACE.username, passwordHash: await hashPassword(GRACE.password) };
    const text = JSON.stringify([
      { username: ADA.username, disabled: true },
      { ...grace, disbled: false },
    ]);
    await writeFile(join(folder, 'users.yaml'), text);
    for (const server of servers) {
      await until('the file is read', async () =>
        (await server.readiness()).text.includes('users: the file has a fault'),
      );
      expect(await server.readiness()).toMatchObject({ status: 200, text: expect.stringMatching(/ at users\[0\]/) });
      expect(await server.metric('grantry_users_last_reload_successful')).toBe(0);
      // Her hash is another one: until all replicas have recorded it, a sign-in is 503.
      await until('the other person is let in', () => succeeds(codeFor(server, client.clientId, GRACE)));
      expect(await succeeds(codeFor(server, client.clientId, ADA))).toBe(false);
    }
    await writeUsers([ADA, GRACE]);
    for (const server of servers) {
      await until('the file counts', async () => (await server.readiness()).text.includes('users: ok'));
      // Of each person there is another hash again, and each is recorded by itself.
      for (const person of [ADA, GRACE]) {
        await until('the person is let in again', () => succeeds(codeFor(server, client.clientId, person)));
      }
    }
  });

  it('reports a refresh token that came again to the webhook and, once, to the owner of the client', async () => {
    const client = await webClient('stolen', { refreshTokenReuseGrace: '0s' });
    const stolen = await replacedToken(client);
    for (const server of servers) expect((await refresh(server, client, stolen)).status).toBe(400);

    const { status } = await clients.whenCondition(team, 'stolen', 'Alert', 'RefreshTokenReuse');
    const conditions = status.conditions as { type: string; status: string }[];
    expect(conditions.filter(({ type }) => type === 'Alert' || type === 'Ready')).toMatchObject([
      { status: 'True' },
      { status: 'True' },
    ]);
    const told = () => reuseEvents('stolen');
    await until('an Event reports it', async () => (await told()).length > 0);
    const regarding = { kind: 'OAuthClient', name: 'stolen', namespace: team, uid: client.uid };
    expect(await told()).toMatchObject([{ type: 'Warning', regarding }]);

    await until('it is posted', () => receiver.received.length > 0);
    const { headers, body: posted } = receiver.received[0] as Received;
    const [, time, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['grantry-signature'])) ?? [];
    const secret = await secretText(WEBHOOK_SECRET);
    expect(secret.length).toBeGreaterThanOrEqual(32);
    expect(signature).toBe(createHmac('sha256', secret).update(`${time}.${posted}`).digest('hex'));
    expect(JSON.parse(posted)).toMatchObject({ type: 'refresh_token.reuse_detected', clientId: client.clientId });

    // One replica alone has written the audit line, and reports it.
    const key = await secretText(CONTROLLER_SECRET);
    const reports = await Promise.all(servers.map((server) => install.ask(server, '/registry/report', {}, key)));
    const counted = reports.flatMap(({ body }) => body.denied[client.uid] ?? []);
    expect(counted).toMatchObject([{ reason: 'refresh_token.reuse_detected', count: 1 }]);
    expect([await told(), receiver.received]).toMatchObject([{ length: 1 }, { length: 1 }]);
  });

  it('has an alert reported by the next leader, where the one before read it and could write nothing of it', async () => {
    const client = await webClient('unheard', { refreshTokenReuseGrace: '0s' });
    const stolen = await replacedToken(client);
    await controller.process.end();
    const proxy = await FaultProxy.start(cluster.address);
    try {
      const isEvent: Match = ({ method, path }) => method === 'PATCH' && path.includes(`/namespaces/${team}/events/`);
      const isStatus: Match = ({ method, path }) => method === 'PATCH' && path.endsWith('/unheard/status');
      proxy.answer((seen) => isEvent(seen) || isStatus(seen), { status: 500, reason: 'InternalError' });
      // A replica that serves every client, and counts how often all of them are asked for reports.
      let asked = 0;
      const admin = await startReplica((path, question) => {
        const { uids = [] } = question as { uids?: readonly string[] };
        if (path.endsWith('/report')) asked += 1;
        const served = Object.fromEntries(uids.map((uid) => [uid, { generation: 1, secretRevision: 1 }]));
        return { body: { cursor: '1', lastUsed: {}, denied: {}, alerts: [], clients: served, keyIds: [] } };
      });
      const unable = await startController(install, { replicas: [...servers, { admin }], url: proxy.url });
      await unable.ready();
      expect((await refresh(second(), client, stolen)).status).toBe(400);
      // Status may be written for the last use as well.
      await until('it was read', () => proxy.count(isEvent) > 0, 30_000);
      const tries = proxy.count(isStatus);
      await until('status was tried', () => proxy.count(isStatus) > tries, 30_000);
      const before = asked;
      await until('every replica is asked once more', () => asked > before);
      // It ends when all have answered.
      await unable.process.end();
    } finally {
      await proxy.stop();
    }
    expect(await reuseEvents('unheard')).toEqual([]);
    controller = await startController(install, { replicas: servers });
    await clients.whenCondition(team, 'unheard', 'Alert', 'RefreshTokenReuse');
    await until('an Event reports it', async () => (await reuseEvents('unheard')).length > 0);
  }, 120_000);
});
