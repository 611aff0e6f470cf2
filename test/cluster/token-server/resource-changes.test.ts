// Two token servers over a real API server: what each answers once the owner of an API has changed it. How long that took
// is an annotation of the test.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, it, type TestContext } from 'vitest';
import { hashPassword } from '../../../src/login/local/local-users.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { CALLBACK, codeForAccess, type Person, redeem } from '../setup/signed-in.ts';
import { type AClient, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const ADA: Person = { username: 'ada', password: 'the password of ada' };

type Form = Readonly<Record<string, string>>;

/** The same on each replica; `token` for a success, otherwise the code of the error. */
const everywhere = (outcome: string) => [outcome, outcome];

describeRedis('two token servers, given a resource', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let servers: readonly TokenServerProcess[];
  let owner: string;
  let tenant: string;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grantry-resources-'));
    const users = join(folder, 'users.yaml');
    const { username, password } = ADA;
    await writeFile(users, JSON.stringify([{ username, passwordHash: await hashPassword(password) }]));
    install = await TokenServers.install(cluster);
    servers = await install.startReady(2, { environment: { GRANTRY_USERS_FILE: users } });
    [owner, tenant] = await Promise.all([cluster.namespace(), cluster.namespace()]);
  });
  afterAll(async () => {
    await install?.stop();
    await rm(folder, { recursive: true });
  });

  const own = () => `urn:grantry:ns:${tenant}:default`;
  const identifier = (name: string) => `urn:grantry:ns:${owner}:${name}`;
  const [read, write] = [() => `${owner}/read`, () => `${owner}/write`];

  function resource(name: string, { scopes = [read(), write()], namespaces = [tenant] } = {}) {
    return {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ProtectedResource',
      metadata: { namespace: owner, name },
      spec: {
        className: install.installation.className,
        scopes: scopes.map((scope) => ({ name: scope })),
        allowedClients: namespaces.length === 0 ? [] : [{ namespaces }],
      },
    };
  }

  /** A client that has an audience of its own, and refers to these resources; served by both. */
  async function clientOf(...names: readonly string[]): Promise<AClient> {
    const client = await install.client(tenant, `of-${names.join('-')}`, {
      grantTypes: ['client_credentials', 'authorization_code', 'refresh_token'],
      redirectUris: [CALLBACK],
      audiences: [own()],
      defaultAudience: own(),
      resources: names.map((name) => ({ namespace: owner, name })),
    });
    await untilBoth(client, {}, 'token');
    return client;
  }

  async function answers(client: AClient, form: Form): Promise<readonly string[]> {
    const each = await Promise.all(servers.map((server) => server.token(client, form)));
    return each.map(({ body }) => (body.access_token === undefined ? String(body.error) : 'token'));
  }

  async function untilBoth(client: AClient, form: Form, outcome: string): Promise<void> {
    let seen: readonly string[] = [];
    const holds = async () => {
      seen = await answers(client, form);
      return seen.every((each) => each === outcome);
    };
    await until(`both answer ${outcome}`, holds).catch(() => expect(seen).toEqual(everywhere(outcome)));
  }

  /** Makes a change, and waits until both answer so. */
  async function change(
    { annotate }: Pick<TestContext, 'annotate'>,
    make: () => Promise<unknown>,
    [client, form, outcome]: Parameters<typeof untilBoth>,
  ): Promise<void> {
    await make();
    const written = performance.now();
    await untilBoth(client, form, outcome);
    await annotate(`both answer ${outcome} ${Math.round(performance.now() - written)} ms after the write`);
  }

  it('with a grant that comes and goes → tokens while it is there, then invalid_target for that resource only', async (test) => {
    const of = { resource: identifier('granted'), scope: read() };
    const ofOther = { resource: identifier('other'), scope: read() };
    await cluster.apply(resource('granted', { namespaces: [] }), resource('other'));
    const client = await clientOf('granted', 'other');
    await untilBoth(client, ofOther, 'token');
    expect(await answers(client, of)).toEqual(everywhere('invalid_target'));

    await change(test, () => cluster.apply(resource('granted')), [client, of, 'token']);
    for (const server of servers) {
      const { body } = await server.token(client, of);
      expect(decodeJwt(body.access_token ?? '')).toMatchObject({ aud: of.resource, scope: read() });
    }

    const elsewhere = { namespaces: [`not-${tenant}`] };
    await change(test, () => cluster.apply(resource('granted', elsewhere)), [client, of, 'invalid_target']);
    expect(await answers(client, {})).toEqual(everywhere('token'));
    expect(await answers(client, ofOther)).toEqual(everywhere('token'));
  });

  it('that loses a scope → invalid_scope for that scope only', async (test) => {
    const reading = { resource: identifier('narrowed'), scope: read() };
    await cluster.apply(resource('narrowed'));
    const client = await clientOf('narrowed');
    const writing = { ...reading, scope: write() };
    await untilBoth(client, writing, 'token');
    const narrowed = resource('narrowed', { scopes: [read()] });
    await change(test, () => cluster.apply(narrowed), [client, writing, 'invalid_scope']);
    expect(await answers(client, reading)).toEqual(everywhere('token'));
    expect(await answers(client, {})).toEqual(everywhere('token'));
  });

  it('that is deleted → invalid_target for it, at a refresh too, and the rest of the grant lives', async (test) => {
    const of = { resource: identifier('deleted') };
    const reading = { ...of, scope: read() };
    await cluster.apply(resource('deleted'));
    const client = await clientOf('deleted');
    await untilBoth(client, reading, 'token');
    const [first] = servers;
    if (first === undefined) throw new Error('nothing was started');
    const access = {
      client_id: client.clientId,
      scope: `${tenant}/read ${read()}`,
      resource: [own(), of.resource],
    };
    const code = await codeForAccess(first, access, ADA);
    let token = (await redeem(first, client, code)).body.refresh_token ?? '';
    const refreshed = async (server: TokenServerProcess, form: Form) => {
      const renewal = { grant_type: 'refresh_token', refresh_token: token, ...form };
      const { body } = await server.token(client, renewal);
      token = body.refresh_token ?? token;
      return body.access_token === undefined ? body.error : decodeJwt(body.access_token).aud;
    };
    for (const server of servers) expect(await refreshed(server, of)).toBe(of.resource);

    const gone = async () => await cluster.call('DELETE', await cluster.pathOf(resource('deleted')));
    await change(test, gone, [client, reading, 'invalid_target']);
    for (const server of servers) {
      expect(await refreshed(server, of)).toBe('invalid_target');
      expect(await refreshed(server, {})).toBe(own());
    }
    expect(await answers(client, {})).toEqual(everywhere('token'));
  });
});
