// A tenant who wants what the resources of others are: a table of moves, each tried with the tenant's own credentials, and
// what stops it. After each move the resource of the victim and the grant of its neighbour are as they were.

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import type { ApiAnswer, Manifest } from '../setup/cluster.ts';
import { nextSecond } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { createTenant, type Installation, type Tenant } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type Credentials, introspect } from '../setup/signed-in.ts';
import { ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const RESOURCES_PER_NAMESPACE = 10;
const FLOOD = 10 * RESOURCES_PER_NAMESPACE;
const API = '/apis/grantry.dev/v1alpha1';

type Spec = Readonly<Record<string, unknown>>;
type Plural = 'oauthclients' | 'protectedresources';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly observedGeneration: number;
}

/** One thing a tenant tries, and the status or the reason that it ends with. */
interface Move {
  readonly move: string;
  readonly attempt: () => Promise<number | string>;
  readonly refusal: number | string;
}

describeRedis('a hostile tenant and resources', () => {
  const cluster = sharedCluster();
  let installation: Installation;
  let servers: TokenServers;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
  let tenant: Tenant;
  let victim: Tenant;
  /** The namespace that the victim lets in. */
  let neighbour: Tenant;
  let count = 0;

  beforeAll(async () => {
    servers = await TokenServers.install(cluster, { complete: false });
    installation = servers.installation;
    server = await servers.start();
    controller = await startController(servers, { replicas: [server] });
    [tenant, victim, neighbour] = await Promise.all([
      createTenant(cluster, installation),
      createTenant(cluster, installation),
      createTenant(cluster, installation),
    ]);
    await Promise.all([controller.ready(), server.ready()]);
    const notes = {
      resource: `https://${victim.namespace}.example.com/api`,
      scopes: [{ name: `${victim.namespace}/read` }],
      allowedClients: [
        { namespaces: [neighbour.namespace], clients: ['app'] },
        { namespaceSelector: { matchLabels: { tier: 'gold' } } },
      ],
    };
    await permit({ resources: ['https://*.example.com/**'] }, tenant);
    await permit({ resources: [notes.resource] }, victim);
    // The tenant was first, and the administrator listed the identifier for the victim.
    expect(await verdictOnNew('protectedresources', { resource: notes.resource })).toBe('Ready');
    await nextSecond();
    await post('protectedresources', manifest('protectedresources', 'notes', notes, victim), victim);
    await post('oauthclients', manifest('oauthclients', 'app', referring(), neighbour), neighbour);
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await servers?.stop();
  });

  afterEach(async () => {
    expect(await reasonOf('protectedresources', 'notes', 'Ready', victim)).toBe('Ready');
    expect(await reasonOf('oauthclients', 'app', 'ResourcesGranted', neighbour)).toBe('ResourcesGranted');
  });

  function path(plural: Plural, { namespace }: Tenant): string {
    return `${API}/namespaces/${namespace}/${plural}`;
  }

  function manifest(plural: Plural, name: string, spec: Spec, { namespace }: Tenant): Manifest {
    const kind = plural === 'oauthclients' ? 'OAuthClient' : 'ProtectedResource';
    const grants = plural === 'oauthclients' ? { grantTypes: ['client_credentials'] } : {};
    return {
      apiVersion: 'grantry.dev/v1alpha1',
      kind,
      metadata: { name, namespace },
      spec: { className: installation.className, ...grants, ...spec },
    };
  }

  function referring(name = 'notes'): Spec {
    return { resources: [{ namespace: victim.namespace, name }] };
  }

  async function post(plural: Plural, body: Manifest, by: Tenant): Promise<ApiAnswer> {
    return await cluster.call('POST', path(plural, by), { token: by.token, body });
  }

  /** The reason of a condition once the controller has a verdict on the present generation and every replica serves it. */
  async function reasonOf(plural: Plural, name: string, type: string, of: Tenant = tenant): Promise<string> {
    let reason = '';
    await until(
      `${of.namespace}/${name} has ${type}`,
      async () => {
        const { body } = await cluster.call('GET', `${path(plural, of)}/${name}`);
        const conditions: readonly Condition[] = body.status?.conditions ?? [];
        const found = conditions.find((condition) => condition.type === type);
        if (found === undefined || found.reason === 'Pending') return false;
        reason = found.reason;
        return found.observedGeneration === body.metadata.generation;
      },
      30_000,
    );
    return reason;
  }

  async function verdictOnNew(plural: Plural, spec: Spec, type = 'Ready'): Promise<number | string> {
    const name = `mine-${++count}`;
    const { status } = await post(plural, manifest(plural, name, spec, tenant), tenant);
    return status === 201 ? await reasonOf(plural, name, type) : status;
  }

  async function permit(allow: Spec, { namespace }: Tenant): Promise<void> {
    await cluster.apply({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name: `${namespace}-resources` },
      spec: {
        className: installation.className,
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        allow,
        limits: { maxResourcesPerNamespace: RESOURCES_PER_NAMESPACE },
      },
    });
  }

  function answeringFor(audience: string): Spec {
    return { grantTypes: [], resourceServer: { audiences: [audience] } };
  }

  /** The generated credentials of a client, once it is Ready. */
  async function credentials(name: string, of: Tenant): Promise<Credentials> {
    expect(await reasonOf('oauthclients', name, 'Ready', of)).toBe('Ready');
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${of.namespace}/secrets/${name}-oauth`);
    const [clientId = '', secret = ''] = ['client-id', 'client-secret'].map((key) => atob(body.data[key]));
    return { clientId, secret };
  }

  const notes = () => `https://${victim.namespace}.example.com/api`;
  const moves: readonly Move[] = [
    {
      move: 'claims the identifier of another, which is older',
      attempt: async () => {
        const reason = () => reasonOf('protectedresources', 'mine-1', 'Ready');
        await until('it has lost it', async () => (await reason()) === 'ResourceConflict').catch(() => {});
        return await reason();
      },
      refusal: 'ResourceConflict',
    },
    {
      move: 'claims the identifier of another with a slash at the end',
      attempt: () => verdictOnNew('protectedresources', { resource: `${notes()}/` }),
      refusal: 'ResourceConflict',
    },
    {
      move: 'claims an identifier that looks like that of another',
      attempt: () => verdictOnNew('protectedresources', { resource: notes().replace('https', 'HTTPS') }),
      refusal: 'InvalidResource',
    },
    {
      move: 'claims the issuer',
      attempt: () => verdictOnNew('protectedresources', { resource: ISSUER }),
      refusal: 'InvalidResource',
    },
    {
      move: 'claims what is derived for another namespace',
      attempt: () => verdictOnNew('protectedresources', { resource: `urn:grantry:ns:${victim.namespace}:default` }),
      refusal: 'InvalidResource',
    },
    {
      move: 'claims an identifier that no policy permits',
      attempt: () => verdictOnNew('protectedresources', { resource: 'https://bank.example/api' }),
      refusal: 'PolicyViolation',
    },
    {
      move: 'declares a scope of another',
      attempt: () =>
        verdictOnNew('protectedresources', {
          resource: `https://${tenant.namespace}.example.com/api`,
          scopes: [{ name: `${victim.namespace}/read` }],
        }),
      refusal: 'PolicyViolation',
    },
    {
      move: 'refers to a resource without a grant',
      attempt: () => verdictOnNew('oauthclients', referring(), 'ResourcesGranted'),
      refusal: 'ResourceNotGranted',
    },
    {
      move: 'refers to a resource that is missing',
      attempt: () => verdictOnNew('oauthclients', referring('gone'), 'ResourcesGranted'),
      refusal: 'ResourceNotGranted',
    },
    {
      move: 'refers to resources without a grant, and wants nothing else to stop',
      attempt: () => verdictOnNew('oauthclients', referring()),
      refusal: 'Ready',
    },
    {
      move: 'is the API of an audience of another, and no policy permits it',
      attempt: () => verdictOnNew('oauthclients', answeringFor(notes())),
      refusal: 'PolicyViolation',
    },
    {
      move: 'grants the resource to itself by a label of its namespace',
      attempt: async () => {
        const body = { metadata: { labels: { tier: 'gold' } } };
        return (await cluster.call('PATCH', `/api/v1/namespaces/${tenant.namespace}`, { token: tenant.token, body }))
          .status;
      },
      refusal: 403,
    },
    {
      move: 'grants the resource to itself in the manifest of another',
      attempt: async () => {
        const body = { spec: { allowedClients: [{ namespaces: ['*'] }] } };
        return (
          await cluster.call('PATCH', `${path('protectedresources', victim)}/notes`, { token: tenant.token, body })
        ).status;
      },
      refusal: 403,
    },
    {
      move: 'writes the status of its own resource',
      attempt: async () => {
        const body = { status: { resource: notes() } };
        const own = `${path('protectedresources', tenant)}/mine-1/status`;
        return (await cluster.call('PATCH', own, { token: tenant.token, body })).status;
      },
      refusal: 403,
    },
    {
      move: 'applies a resource of a mebibyte',
      attempt: async () => {
        const scopes = [{ name: 'x'.repeat(2 ** 20) }];
        return (await post('protectedresources', manifest('protectedresources', 'big', { scopes }, tenant), tenant))
          .status;
      },
      refusal: 422,
    },
  ];

  it.each(moves)('who $move is answered $refusal', async ({ attempt, refusal }) => {
    expect(await attempt()).toBe(refusal);
  });

  it('who withdraws a grant stops that resource alone: the client of the neighbour stays Ready', async () => {
    const [own, api] = [tenant.namespace, `own-${++count}`];
    const allowed = (namespaces: readonly string[]) => ({
      resource: `https://${own}.example.com/own`,
      allowedClients: [{ namespaces }],
    });
    await post(
      'protectedresources',
      manifest('protectedresources', api, allowed([neighbour.namespace]), tenant),
      tenant,
    );
    const spec = { resources: [{ namespace: own, name: api }] };
    await post('oauthclients', manifest('oauthclients', 'both', spec, neighbour), neighbour);
    await until('it is granted', async () => {
      return (await reasonOf('oauthclients', 'both', 'ResourcesGranted', neighbour)) === 'ResourcesGranted';
    });
    await cluster.apply(manifest('protectedresources', api, allowed([victim.namespace]), tenant));
    await until('it is withdrawn', async () => {
      return (await reasonOf('oauthclients', 'both', 'ResourcesGranted', neighbour)) === 'ResourceNotGranted';
    });
    expect(await reasonOf('oauthclients', 'both', 'Ready', neighbour)).toBe('Ready');
  });

  it('who is the API of an audience of another, by a policy that permits any, finds its tokens inactive', async () => {
    const wide = await createTenant(cluster, installation);
    await permit({ audiences: ['https://**'] }, wide);
    await post('oauthclients', manifest('oauthclients', 'api', answeringFor(notes()), wide), wide);
    await post('oauthclients', manifest('oauthclients', 'api', answeringFor(notes()), victim), victim);
    const [foreign, own] = [await credentials('api', wide), await credentials('api', victim)];
    const app = await credentials('app', neighbour);
    const access = { resource: notes(), scope: `${victim.namespace}/read` };
    const { access_token: token = '' } = (await server.token(app, access)).body;
    expect(await introspect(server, own, token)).toMatchObject({ status: 200, body: { active: true, aud: notes() } });
    expect(await introspect(server, foreign, token)).toEqual({ status: 200, body: { active: false } });
  });

  it('who creates ten times as many resources as a namespace may have gets that many', {
    timeout: 60_000,
  }, async () => {
    const flood = await createTenant(cluster, installation);
    await permit({ resources: [`urn:grantry:ns:${flood.namespace}:*`] }, flood);
    const names = Array.from({ length: FLOOD }, (_, index) => `flood-${index}`);
    const bodies = names.map((name) => manifest('protectedresources', name, {}, flood));
    const answers = await Promise.all(bodies.map((body) => post('protectedresources', body, flood)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    const counts = async () => {
      const { body } = await cluster.call('GET', path('protectedresources', flood));
      const items = body.items as { readonly status?: { readonly conditions?: readonly Condition[] } }[];
      const reasons = items.map(({ status }) => status?.conditions?.find(({ type }) => type === 'Ready')?.reason);
      return ['Ready', 'ResourceLimitExceeded'].map((reason) => reasons.filter((each) => each === reason).length);
    };
    const expected = [RESOURCES_PER_NAMESPACE, FLOOD - RESOURCES_PER_NAMESPACE];
    await until('each has its verdict', async () => (await counts()).join() === expected.join(), 30_000).catch(
      () => {},
    );
    expect(await counts()).toEqual(expected);
  });
});
