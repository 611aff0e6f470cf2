// People in Secrets of the release namespace, over a real API server with the rights of an install: who may sign in within
// which time, what counts of a Secret with a fault, and which Secrets are never read for people.

import { afterAll, beforeAll, expect, it, type TestContext } from 'vitest';
import { hashPassword } from '../../../src/login/local/local-users.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { succeeds, until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import type { Manifest } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { CALLBACK, type Credentials, codeFor, type Person, redeem, refresh } from '../setup/signed-in.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const PEOPLE_TYPE = 'grantry.dev/users';
const PASSWORD = 'the password of a person';
const passwordHash = await hashPassword(PASSWORD);

const person = (username: string): Person => ({ username, password: PASSWORD });
const entry = (username: string, more: object = {}) => Object.assign({ username, passwordHash }, more);

describeRedis('people in Secrets', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let servers: readonly TokenServerProcess[];
  let controller: ControllerProcess;
  let client: Credentials;
  let team: string;

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    // There before any server is: no sign-in may come before its list is read.
    await cluster.apply(people('early', [entry('early')]));
    servers = await Promise.all([install.start(), install.start()]);
    controller = await startController(install, { replicas: servers });
    await Promise.all([controller.ready(), ...servers.map((server) => server.ready())]);
    team = await cluster.namespace();
    const clients = ClientInstall.of(cluster, install.installation);
    const grantTypes = ['authorization_code', 'refresh_token'];
    await clients.apply(team, 'web', { grantTypes, redirectUris: [CALLBACK], defaultScopes: [`${team}/read`] });
    await clients.whenReady(team, 'web');
    const { data } = (await clients.secret(team, 'web-oauth')) ?? { data: {} as Record<string, string> };
    client = { clientId: data['client-id'] ?? '', secret: data['client-secret'] ?? '' };
  });
  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await install?.stop();
  });

  function people(name: string, list: unknown, { namespace = install.namespace, type = PEOPLE_TYPE } = {}): Manifest {
    const text = typeof list === 'string' ? list : JSON.stringify(list);
    const metadata = { name, namespace };
    return { apiVersion: 'v1', kind: 'Secret', metadata, type, stringData: { 'users.yaml': text, password: PASSWORD } };
  }

  async function remove(manifest: Manifest): Promise<void> {
    await cluster.call('DELETE', await cluster.pathOf(manifest));
  }

  const letsIn = (server: TokenServerProcess, username: string) =>
    succeeds(codeFor(server, client.clientId, person(username)));

  /** Waits until it is so at every server; how long that took is an annotation of the test. */
  async function everywhere(
    context: TestContext,
    what: string,
    holds: (server: TokenServerProcess) => Promise<boolean>,
  ) {
    const began = performance.now();
    for (const server of servers) await until(what, () => holds(server));
    await context.annotate(`${what}: ${Math.round(performance.now() - began)} ms`);
  }

  async function eventsAbout(name: string): Promise<readonly { readonly reason: string; readonly note: string }[]> {
    const { items } = (await cluster.call('GET', `/apis/events.k8s.io/v1/namespaces/${install.namespace}/events`)).body;
    const events: { reason: string; note: string; regarding: { kind: string; name: string } }[] = items;
    return events.filter(({ regarding }) => regarding.kind === 'Secret' && regarding.name === name);
  }

  it('are let in as soon as the servers are ready, and as soon as a Secret is applied', async (context) => {
    for (const server of servers) expect(await letsIn(server, 'early')).toBe(true);
    expect(await letsIn(servers[0] as TokenServerProcess, 'ada')).toBe(false);
    await cluster.apply(people('people', [entry('ada')]));
    await everywhere(context, 'the person is let in', (server) => letsIn(server, 'ada'));
  });

  it('of another type, or of another namespace → are never let in', async (context) => {
    const elsewhere = people('elsewhere', [entry('mallory')], { namespace: team });
    const opaque = people('opaque', [entry('mallory'), { sub: 'usr_0123456789-_abcdefghij', disabled: true }], {
      type: 'Opaque',
    });
    await cluster.apply(elsewhere);
    await cluster.apply(opaque);
    // Applied later, so the former were seen when it is.
    await cluster.apply(people('later', [entry('grace')]));
    await everywhere(context, 'the later one is let in', (server) => letsIn(server, 'grace'));
    for (const server of servers) {
      expect(await letsIn(server, 'mallory')).toBe(false);
      expect((await server.readiness()).text).toContain('users secrets: ok');
    }
    await remove(opaque);
  });

  it('who are disabled, blocked by another Secret, or in a Secret that is deleted → hold nothing', async (context) => {
    const [first] = servers as [TokenServerProcess];
    const names = ['alan', 'barbara', 'edsger'] as const;
    const list = (alan: object) => people('three', [entry('alan', alan), entry('barbara')]);
    const single = people('single', [entry('edsger')]);
    await cluster.apply(list({}));
    await cluster.apply(single);
    const tokens: Record<string, string> = {};
    for (const name of names) {
      await everywhere(context, `${name} is let in`, (server) => letsIn(server, name));
      const { body } = await redeem(first, client, await codeFor(first, client.clientId, person(name)));
      tokens[name] = body.refresh_token ?? '';
    }
    await cluster.apply(list({ disabled: true }));
    await cluster.apply(people('block', '- {provider: local, username: BARBARA, disabled: true}'));
    await remove(single);
    for (const name of names) {
      await everywhere(context, `${name} is out`, async (server) => !(await letsIn(server, name)));
      for (const server of servers) {
        const refused = await refresh(server, client, tokens[name] ?? '');
        expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
      }
    }
  });

  it('in a Secret that gets a fault → only lose; an Event names the entry, and no text of the list', async (context) => {
    await cluster.apply(people('faulty', [entry('donald'), entry('dennis')]));
    await everywhere(context, 'the person is let in', (server) => letsIn(server, 'dennis'));
    const typo = { username: 'kenneth-is-secret', passwordHsh: passwordHash };
    await cluster.apply(people('faulty', [entry('donald', { disabled: true }), entry('dennis'), typo]));
    await everywhere(context, 'the person is out', async (server) => !(await letsIn(server, 'donald')));
    for (const server of servers) {
      expect(await letsIn(server, 'dennis')).toBe(true);
      expect(await server.readiness()).toMatchObject({
        status: 200,
        text: expect.stringContaining(
          'users secrets: the Secret faulty: the list has a fault at users[2].passwordHash',
        ),
      });
      expect(await server.metric('grantry_users_secrets_faulty')).toBe(1);
    }
    await until('there is an Event', async () => (await eventsAbout('faulty')).length > 0);
    const events = await eventsAbout('faulty');
    expect(events).toMatchObject([{ reason: 'InvalidUsers', note: expect.stringContaining('users[2].passwordHash') }]);
    expect(JSON.stringify(events)).not.toMatch(/argon2id|kenneth/);
    await cluster.apply(people('faulty', [entry('donald'), entry('dennis')]));
    await everywhere(context, 'the person is let in again', (server) => letsIn(server, 'donald'));
    await until('it counts', async () => (await servers[0]?.readiness())?.text.includes('users secrets: ok') ?? false);
  });
});
