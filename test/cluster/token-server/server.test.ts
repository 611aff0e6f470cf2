// `grantry server` against a real API server, as the ServiceAccount it has in a cluster.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashPassword } from '../../../src/login/local/local-users.ts';
import { expectWithin, timed } from '../../redis/setup/connect.ts';
import { until } from '../../until.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { CALLBACK, codeFor, introspect, type Person, redeem, refresh } from '../setup/signed-in.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const cluster = sharedCluster();
const ADA: Person = { username: 'ada', password: 'the password of ada' };

describe('three token servers', () => {
  let install: TokenServers;
  let servers: readonly TokenServerProcess[];
  let tenant: string;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grantry-server-'));
    const users = join(folder, 'users.yaml');
    const { username, password } = ADA;
    await writeFile(users, JSON.stringify([{ username, passwordHash: await hashPassword(password) }]));
    install = await TokenServers.install(cluster);
    servers = await install.startReady(3, { environment: { GRANTRY_USERS_FILE: users } });
    tenant = await cluster.namespace();
  });
  afterAll(async () => {
    await install?.stop();
    await rm(folder, { recursive: true });
  });

  const statuses = async (client: AClient) =>
    await Promise.all(servers.map(async (server) => (await server.token(client)).status));
  const everywhere = async (client: AClient, status: number) =>
    await until(`${client.clientId} gets ${status}`, async () =>
      (await statuses(client)).every((each) => each === status),
    );
  const patch = async ({ namespace, name }: AClient, spec: object) =>
    await cluster.apply(install.manifest(namespace, name, spec));

  it('serve a client as soon as it is applied and its secret is known', async () => {
    const client = await install.client(tenant, 'first');
    await everywhere(client, 200);
    const [first] = servers;
    const { body } = (await first?.token(client)) ?? {};
    const [, payload = ''] = body?.access_token?.split('.') ?? [];
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({ client_id: `${tenant}.first` });
  });

  it('serve no client any more that is suspended or deleted', async () => {
    const client = await install.client(tenant, 'stopped');
    await everywhere(client, 200);
    await patch(client, { suspended: true });
    await everywhere(client, 401);
    await patch(client, { suspended: false });
    await everywhere(client, 200);
    await cluster.call('DELETE', await cluster.pathOf(install.manifest(tenant, 'stopped')));
    await everywhere(client, 401);
  });

  it('honour no token any more that is older than its client’s revokeTokensBefore, and every younger one', async () => {
    const person = { grantTypes: ['authorization_code', 'refresh_token'], redirectUris: [CALLBACK] };
    const client = await install.client(tenant, 'leaked', person);
    const [first] = servers;
    if (first === undefined) throw new Error('nothing was started');
    const areActive = async (tokens: readonly string[]) =>
      await Promise.all(
        servers.flatMap((server) => tokens.map(async (token) => (await introspect(server, client, token)).body.active)),
      );
    const issued = async () => {
      const { body } = await redeem(first, client, await codeFor(first, client.clientId, ADA));
      return { access: body.access_token ?? '', refresh: body.refresh_token ?? '' };
    };
    await until('it is known everywhere', async () => (await areActive(['none'])).every((each) => each === false));
    const older = await issued();
    expect(await areActive(Object.values(older))).toEqual(Array.from({ length: 6 }, () => true));
    await patch(client, { ...person, revokeTokensBefore: new Date().toISOString() });
    await until('they are revoked', async () =>
      (await areActive(Object.values(older))).every((each) => each === false),
    );
    for (const server of servers) {
      const refused = await refresh(server, client, older.refresh);
      expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    }
    const younger = await issued();
    expect(await areActive(Object.values(younger))).toEqual(Array.from({ length: 6 }, () => true));
    expect((await refresh(first, client, younger.refresh)).status).toBe(200);
  });

  it('refuse within a second, all of them, what a manifest has put an end to', async () => {
    const client = await install.client(tenant, 'ended');
    await everywhere(client, 200);
    const [first] = servers;
    if (first === undefined) throw new Error('nothing was started');
    await expectWithin(1000, async () => {
      await patch(client, {});
      await everywhere(client, 200);
      const { error, milliseconds } = await timed(async () => {
        await patch(client, { suspended: true });
        await everywhere(client, 401);
      });
      expect(error).toBeUndefined();
      return milliseconds;
    });
    await patch(client, {});
    await everywhere(client, 200);
    await expectWithin(1000, async () => {
      const token = (await first.token(client)).body.access_token ?? '';
      const active = async () =>
        await Promise.all(servers.map(async (server) => (await introspect(server, client, token)).body.active));
      expect(await active()).toEqual([true, true, true]);
      const { error, milliseconds } = await timed(async () => {
        await patch(client, { revokeTokensBefore: new Date().toISOString() });
        await until('it is revoked', async () => (await active()).every((each) => each === false));
      });
      expect(error).toBeUndefined();
      // A token of the same second would be revoked from the start.
      await sleep(1000);
      return milliseconds;
    });
  });

  it('take over a new secret, and drop the old one when its time has come', async () => {
    const client = await install.client(tenant, 'rotated');
    await everywhere(client, 200);
    const next = { ...client, secret: randomBytes(32).toString('base64url') };
    const expiresAt = Math.ceil(Date.now() / 1000) * 1000 + 3000;
    const both = [{ secret: next.secret }, { secret: client.secret, expiresAt }];
    await install.writeVerifiers(client, both, { revision: 2 });
    await everywhere(next, 200);
    const meanwhile = await statuses(client);
    // On a busy machine it may be over by now.
    if (Date.now() < expiresAt) expect(meanwhile).toEqual([200, 200, 200]);
    await everywhere(client, 401);
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAt);
    expect(await statuses(next)).toEqual([200, 200, 200]);
  });

  it('believe no verifier of another type, under another name, or that cannot be read', async () => {
    const client = await install.client(tenant, 'guarded');
    await everywhere(client, 200);
    const forged = { ...client, secret: randomBytes(32).toString('base64url') };
    const secrets = [{ secret: forged.secret }];
    await install.writeVerifiers(client, secrets, { type: 'Opaque', name: `grantry-client-${client.uid}-2` });
    await install.writeVerifiers(client, secrets, { name: `other-${client.uid}` });
    const marker = await install.client(tenant, 'marker');
    await everywhere(marker, 200);
    expect(await statuses(forged)).toEqual([401, 401, 401]);
    expect(await statuses(client)).toEqual([200, 200, 200]);
    const path = `/api/v1/namespaces/${install.namespace}/secrets/grantry-client-${client.uid}`;
    await cluster.call('PATCH', path, { body: { data: { verifiers: 'bm8ganNvbg==' } } });
    await everywhere(client, 401);
  });

  it('believe no verifier without the label that they list Secrets by, and none that has lost it', async () => {
    const client = await install.client(tenant, 'planted');
    await everywhere(client, 200);
    await install.writeVerifiers(client, [{ secret: client.secret }], { labels: {} });
    await everywhere(client, 401);
    const planted = { ...client, secret: randomBytes(32).toString('base64url') };
    for (const labels of [{}, { 'grantry.dev/part': 'webhook-of-mine' }, { part: 'verifier' }]) {
      await install.writeVerifiers(client, [{ secret: planted.secret }], { labels, revision: 2 });
      const marker = await install.client(
        tenant,
        `marker-${Object.keys(labels).length}-${randomBytes(4).toString('hex')}`,
      );
      await everywhere(marker, 200);
      expect([await statuses(planted), await statuses(client)]).toEqual([
        [401, 401, 401],
        [401, 401, 401],
      ]);
    }
    await install.writeVerifiers(client, [{ secret: planted.secret }], { revision: 2 });
    await everywhere(planted, 200);
  });

  it('are as strict as a policy has become', async () => {
    const own = await cluster.namespace();
    const policy = (scopes: readonly string[]) => ({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name: `${own}-policy` },
      spec: {
        className: install.installation.className,
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': own } },
        allow: { scopes },
      },
    });
    const shop = await install.client(own, 'shop', { scopes: ['shop:write'] });
    const other = await install.client(tenant, 'unconcerned');
    await everywhere(other, 200);
    expect(await statuses(shop)).toEqual([401, 401, 401]);
    await cluster.apply(policy(['shop:*']));
    await everywhere(shop, 200);
    await cluster.apply(policy(['shop:read']));
    await everywhere(shop, 401);
    expect(await statuses(other)).toEqual([200, 200, 200]);
    await cluster.call('DELETE', await cluster.pathOf(policy([])));
  });

  it('validate by the labels that a namespace has now', async () => {
    const own = await cluster.namespace({ tier: 'none' });
    await cluster.apply({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name: `${own}-tier` },
      spec: {
        className: install.installation.className,
        namespaceSelector: { matchLabels: { tier: own } },
        allow: { scopes: ['gold'] },
      },
    });
    const gold = await install.client(own, 'gold', { scopes: ['gold'] });
    const marker = await install.client(own, 'marker');
    await everywhere(marker, 200);
    expect(await statuses(gold)).toEqual([401, 401, 401]);
    await cluster.call('PATCH', `/api/v1/namespaces/${own}`, { body: { metadata: { labels: { tier: own } } } });
    await everywhere(gold, 200);
  });

  it('give an id to its owner, and to the next when that one is gone', async () => {
    const own = await cluster.namespace();
    await cluster.apply({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name: `${own}-ids` },
      spec: {
        className: install.installation.className,
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': own } },
        allow: { clientIds: ['shared-*'] },
      },
    });
    const older = await install.client(own, 'older', { clientId: `shared-${own}` });
    await everywhere(older, 200);
    // The API server counts ages in seconds.
    await sleep(1100);
    const younger = await install.client(own, 'younger', { clientId: `shared-${own}` });
    const marker = await install.client(own, 'marker');
    await everywhere(marker, 200);
    expect([await statuses(older), await statuses(younger)]).toEqual([
      [200, 200, 200],
      [401, 401, 401],
    ]);
    await cluster.call('DELETE', await cluster.pathOf(install.manifest(own, 'older')));
    await everywhere(younger, 200);
    expect(await statuses(older)).toEqual([401, 401, 401]);
  });

  it('are not harmed by an object that is broken, and serve nothing of it', async () => {
    const broken = await install.client(tenant, 'broken', { redirectUris: ['not an address'], grantTypes: ['magic'] });
    const sound = await install.client(tenant, 'sound');
    await everywhere(sound, 200);
    expect(await statuses(broken)).toEqual([401, 401, 401]);
  });

  it('pass over objects of another class and of the release namespace', async () => {
    const other = await install.client(tenant, 'other-class', { className: 'somebody-else' });
    const inside = await install.client(install.namespace, 'inside');
    const marker = await install.client(tenant, 'class-marker');
    await everywhere(marker, 200);
    expect([await statuses(other), await statuses(inside)]).toEqual([
      [401, 401, 401],
      [401, 401, 401],
    ]);
  });

  it('publish a key, sign with the active one, and drop a revoked one within a second', async () => {
    const keyIds = async () =>
      await Promise.all(
        servers.map(async ({ url }) => {
          const { keys } = (await (await fetch(`${url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] };
          return keys.map(({ kid }) => kid);
        }),
      );
    const revokedKeyIds: string[] = [];
    await expectWithin(1000, async () => {
      const published = await install.writeKey('Published', revokedKeyIds.length === 0 ? {} : { revokedKeyIds });
      await until('it is published', async () => (await keyIds()).every((ids) => ids.includes(published)));
      revokedKeyIds.push(published);
      const { error, milliseconds } = await timed(async () => {
        await cluster.apply({
          apiVersion: 'grantry.dev/v1alpha1',
          kind: 'SigningKey',
          metadata: { namespace: install.namespace, name: 'default' },
          spec: { revokedKeyIds },
        });
        await until('it is gone', async () => (await keyIds()).every((ids) => !ids.includes(published)));
      });
      expect(error).toBeUndefined();
      return milliseconds;
    });
    expect((await keyIds()).every((ids) => ids.length === 1)).toBe(true);
  });

  it('say what they serve, and what their clients met with', async () => {
    const client = await install.client(tenant, 'reported');
    await everywhere(client, 200);
    const [server] = servers;
    if (server === undefined) throw new Error('nothing was started');
    const ask = async (path: string, question: object) => (await install.ask(server, path, question)).body;
    await server.token(client, { scope: 'nobody/gave-it' });
    expect(await ask('/registry/observed', { uids: [client.uid, 'unknown'] })).toMatchObject({
      clients: { [client.uid]: { generation: 1, secretRevision: 1 } },
      keyIds: [expect.stringMatching(/^[\w-]{43}$/)],
    });
    await patch(client, { displayName: 'Reported' });
    await until('the next generation is served', async () => {
      const { clients } = await ask('/registry/observed', { uids: [client.uid] });
      return clients[client.uid]?.generation === 2;
    });
    expect(await ask('/registry/report', {})).toMatchObject({
      lastUsed: { [client.uid]: new Date().toISOString().slice(0, 10) },
      denied: { [client.uid]: [{ reason: 'invalid_scope', generation: 1, count: 1 }] },
      alerts: [],
    });
    await server.token(client, { scope: 'nobody/gave-it' });
    expect(await ask('/registry/report', {})).toMatchObject({
      denied: { [client.uid]: [{ reason: 'invalid_scope', generation: 2, count: 1 }] },
    });
  });
});
