// Clients without a secret on a real API server: what the controller stores of their ConfigMaps and ServiceAccounts for the
// token servers, how that follows every change, and what it reads of the objects of tenants.

import { beforeAll, describe, expect, it } from 'vitest';
import { VERIFIER_SECRET_TYPE, verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import { aKey } from '../../oauth/values/signed-tokens.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { FaultProxy } from '../setup/fault-proxy.ts';
import { createTenant, type Tenant } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();
const supportedAuthMethods = ['client_secret_basic', 'private_key_jwt', 'kubernetes_service_account'];
const [FIRST, SECOND] = ['first', 'second'].map((kid) => ({ ...aKey('ES256').jwk, kid }));
const BY_CONFIG_MAP = { method: 'private_key_jwt', privateKeyJwt: { jwksConfigMapRef: { name: 'keys' } } };

let install: ClientInstall;
beforeAll(async () => {
  install = await ClientInstall.make(cluster);
});

/** A namespace with its own objects. */
class Team {
  readonly namespace: string;

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  async publish(...keys: readonly unknown[]): Promise<void> {
    await this.#apply('ConfigMap', 'keys', { data: { 'jwks.json': JSON.stringify({ keys }) } });
  }

  /** @returns its uid */
  async account(name: string): Promise<string> {
    const [made] = await this.#apply('ServiceAccount', name);
    return String(made?.metadata.uid);
  }

  async delete(plural: string, name: string): Promise<void> {
    await cluster.call('DELETE', `/api/v1/namespaces/${this.namespace}/${plural}/${name}`);
  }

  async client(name: string, auth: object): Promise<void> {
    await install.apply(this.namespace, name, { auth });
  }

  byAccounts(name: string, ...accounts: readonly string[]): Promise<void> {
    const serviceAccounts = accounts.map((account) => ({ name: account }));
    return this.client(name, { method: 'kubernetes_service_account', serviceAccounts });
  }

  #apply(kind: string, name: string, more: object = {}) {
    return cluster.apply({ apiVersion: 'v1', kind, metadata: { namespace: this.namespace, name }, ...more });
  }
}

async function aTeam(): Promise<Team> {
  return new Team(await cluster.namespace());
}

async function kidsOf(uid: string): Promise<readonly unknown[] | undefined> {
  return (await install.verifiers(uid))?.jwks?.map(({ kid }) => kid);
}

async function accountsOf(uid: string): Promise<Readonly<Record<string, string>>> {
  const { serviceAccounts = [] } = (await install.verifiers(uid)) ?? {};
  return Object.fromEntries(serviceAccounts.map((account) => [account.name, account.uid]));
}

function stores(uid: string, kids: readonly string[] | undefined): Promise<void> {
  return until(`${kids} are stored`, async () => (await kidsOf(uid))?.join() === kids?.join());
}

describe('the keys in a ConfigMap', () => {
  it('are stored, follow its changes, and are gone with it or when it holds none that can be used', async () => {
    await install.start({ supportedAuthMethods });
    const team = await aTeam();
    await team.client('signing', BY_CONFIG_MAP);
    const { metadata } = await install.whenCondition(team.namespace, 'signing', 'ResolvedRefs', 'ConfigMapNotFound');
    await team.publish(FIRST);
    await install.whenReady(team.namespace, 'signing');
    expect(await kidsOf(metadata.uid)).toEqual(['first']);
    const before = (await install.verifiers(metadata.uid))?.revision ?? 0;
    await team.publish(FIRST, SECOND);
    await stores(metadata.uid, ['first', 'second']);
    expect((await install.verifiers(metadata.uid))?.revision).toBe(before + 1);
    await team.publish({ ...FIRST, d: 'private' });
    await stores(metadata.uid, undefined);
    await install.whenCondition(team.namespace, 'signing', 'ResolvedRefs', 'InvalidJwks');
    await team.publish(SECOND);
    await stores(metadata.uid, ['second']);
    await team.delete('configmaps', 'keys');
    await stores(metadata.uid, undefined);
    await install.whenCondition(team.namespace, 'signing', 'ResolvedRefs', 'ConfigMapNotFound');
  });

  it('of the same name in another namespace, and what looks like a verifier Secret there, count for nothing', async () => {
    const tenant: Tenant = await createTenant(cluster, install.installation);
    await install.start({ supportedAuthMethods });
    const [team, other] = [await aTeam(), new Team(tenant.namespace)];
    await other.publish(SECOND);
    await team.publish(FIRST);
    await team.client('aimed-at', BY_CONFIG_MAP);
    const { uid } = (await install.whenReady(team.namespace, 'aimed-at')).metadata;
    const lookAlike = async (namespace: string) => {
      const jwks = Buffer.from(JSON.stringify({ keys: [SECOND] })).toString('base64');
      const data = { revision: Buffer.from('9').toString('base64'), jwks };
      const metadata = { name: verifierSecretName(uid), labels: { 'grantry.dev/part': 'verifier' } };
      const body = { apiVersion: 'v1', kind: 'Secret', metadata, type: VERIFIER_SECRET_TYPE, data };
      return (await cluster.call('POST', `/api/v1/namespaces/${namespace}/secrets`, { token: tenant.token, body }))
        .status;
    };
    expect(await lookAlike(install.installation.namespace)).toBe(403);
    expect(await lookAlike(tenant.namespace)).toBe(201);
    await team.publish(FIRST, { ...FIRST, kid: 'third' });
    await stores(uid, ['first', 'third']);
  });

  it('are all that is read of ConfigMaps: of the others the controller sees names only', async () => {
    const proxy = await FaultProxy.start(cluster.address);
    const team = await aTeam();
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: team.namespace, name: 'unrelated' },
      data: { a: 'b' },
    });
    await team.publish(FIRST);
    await team.account('worker');
    await team.client('signing', BY_CONFIG_MAP);
    await team.byAccounts('working', 'worker');
    const controller = await install.start({ supportedAuthMethods, url: proxy.url });
    for (const name of ['signing', 'working']) await install.whenReady(team.namespace, name);
    await controller.stop();
    await proxy.stop();
    const asked = proxy.requests.filter(({ path }) => /\/(configmaps|serviceaccounts)(\/|$)/.test(path));
    const collections = asked.filter(({ path }) => /\/(configmaps|serviceaccounts)$/.test(path));
    const forms = new Set(collections.map(({ accept }) => /as=(\w+)/.exec(accept)?.[1]));
    expect(forms).toEqual(new Set(['PartialObjectMetadataList', 'PartialObjectMetadata']));
    const read = asked.filter((seen) => !collections.includes(seen) && seen.path.includes(`/${team.namespace}/`));
    const keys = `/api/v1/namespaces/${team.namespace}/configmaps/keys`;
    expect(new Set(read.map(({ path }) => path))).toEqual(new Set([keys]));
  });
});

describe('the ServiceAccounts of a client', () => {
  it('one that is missing is named, the other works, and it works too once it is there', async () => {
    await install.start({ supportedAuthMethods });
    const team = await aTeam();
    await team.byAccounts('working', 'worker', 'helper');
    const { metadata } = await install.whenCondition(
      team.namespace,
      'working',
      'ResolvedRefs',
      'ServiceAccountNotFound',
    );
    const worker = await team.account('worker');
    const { status } = await install.whenReady(team.namespace, 'working');
    const ready = status.conditions.find(({ type }: { type: string }) => type === 'CredentialsReady');
    expect(ready).toMatchObject({ status: 'True', message: expect.stringContaining('"helper"') });
    expect(await accountsOf(metadata.uid)).toEqual({ worker });
    const helper = await team.account('helper');
    await until('both count', async () => (await accountsOf(metadata.uid)).helper === helper);
    expect(await accountsOf(metadata.uid)).toEqual({ worker, helper });
  });

  it('one that is deleted and made again is another: the uid of the first is gone at once', async () => {
    await install.start({ supportedAuthMethods });
    const team = await aTeam();
    const before = await team.account('worker');
    await team.byAccounts('working', 'worker');
    const { uid } = (await install.whenReady(team.namespace, 'working')).metadata;
    expect(await accountsOf(uid)).toEqual({ worker: before });
    await team.delete('serviceaccounts', 'worker');
    await until('it is gone', async () => (await install.verifiers(uid)) === undefined);
    const after = await team.account('worker');
    await until('the new one counts', async () => (await accountsOf(uid)).worker === after);
    expect(after).not.toBe(before);
  });
});

describe('a client that changes its method', () => {
  it('from a secret to keys and back → one kind of credential counts at a time, and revisions only rise', async () => {
    const controller = await install.start({ supportedAuthMethods });
    const team = await aTeam();
    await team.publish(FIRST);
    await team.account('worker');
    await team.client('moving', {});
    const { uid } = (await install.whenReady(team.namespace, 'moving')).metadata;
    const revisions = [(await install.verifiers(uid))?.revision ?? 0];
    const content = async () => {
      const { revision = 0, verifiers, jwks, serviceAccounts } = (await install.verifiers(uid)) ?? {};
      revisions.push(revision);
      return [verifiers?.length, jwks?.length, serviceAccounts?.length];
    };
    await team.client('moving', BY_CONFIG_MAP);
    await install.whenReady(team.namespace, 'moving');
    expect(await content()).toEqual([0, 1, undefined]);
    expect(await install.secret(team.namespace, 'moving-oauth')).toBeUndefined();
    await team.byAccounts('moving', 'worker');
    await install.whenReady(team.namespace, 'moving');
    expect(await content()).toEqual([0, undefined, 1]);
    await team.client('moving', { method: 'client_secret_basic' });
    await install.whenReady(team.namespace, 'moving');
    expect(await content()).toEqual([1, undefined, undefined]);
    expect(revisions).toEqual(revisions.toSorted((a, b) => a - b));
    expect(new Set(revisions).size).toBe(revisions.length);
    const secret = await install.secret(team.namespace, 'moving-oauth');
    expect(await install.accepts(uid, secret?.data['client-secret'])).toBe(true);
    expect(controller.eventsOf('moving')).toEqual(['SecretCreated', 'SecretCreated']);
  });

  it('to keys of its manifest → nothing is stored', async () => {
    await install.start({ supportedAuthMethods });
    const team = await aTeam();
    await team.client('moving', {});
    const { uid } = (await install.whenReady(team.namespace, 'moving')).metadata;
    await team.client('moving', { method: 'private_key_jwt', privateKeyJwt: { jwks: { keys: [FIRST] } } });
    await install.whenReady(team.namespace, 'moving');
    expect(await install.verifiers(uid)).toBeUndefined();
  });
});
