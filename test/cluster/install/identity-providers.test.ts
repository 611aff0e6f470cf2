// Identity providers of an install over a real API server: what the controller reports, what a server holds of them with
// its own rights, within which time, and what no manifest can have it read.

import { afterAll, beforeAll, expect, it, onTestFinished, type TestContext } from 'vitest';
import { RegistrySync } from '../../../src/cluster-registry/registry-sync.ts';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';
import { systemClock, systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { CertificateMaker } from '../../client-certificates.ts';
import { ScriptedProvider } from '../../login/upstream/scripted-provider.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { type Manifest, nextSecond } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { FaultProxy } from '../setup/fault-proxy.ts';
import { createTenant, type Tenant } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const PATIENCE = 30_000;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly observedGeneration: number;
}

describeRedis('identity providers in a cluster', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
  let tenant: Tenant;
  /** What a token server keeps of the cluster, with the rights of one. */
  let registry: RegistrySync;
  let api: ApiClient;
  let ways: { readonly server: FaultProxy; readonly controller: FaultProxy };

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    ways = { server: await FaultProxy.start(cluster.address), controller: await FaultProxy.start(cluster.address) };
    server = await install.start({ url: ways.server.url });
    controller = await startController(install, { replicas: [server], url: ways.controller.url });
    tenant = await createTenant(cluster, install.installation);
    await Promise.all([controller.ready(), server.ready()]);
    const kubeconfig = cluster.kubeconfig({ token: install.installation.serverToken });
    const access = kubeconfigAccess({ files: [kubeconfig], clock: systemClock });
    api = new ApiClient({ access, userAgent: 'grantry/test' });
    registry = new RegistrySync({
      api,
      issuer: ISSUER,
      className: install.installation.className,
      releaseNamespace: install.namespace,
      defaultPolicy: 'Baseline',
      supportedAuthMethods: [],
      watchNamespaces: [],
      clock: systemClock,
      random: systemRandom,
      log: { info: () => {}, warn: () => {}, error: (line: object) => expect.fail(JSON.stringify(line)) },
      metrics: { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {} },
    });
    registry.start({ onSwap: () => {}, onSecret: () => {}, onUsers: () => {} });
    await registry.whenServing();
  });

  afterAll(async () => {
    await registry?.stop();
    api?.close();
    await controller?.process.end('SIGKILL');
    await install?.stop();
    await Promise.all(Object.values(ways ?? {}).map((way) => way.stop()));
  });

  function provider(name: string, spec: object = {}, namespace = install.namespace): Manifest {
    const oidc = { issuer: `https://${name}.corp.example` };
    return {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'IdentityProvider',
      metadata: { name, namespace },
      spec: { type: 'OIDC', clientSecretRef: { name: `${name}-client` }, oidc, ...spec },
    };
  }

  function secret(name: string, clientSecret = 'of-the-provider', type = 'grantry.dev/identity-provider'): Manifest {
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `${name}-client`, namespace: install.namespace },
      type,
      stringData: { 'client-id': 'grantry', 'client-secret': clientSecret },
    };
  }

  const path = (name: string) => `/apis/grantry.dev/v1alpha1/namespaces/${install.namespace}/identityproviders/${name}`;
  const held = (name: string) => registry.current.providers.find((one) => one.name === name);

  /** `Type=Status/Reason` of the conditions of the present generation. */
  async function conditionsOf(name: string): Promise<readonly string[]> {
    const { body } = await cluster.call('GET', path(name));
    const conditions: readonly Condition[] = body.status?.conditions ?? [];
    return conditions
      .filter(({ observedGeneration }) => observedGeneration === body.metadata.generation)
      .map(({ type, status, reason }) => `${type}=${status}/${reason}`);
  }

  async function becomes(name: string, ...expected: readonly string[]): Promise<void> {
    const says = async () => {
      const conditions = await conditionsOf(name);
      return expected.every((condition) => conditions.includes(condition));
    };
    await until(`${name} has ${expected}`, says, PATIENCE).catch(() => {});
    expect(await conditionsOf(name)).toEqual(expect.arrayContaining([...expected]));
  }

  /** Waits until the registry of a server holds it; how long that took is an annotation of the test. */
  async function isHeld(context: TestContext, what: string, holds: () => boolean): Promise<void> {
    const began = performance.now();
    await until(what, holds, PATIENCE);
    await context.annotate(`${what}: ${Math.round(performance.now() - began)} ms`);
  }

  it('given one with its Secret → ready once a server reaches it, with its callback address; changes are held', async (context) => {
    const maker = new CertificateMaker();
    const authority = maker.authority();
    const certificate = maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] });
    const upstream = await ScriptedProvider.start(certificate);
    onTestFinished(() => upstream.stop());
    const trusted = secret('corp');
    const stringData = Object.assign({}, trusted.stringData, { 'ca.crt': authority.certificate });
    const spec = { displayName: 'Corp', oidc: { issuer: upstream.issuer } };
    await cluster.apply(Object.assign({}, trusted, { stringData }), provider('corp', spec));
    await isHeld(context, 'it is held', () => held('corp')?.credentials?.clientSecret === 'of-the-provider');
    await becomes(
      'corp',
      ...['Accepted=True/Accepted', 'ResolvedRefs=True/ResolvedRefs', 'Reachable=True/Reachable'],
      ...['Programmed=True/Programmed', 'Ready=True/Ready'],
    );
    const { body } = await cluster.call('GET', path('corp'));
    expect(body.status.callbackUrl).toBe(`${ISSUER}/login/callback/corp`);
    const { body: report } = await install.ask(server, '/registry/report', {}, await proofKey());
    expect(report.providers[body.metadata.uid]).toEqual({ generation: 1, reachable: true, reason: 'Reachable' });
    await cluster.apply(secret('corp', 'rotated'), provider('corp', { oidc: { issuer: 'https://localhost:1' } }));
    await becomes('corp', 'Reachable=False/DiscoveryFailed', 'Ready=False/DiscoveryFailed');
    await isHeld(context, 'the Secret is held', () => held('corp')?.credentials?.clientSecret === 'rotated');
    await cluster.call('PATCH', path('corp'), { body: { spec: { suspended: true } } });
    await isHeld(context, 'the kill switch is held', () => held('corp')?.isSuspended === true);
    await becomes('corp', 'Accepted=False/Suspended', 'Ready=False/Suspended');
    await cluster.call('DELETE', path('corp'));
    await isHeld(context, 'its deletion is held', () => held('corp') === undefined);
  });

  it('given that its Secret is missing, arrives and is deleted → it waits and stays, without credentials', async (context) => {
    await cluster.apply(provider('waiting'));
    await becomes('waiting', 'ResolvedRefs=False/SecretNotFound', 'Reconciling=True/SecretNotFound');
    expect(held('waiting')).toMatchObject({ issuer: 'https://waiting.corp.example', credentials: undefined });
    await cluster.apply(secret('waiting'));
    await isHeld(context, 'the Secret is held', () => held('waiting')?.credentials !== undefined);
    await becomes('waiting', 'ResolvedRefs=True/ResolvedRefs');
    await cluster.call('DELETE', `/api/v1/namespaces/${install.namespace}/secrets/waiting-client`);
    await isHeld(context, 'its loss is held', () => held('waiting')?.credentials === undefined);
    expect(held('waiting')?.isSuspended).toBe(false);
    await becomes('waiting', 'ResolvedRefs=False/SecretNotFound');
    await until(
      'an Event says so',
      async () => (await eventsOf('waiting')).includes('Warning SecretNotFound'),
      PATIENCE,
    );
  });

  it('given one that names the pepper, or any Secret of another type → refused, and no process reads it for that', async () => {
    await cluster.apply(
      secret('opaque', 'of-another', 'Opaque'),
      provider('opaque'),
      provider('thief', { clientSecretRef: { name: 'grantry-pepper' } }),
    );
    for (const name of ['opaque', 'thief']) {
      await becomes(name, 'ResolvedRefs=False/SecretTypeMismatch', 'Stalled=True/SecretTypeMismatch');
      await until('it is held', () => held(name) !== undefined);
      expect(held(name)).toMatchObject({ credentials: undefined });
    }
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${install.namespace}/secrets/grantry-pepper`);
    expect(body.data.pepper).toBeDefined();
    // By name nothing but the metadata of a Secret is asked for, and by no server at all.
    const named = (way: FaultProxy) =>
      way.requests.filter(({ path: asked, query }) => {
        const isOne = asked.endsWith('/secrets/opaque-client') || asked.endsWith('/secrets/grantry-pepper');
        return (asked.endsWith('/secrets') && query.get('fieldSelector')?.startsWith('metadata.name=')) || isOne;
      });
    expect(named(ways.server)).toEqual([]);
    const asked = named(ways.controller).filter(({ query }) => query.get('fieldSelector')?.includes('opaque-client'));
    expect(asked.length).toBeGreaterThan(0);
    for (const { accept } of asked) expect(accept).toContain('as=PartialObjectMetadataList');
  });

  it('given one in the namespace of a tenant → the tenant may not write it, and if it is there it counts for nothing', async () => {
    const planted = provider('planted', { oidc: { issuer: 'https://planted.example' } }, tenant.namespace);
    const collection = `/apis/grantry.dev/v1alpha1/namespaces/${tenant.namespace}/identityproviders`;
    expect((await cluster.call('POST', collection, { token: tenant.token, body: planted })).status).toBe(403);
    await cluster.apply(planted);
    // A later one of the same issuer has the issuer: what is elsewhere is older and takes nothing.
    const own = provider('own', { oidc: { issuer: 'https://planted.example' } });
    await cluster.apply(secret('own'), own);
    await becomes('own', 'Accepted=True/Accepted');
    expect(held('planted')).toBeUndefined();
    const { body } = await cluster.call('GET', `${collection}/planted`);
    expect(body.status.conditions.map(({ reason }: Condition) => reason)).toEqual(Array(5).fill('Pending'));
    const right = { token: install.installation.serverToken };
    expect((await cluster.call('GET', collection, right)).status).toBe(403);
  });

  it('given the oldest of an issuer → the younger one waits for it to be deleted', async () => {
    const oidc = { issuer: 'https://shared.corp.example' };
    await cluster.apply(secret('first'), provider('first', { oidc }));
    await becomes('first', 'Accepted=True/Accepted');
    // Ages are whole seconds: of two of the same second the uid decides.
    await nextSecond();
    await cluster.apply(secret('second'), provider('second', { oidc }));
    await becomes('second', 'Accepted=False/IssuerTaken', 'Stalled=True/IssuerTaken');
    expect(held('second')).toMatchObject({ credentials: undefined });
    await cluster.call('DELETE', path('first'));
    await becomes('second', 'Accepted=True/Accepted', 'Programmed=True/Programmed');
    await until('the younger is held', () => held('second')?.credentials !== undefined);
  });

  async function eventsOf(name: string): Promise<readonly string[]> {
    const { body } = await cluster.call('GET', `/apis/events.k8s.io/v1/namespaces/${install.namespace}/events`);
    const events: readonly { regarding: { kind: string; name: string }; reason: string; type: string }[] = body.items;
    const own = events.filter(({ regarding }) => regarding.kind === 'IdentityProvider' && regarding.name === name);
    return own.map(({ type, reason }) => `${type} ${reason}`);
  }

  async function proofKey(): Promise<string> {
    const secrets = `/api/v1/namespaces/${install.namespace}/secrets/grantry-controller-proof`;
    const { body } = await cluster.call('GET', secrets);
    return Buffer.from(body.data.key, 'base64').toString();
  }
});
