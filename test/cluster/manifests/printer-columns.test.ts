// What `kubectl get` prints of our kinds, column by column, of objects in every state that a user looks for.

import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import type { Manifest } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { STARTS } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const PATIENCE = 20_000;
/** `5s`, `2m`, `3h10m`, `4d` … */
const SOME_AGE = /^(\d+[smhd])+$/;

describeRedis('what kubectl prints', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let clients: ClientInstall;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
  let team: string;

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    clients = ClientInstall.of(cluster, install.installation);
    server = await install.start();
    controller = await startController(install, { replicas: [server] });
    team = await cluster.namespace();
    await Promise.all([controller.ready(), server.ready()]);
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await install?.stop();
  });

  /** What is printed, without the ages, which have to be some. */
  async function printed(...args: readonly string[]): Promise<readonly Row[]> {
    const { output, errors } = await cluster.kubectl(['get', ...args]);
    expect(errors).toBe('');
    return rows(output).map(({ AGE, ...row }) => {
      expect(AGE).toMatch(SOME_AGE);
      return row;
    });
  }

  const policy = (name: string, values: readonly string[], allow: object = {}): Manifest => ({
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'ClientPolicy',
    metadata: { name },
    spec: {
      className: install.installation.className,
      namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }] },
      allow,
    },
  });

  it('of clients: who they are, whether they are served and why not; wide, their secret, grants, policy and use', async () => {
    const name = `${team}-columns`;
    await cluster.apply(policy(name, [team], { scopes: ['shop:*'] }));
    const grants = ['refresh_token', 'client_credentials', 'authorization_code'];
    const scopes = ['shop:read'];
    const person = {
      grantTypes: grants,
      redirectUris: ['https://shop.example/callback'],
      scopes,
      defaultScopes: scopes,
    };
    const rotated = { auth: { clientSecret: { rotation: { interval: '720h', gracePeriod: '48h' } } } };
    const existing = { method: 'client_secret_post', clientSecret: { source: 'Existing', secretName: 'not-there' } };
    await clients.apply(team, 'public', { ...person, grantTypes: grants.slice(2), auth: { method: 'none' } });
    await clients.apply(team, 'ready', { ...person, ...rotated });
    await clients.apply(team, 'refused', { scopes: ['bank:write'] });
    await clients.apply(team, 'suspended', { scopes, suspended: true });
    await clients.apply(team, 'waiting', { scopes, auth: existing });
    const reasons = {
      public: 'Ready',
      ready: 'Ready',
      refused: 'PolicyViolation',
      suspended: 'Suspended',
      waiting: 'SecretNotFound',
    };
    for (const [client, reason] of Object.entries(reasons)) {
      // Some would be refused or suspended without the policy, too.
      await until(
        `${client} is validated against it`,
        async () => (await clients.client(team, client)).status?.policy === name,
      );
      await clients.whenCondition(team, client, 'Ready', reason);
    }

    const row = (client: keyof typeof reasons, auth: string, ready: string): Row => ({
      NAME: client,
      'CLIENT-ID': `${team}.${client}`,
      AUTH: auth,
      READY: ready,
      REASON: reasons[client],
    });
    const narrow = [
      row('public', 'none', 'True'),
      row('ready', 'client_secret_basic', 'True'),
      row('refused', 'client_secret_basic', 'False'),
      row('suspended', 'client_secret_basic', 'False'),
      row('waiting', 'client_secret_post', 'False'),
    ];
    expect(await printed('oauthclients', '-n', team)).toEqual(narrow);
    const { secret } = (await clients.client(team, 'ready')).status;
    const more: Readonly<Record<string, Row>> = {
      public: { GRANTS: 'authorization_code' },
      ready: { GRANTS: grants.join(','), SECRET: 'ready-oauth', 'NEXT-ROTATION': secret.nextRotationTime },
    };
    expect(secret.nextRotationTime).toBe(after(secret.lastRotationTime, 720));
    const none = { SECRET: '', 'NEXT-ROTATION': '', GRANTS: 'client_credentials', POLICY: name, 'LAST-USED': '' };
    const wide = narrow.map((each) => ({ ...each, ...none, ...more[each.NAME ?? ''] }));
    expect(await printed('oac', '-n', team, '-o', 'wide')).toEqual(wide);

    const { data } = (await clients.secret(team, 'ready-oauth')) ?? { data: {} as Record<string, string> };
    const used = { clientId: `${team}.ready`, uid: '', secret: data['client-secret'] ?? '', namespace: team, name: '' };
    expect((await server.token(used)).status).toBe(200);
    // It is written with other news, or at the client's time of day.
    await until(
      'its use is reported',
      async () => {
        await clients.apply(team, 'ready', { ...person, ...rotated, displayName: `Used ${Date.now()}` });
        await clients.whenReady(team, 'ready');
        return (await clients.client(team, 'ready')).status.lastUsedTime !== undefined;
      },
      STARTS,
      500,
    );
    const [first] = await printed('oac', 'ready', '-n', team, '-o', 'wide');
    expect(first).toEqual({ ...wide[1], 'LAST-USED': expect.stringMatching(SOME_AGE) });
  });

  it('of policies: whether they count, and how many namespaces and clients they select', async () => {
    const [own, other] = [await cluster.namespace(), await cluster.namespace()];
    await cluster.apply(
      policy(`${own}-both`, [own, other]),
      policy(`${own}-nobody`, ['nobody-has-this-name']),
      policy(`${own}-one`, [own]),
    );
    for (const name of ['one', 'two']) await clients.apply(own, name);
    await clients.apply(other, 'three');
    const expected: readonly Row[] = [
      { NAME: `${own}-both`, READY: 'True', REASON: 'Ready', NAMESPACES: '2', CLIENTS: '3' },
      { NAME: `${own}-nobody`, READY: 'True', REASON: 'Ready', NAMESPACES: '0', CLIENTS: '0' },
      { NAME: `${own}-one`, READY: 'True', REASON: 'Ready', NAMESPACES: '1', CLIENTS: '2' },
    ];
    const names = expected.map(({ NAME = '' }) => NAME);
    const all = async () => await printed('clientpolicies', ...names);
    await until('all are counted', async () => isDeepStrictEqual(await all(), expected), PATIENCE, 500).catch(() => {});
    expect(await all()).toEqual(expected);
    expect(await printed('clientpolicies', ...names, '-o', 'wide')).toEqual(expected);
  });

  it('of resources: their identifiers, whether they are served and why not; wide, what their tokens must be', async () => {
    const { className } = install.installation;
    const resource = (name: string, spec: object): Manifest => ({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ProtectedResource',
      metadata: { name, namespace: team },
      spec: { className, ...spec },
    });
    await cluster.apply(
      resource('bad', { resource: 'https://Notes.example.com' }),
      resource('notes', { discovery: 'None', tokens: { senderConstraint: 'DPoP' } }),
    );
    const expected: readonly Row[] = [
      { NAME: 'bad', RESOURCE: 'https://Notes.example.com', READY: 'False', REASON: 'InvalidResource' },
      { NAME: 'notes', RESOURCE: `urn:grantry:ns:${team}:notes`, READY: 'True', REASON: 'Ready' },
    ];
    const all = async () => await printed('protectedresources', '-n', team);
    await until('both have a verdict', async () => isDeepStrictEqual(await all(), expected), PATIENCE, 500).catch(
      () => {},
    );
    expect(await all()).toEqual(expected);
    expect(await printed('opr', '-n', team, '-o', 'wide')).toMatchObject([
      { DISCOVERY: 'Public' },
      { DISCOVERY: 'None', 'SENDER-CONSTRAINT': 'DPoP' },
    ]);
  });

  it('of identity providers: their type, whether people can sign in by them, why not, and the address to register', async () => {
    const { namespace } = install;
    const provider = (name: string, spec: object): Manifest => ({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'IdentityProvider',
      metadata: { name, namespace },
      spec: { clientSecretRef: { name: 'absent' }, ...spec },
    });
    await cluster.apply(
      provider('corp', { type: 'OIDC', oidc: { issuer: 'https://id.corp.example' } }),
      provider('github', { type: 'GitHub' }),
    );
    const expected: readonly Row[] = [
      { NAME: 'corp', TYPE: 'OIDC', READY: 'False', REASON: 'SecretNotFound' },
      { NAME: 'github', TYPE: 'GitHub', READY: 'False', REASON: 'OrganizationsMissing' },
    ];
    const all = async () => await printed('identityproviders', '-n', namespace);
    await until('both have a verdict', async () => isDeepStrictEqual(await all(), expected), PATIENCE, 500).catch(
      () => {},
    );
    expect(await all()).toEqual(expected);
    expect(await printed('idp', '-n', namespace, '-o', 'wide')).toMatchObject([
      { 'CALLBACK-URL': expect.stringMatching(/\/login\/callback\/corp$/) },
      { 'CALLBACK-URL': expect.stringMatching(/\/login\/callback\/github$/) },
    ]);
  });

  it('of signing keys: what they sign with, the key that does, whether it does, and until when', async () => {
    const ring = (name: string, spec: object): Manifest => ({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'SigningKey',
      metadata: { name, namespace: install.namespace },
      spec,
    });
    await cluster.apply(
      ring('by-hand', { algorithm: 'ES384', rotation: { policy: 'Manual' } }),
      ring('imported', { algorithm: 'EdDSA', importSecretRef: { name: 'not-there' } }),
      ring('suspended', { suspended: true }),
    );
    const path = `/apis/grantry.dev/v1alpha1/namespaces/${install.namespace}/signingkeys`;
    const ready = async (name: string) => {
      const { conditions = [] } = (await cluster.call('GET', `${path}/${name}`)).body.status ?? {};
      return conditions.find(({ type }: { type: string }) => type === 'Ready')?.reason;
    };
    const made = ['default', 'default-rs256'].map((name): [string, string] => [name, 'Ready']);
    const reasons = { 'by-hand': 'Ready', imported: 'SecretNotFound', suspended: 'Suspended' };
    for (const [name, reason] of [...made, ...Object.entries(reasons)]) {
      await until(`${name} is ${reason}`, async () => (await ready(name)) === reason);
    }
    let keys: readonly PublishedKey[] = [];
    // A first key signs at once: nothing waits for the replica.
    await until('the keys are published', async () => {
      const response = await fetch(`${server.url}/.well-known/jwks.json`);
      ({ keys } = (await response.json()) as { keys: PublishedKey[] });
      return keys.length === 3;
    });
    const keyOf = (algorithm: string) => keys.find(({ alg }) => alg === algorithm)?.kid ?? 'none is published';
    const rotationAfter = async (name: string) =>
      after((await cluster.call('GET', `${path}/${name}`)).body.status.lastRotationTime, 2160);
    const expected: readonly Row[] = [
      {
        NAME: 'by-hand',
        ALGORITHM: 'ES384',
        'ACTIVE-KEY': keyOf('ES384'),
        READY: 'True',
        REASON: 'Ready',
        'NEXT-ROTATION': '',
      },
      {
        NAME: 'default',
        ALGORITHM: 'ES256',
        'ACTIVE-KEY': keyOf('ES256'),
        READY: 'True',
        REASON: 'Ready',
        'NEXT-ROTATION': await rotationAfter('default'),
      },
      {
        NAME: 'default-rs256',
        ALGORITHM: 'RS256',
        'ACTIVE-KEY': keyOf('RS256'),
        READY: 'True',
        REASON: 'Ready',
        'NEXT-ROTATION': await rotationAfter('default-rs256'),
      },
      {
        NAME: 'imported',
        ALGORITHM: 'EdDSA',
        'ACTIVE-KEY': '',
        READY: 'False',
        REASON: 'SecretNotFound',
        'NEXT-ROTATION': '',
      },
      {
        NAME: 'suspended',
        ALGORITHM: 'ES256',
        'ACTIVE-KEY': '',
        READY: 'False',
        REASON: 'Suspended',
        'NEXT-ROTATION': '',
      },
    ];
    expect(await printed('signingkeys', '-n', install.namespace)).toEqual(expected);
    expect(await printed('signingkeys', '-n', install.namespace, '-o', 'wide')).toEqual(expected);
  });
});

interface PublishedKey {
  readonly kid: string;
  readonly alg: string;
}

/** So many hours later. */
function after(time: string, hours: number): string {
  return new Date(Date.parse(time) + hours * 3_600_000).toISOString().replace('.000Z', 'Z');
}

type Row = Readonly<Record<string, string>>;

/** A table by the names of its columns: each value begins where the name of its column does. */
function rows(text: string): readonly Row[] {
  const [head = '', ...lines] = text.trimEnd().split('\n');
  const columns = [...head.matchAll(/(\S+)\s*/g)].map(({ 0: cell, 1: name = '', index }) => ({ cell, name, index }));
  return lines.map((line) =>
    Object.fromEntries(
      columns.map(({ cell, name, index }, at) => {
        const end = at + 1 === columns.length ? undefined : index + cell.length;
        return [name, line.slice(index, end).trim()];
      }),
    ),
  );
}
