// A tenant who wants more than its own: a table of moves, each tried with the tenant's own credentials, and what stops it.
// After each move the victim still gets its tokens, the release namespace holds what it held, and the keys are the same.

import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { type ApiAnswer, type Manifest, nextSecond } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { createTenant, type Installation, type Tenant } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type AClient, ISSUER, type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const FORGED = 'a secret that a tenant would like to be accepted';
const MEBIBYTE = 1024 * 1024;
/** How many clients the policy of the flooding tenant lets its namespace have, and how many the tenant creates. */
const CLIENTS_PER_NAMESPACE = 20;
const FLOOD = 10 * CLIENTS_PER_NAMESPACE;

type Spec = Readonly<Record<string, unknown>>;

/** A client that signs people in, as every tenant may have. */
const PEOPLE = {
  grantTypes: ['authorization_code'],
  redirectUris: ['https://app.example.com/callback'],
  scopes: ['openid'],
};

/** One thing a tenant tries. */
interface Move {
  readonly move: string;
  /** Tries it, and says how that ended: an HTTP status, the reason of the condition Ready, or what was seen instead. */
  readonly attempt: () => Promise<number | string>;
  readonly refusal: number | string;
}

interface ListedObject {
  readonly metadata: { readonly name: string };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly reason: string }[] };
}

describeRedis('a hostile tenant', () => {
  const cluster = sharedCluster();
  let installation: Installation;
  let servers: TokenServers;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
  let tenant: Tenant;
  let victim: Tenant;
  let victimClient: AClient;
  /** The Secrets of the release namespace with their data, and the keys that are published, before any move. */
  let released: Readonly<Record<string, unknown>>;
  let keys: string;
  let count = 0;

  beforeAll(async () => {
    servers = await TokenServers.install(cluster, { complete: false });
    installation = servers.installation;
    server = await servers.start();
    controller = await startController(servers, { replicas: [server] });
    [tenant, victim] = await Promise.all([createTenant(cluster, installation), createTenant(cluster, installation)]);
    await Promise.all([controller.ready(), server.ready()]);
    victimClient = await createReady('app', victim);
    // The primes of an RSA key are found by luck: its ring is there later than the other.
    await until('both rings are published', async () => (await publishedKeys()).includes('"alg":"RS256"'), 60_000);
    keys = await publishedKeys();
    released = await releaseSecrets();
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await servers?.stop();
  });

  afterEach(async () => {
    expect((await server.token(victimClient)).status).toBe(200);
    expect((await server.token({ ...victimClient, secret: FORGED })).status).toBe(401);
    expect(await publishedKeys()).toBe(keys);
    expect(await releaseSecrets()).toMatchObject(released);
  });

  /** A client of a tenant that names no audiences. */
  async function createReady(name: string, by: Tenant): Promise<AClient> {
    const { namespace } = by;
    const scopes = [`${namespace}/read`];
    await post('oauthclients', client(name, { scopes, defaultScopes: scopes }, namespace), by);
    expect(await verdictOn(name, namespace)).toBe('Ready');
    const { body } = await cluster.call('GET', `${path('oauthclients', namespace)}/${name}`);
    const secret = await cluster.call('GET', `${path('secrets', namespace)}/${name}-oauth`);
    return {
      clientId: `${namespace}.${name}`,
      uid: body.metadata.uid,
      namespace,
      name,
      secret: Buffer.from(secret.body.data['client-secret'], 'base64').toString(),
    };
  }

  async function publishedKeys(): Promise<string> {
    return await (await fetch(`${server.url}/.well-known/jwks.json`)).text();
  }

  async function releaseSecrets(): Promise<Readonly<Record<string, unknown>>> {
    const { body } = await cluster.call('GET', path('secrets', installation.namespace));
    const secrets = body.items as { metadata: { name: string }; data: unknown }[];
    return Object.fromEntries(secrets.map(({ metadata, data }) => [metadata.name, data]));
  }

  function path(plural: string, namespace: string): string {
    const root = ['oauthclients', 'signingkeys'].includes(plural) ? '/apis/grantry.dev/v1alpha1' : '/api/v1';
    return `${root}/namespaces/${namespace}/${plural}`;
  }

  function client(name: string, spec: Spec = {}, namespace = tenant.namespace): Manifest {
    return {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: { name, namespace },
      spec: { className: installation.className, grantTypes: ['client_credentials'], ...spec },
    };
  }

  function secret(name: string, fields: Readonly<Record<string, unknown>> = {}, labels: Spec = {}): Manifest {
    const metadata = { name, namespace: tenant.namespace, labels };
    return { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { password: 'of another program' }, ...fields };
  }

  /** Creates an object with the tenant's own credentials. */
  async function post(plural: string, manifest: Manifest, by: Tenant = tenant): Promise<ApiAnswer> {
    const { namespace = by.namespace } = manifest.metadata;
    return await cluster.call('POST', path(plural, namespace), { token: by.token, body: manifest });
  }

  /** The reason of the condition Ready once the controller has made up its mind. */
  async function verdictOn(name: string, namespace = tenant.namespace, limit = 30_000): Promise<string> {
    let reason = '';
    await until(
      `${namespace}/${name} has a verdict`,
      async () => {
        const { body } = await cluster.call('GET', `${path('oauthclients', namespace)}/${name}`);
        const conditions: { type: string; status: string; reason: string; observedGeneration: number }[] =
          body.status?.conditions ?? [];
        const ready = conditions.find(({ type }) => type === 'Ready');
        // Where the replica takes its time, the condition is pending until it serves the client.
        if (ready === undefined || ready.status === 'Unknown' || ready.reason === 'Pending') return false;
        reason = ready.reason;
        return ready.observedGeneration === body.metadata.generation;
      },
      limit,
    );
    return reason;
  }

  /** The verdict on a client of the tenant that asks for this; the status where the API server does not take it. */
  async function verdictOnNew(spec: Spec, name = nextName()): Promise<number | string> {
    const { status } = await post('oauthclients', client(name, spec));
    return status === 201 ? await verdictOn(name) : status;
  }

  function nextName(): string {
    count += 1;
    return `app-${count}`;
  }

  /** The verdict on a client whose Secret the tenant has made first, and whether that Secret stayed as it was. */
  async function verdictOnSquatted(labels: Spec): Promise<string> {
    const name = nextName();
    expect((await post('secrets', secret(`${name}-oauth`, {}, labels))).status).toBe(201);
    const reason = await verdictOnNew({}, name);
    const { body } = await cluster.call('GET', `${path('secrets', tenant.namespace)}/${name}-oauth`);
    const isAsItWas = Object.keys(body.data).join() === 'password';
    return isAsItWas ? `${reason}, and the Secret is as it was` : `${reason}, and the Secret was written`;
  }

  /** Applies a policy to the namespace of a tenant. @returns its name */
  async function permit(rules: { allow: Spec } | { limits: Spec }, { namespace } = tenant): Promise<string> {
    const name = `${namespace}-${count}`;
    await cluster.apply({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name },
      spec: {
        className: installation.className,
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        ...rules,
      },
    });
    return name;
  }

  const moves: readonly Move[] = [
    {
      move: 'claims the client id of another',
      attempt: () => verdictOnNew({ clientId: victimClient.clientId }),
      refusal: 'ClientIdNotPermitted',
    },
    {
      move: 'claims an id that people have',
      attempt: () => verdictOnNew({ clientId: 'usr_somebody' }),
      refusal: 422,
    },
    {
      move: 'asks for a scope of another namespace',
      attempt: () => verdictOnNew({ scopes: [`${victim.namespace}/read`] }),
      refusal: 'PolicyViolation',
    },
    {
      move: 'asks for tokens for an API of another namespace',
      attempt: () => verdictOnNew({ audiences: [`urn:grantry:ns:${victim.namespace}:api`] }),
      refusal: 'PolicyViolation',
    },
    {
      move: 'says that it is the API of another namespace',
      attempt: () => verdictOnNew({ resourceServer: { audiences: [`urn:grantry:ns:${victim.namespace}:api`] } }),
      refusal: 'PolicyViolation',
    },
    {
      move: 'asks for a token that is good at every API',
      attempt: async () => {
        const { body } = await server.token(await createReady(nextName(), tenant));
        const { aud } = JSON.parse(atob(String(body.access_token).split('.')[1] ?? ''));
        return aud === `urn:grantry:ns:${tenant.namespace}:default` ? 'good at its own only' : `good at ${aud}`;
      },
      refusal: 'good at its own only',
    },
    {
      move: 'names the issuer as audience',
      attempt: () => verdictOnNew({ audiences: [ISSUER] }),
      refusal: 'InvalidAudience',
    },
    ...(
      [
        ['asks for the groups of people', { scopes: ['openid', 'groups'] }, 'PolicyViolation'],
        ['signs people in without their consent', { consent: 'Skip' }, 'PolicyViolation'],
        [
          'has the API server called when a person signs out',
          { backchannelLogoutUri: 'https://kubernetes.default.svc/api' },
          'PolicyViolation',
        ],
        [
          'has the metadata server called when a person signs out',
          { backchannelLogoutUri: 'https://169.254.169.254/latest' },
          'InvalidManifest',
        ],
      ] as const
    ).map(([move, spec, refusal]) => ({ move, attempt: () => verdictOnNew({ ...PEOPLE, ...spec }), refusal })),
    {
      move: 'points at the Secret of another namespace by a path',
      attempt: () => verdictOnNew({ auth: { clientSecret: { secretName: `../${victim.namespace}/app-oauth` } } }),
      refusal: 422,
    },
    {
      move: 'points at the Secret of another namespace by its name',
      attempt: () => verdictOnNew({ auth: { clientSecret: { source: 'Existing', secretName: 'app-oauth' } } }),
      refusal: 'SecretNotFound',
    },
    {
      move: 'has a Secret overwritten that is not of grantry',
      attempt: () => verdictOnSquatted({}),
      refusal: 'SecretNotOwned, and the Secret is as it was',
    },
    {
      move: 'has a Secret overwritten that bears the marks of the client of another',
      attempt: () => verdictOnSquatted({ 'grantry.dev/client': 'app', 'grantry.dev/client-uid': victimClient.uid }),
      refusal: 'SecretNotOwned, and the Secret is as it was',
    },
    {
      move: 'has a Secret overwritten that seems left behind by the client of another name',
      attempt: () => verdictOnSquatted({ 'grantry.dev/client': 'app', 'grantry.dev/client-uid': randomUUID() }),
      refusal: 'SecretNotOwned, and the Secret is as it was',
    },
    {
      move: 'writes the status of its own client',
      attempt: async () => {
        const { name } = (await post('oauthclients', client(nextName()))).body.metadata;
        const condition = { type: 'Ready', status: 'True', reason: 'Ready', message: '' };
        const body = { status: { clientId: victimClient.clientId, conditions: [condition] } };
        const { token } = tenant;
        return (
          await cluster.call('PATCH', `${path('oauthclients', tenant.namespace)}/${name}/status`, { token, body })
        ).status;
      },
      refusal: 403,
    },
    {
      move: 'slips a status in with the object',
      attempt: async () => {
        const name = nextName();
        const { body } = await post('oauthclients', { ...client(name), status: { clientId: victimClient.clientId } });
        return body.status?.clientId ?? 'not taken';
      },
      refusal: 'not taken',
    },
    {
      move: 'forges the verifier of the victim in its own namespace',
      attempt: async () => {
        const verifier = Buffer.from(secretVerifier(victimClient.uid, FORGED)).toString('base64url');
        const forged = {
          type: 'grantry.dev/client-verifier',
          stringData: { revision: '99', verifiers: JSON.stringify([{ verifier, revision: 99 }]) },
        };
        const labels = { 'grantry.dev/part': 'verifier' };
        expect((await post('secrets', secret(`grantry-client-${victimClient.uid}`, forged, labels))).status).toBe(201);
        return (await server.token({ ...victimClient, secret: FORGED })).status;
      },
      refusal: 401,
    },
    {
      move: 'forges a verifier in the release namespace',
      attempt: async () => {
        const forged = secret('grantry-client-forged', { type: 'grantry.dev/client-verifier' });
        const metadata = { ...forged.metadata, namespace: installation.namespace };
        return (await post('secrets', { ...forged, metadata })).status;
      },
      refusal: 403,
    },
    {
      move: 'plants a Secret in the release namespace by its name',
      attempt: () =>
        verdictOnNew({ auth: { clientSecret: { secretName: `${installation.namespace}/grantry-pepper` } } }),
      refusal: 422,
    },
    {
      move: 'has its own Secret called like one of the release namespace',
      attempt: async () => {
        const before = await releaseSecrets();
        const verdict = await verdictOnNew({ auth: { clientSecret: { secretName: 'grantry-pepper' } } });
        const after = (await releaseSecrets())['grantry-pepper'];
        expect(after).toEqual(before['grantry-pepper']);
        return `${verdict}, in its own namespace`;
      },
      refusal: 'Ready, in its own namespace',
    },
    {
      move: 'climbs out of a Secret by the key of a literal',
      attempt: () => verdictOnNew({ auth: { clientSecret: { extraData: { '../../grantry-pepper': 'x' } } } }),
      refusal: 'InvalidSecretTemplate',
    },
    {
      move: 'has a literal filled with what is not its own',
      attempt: () => verdictOnNew({ auth: { clientSecret: { extraData: { stolen: `\${PEPPER}` } } } }),
      refusal: 'InvalidSecretTemplate',
    },
    ...[
      'grantry.dev/part',
      'argocd.argoproj.io/secret-type',
      'helm.sh/chart',
      'kubernetes.io/service-account.name',
    ].map((label) => ({
      move: `has a Secret made that another operator acts on, by the label ${label}`,
      attempt: () => verdictOnNew({ auth: { clientSecret: { secretTemplate: { labels: { [label]: 'cluster' } } } } }),
      refusal: 'InvalidSecretTemplate',
    })),
    ...['replicator.v1.mittwald.de/replicate-to', 'reflector.v1.k8s.emberstack.com/reflection-allowed'].map((key) => ({
      move: `has a Secret made that another operator copies into other namespaces, by the annotation ${key}`,
      attempt: () => verdictOnNew({ auth: { clientSecret: { secretTemplate: { annotations: { [key]: '.*' } } } } }),
      refusal: 'PolicyViolation',
    })),
    {
      move: 'has a Secret made that Helm takes for its own, by an annotation',
      attempt: () => {
        const annotations = { 'meta.helm.sh/release-name': 'grantry' };
        return verdictOnNew({ auth: { clientSecret: { secretTemplate: { annotations } } } });
      },
      refusal: 'InvalidSecretTemplate',
    },
    {
      move: 'creates a client in the release namespace',
      attempt: async () => (await post('oauthclients', client('planted', {}, installation.namespace))).status,
      refusal: 403,
    },
    {
      move: 'makes a signing key of its own',
      attempt: async () => {
        const spec = { algorithm: 'ES256' };
        const metadata = { name: 'own', namespace: tenant.namespace };
        const key = { apiVersion: 'grantry.dev/v1alpha1', kind: 'SigningKey', metadata, spec };
        // Even if the tenant was granted the right: what it makes counts for nothing (see the keys after each move).
        await cluster.apply(key);
        return (await post('signingkeys', { ...key, metadata: { ...metadata, name: 'another' } })).status;
      },
      refusal: 403,
    },
    {
      move: 'imitates the Secret of a signing key',
      attempt: async () => {
        const { body } = await cluster.call('GET', path('secrets', installation.namespace));
        const genuine = body.items.find(({ type }: { type: string }) => type === 'grantry.dev/signing-key');
        const { labels, annotations } = genuine.metadata;
        const metadata = { name: genuine.metadata.name, namespace: tenant.namespace, labels, annotations };
        const { status } = await post('secrets', { ...secret('copy'), type: genuine.type, metadata });
        return status === 201 ? 'a Secret like any other' : status;
      },
      refusal: 'a Secret like any other',
    },
    {
      move: 'claims an id with a dot under a policy that permits every id by a glob',
      attempt: async () => {
        await permit({ allow: { clientIds: ['**'] } });
        return await verdictOnNew({ clientId: `${victim.namespace}.ap` });
      },
      refusal: 'ClientIdNotPermitted',
    },
    {
      move: 'asks for more groups of people than its policy gives',
      attempt: async () => {
        const name = nextName();
        await permit({ allow: { scopes: ['openid', 'groups'], groups: ['team-*'] } });
        const spec = { ...PEOPLE, scopes: ['openid', 'groups'] };
        await post('oauthclients', client(name, { ...spec, groups: ['team-a', 'team-b*'] }));
        await until('the policy counts', async () => (await verdictOn(name)) === 'Ready');
        return await verdictOnNew({ ...spec, groups: ['team*'] });
      },
      refusal: 'PolicyViolation',
    },
    {
      move: 'makes a client whose own id a policy lists for a client of another namespace',
      attempt: async () => {
        const name = nextName();
        const clientId = `${tenant.namespace}.${name}`;
        await permit({ allow: { clientIds: [clientId] } }, victim);
        await post('oauthclients', client(name, { clientId }, victim.namespace), victim);
        await until('the policy counts', async () => (await verdictOn(name, victim.namespace)) === 'Ready');
        return await verdictOnNew({}, name);
      },
      refusal: 'ClientIdConflict',
    },
    {
      move: 'makes a policy for itself',
      attempt: async () => {
        const body = {
          apiVersion: 'grantry.dev/v1alpha1',
          kind: 'ClientPolicy',
          metadata: { name: nextName() },
          spec: { namespaceSelector: {}, allow: { scopes: ['**'] } },
        };
        const { token } = tenant;
        return (await cluster.call('POST', '/apis/grantry.dev/v1alpha1/clientpolicies', { token, body })).status;
      },
      refusal: 403,
    },
    {
      move: 'labels its namespace so that the policy of others matches',
      attempt: async () => {
        const body = { metadata: { labels: { tier: 'gold' } } };
        return (await cluster.call('PATCH', `/api/v1/namespaces/${tenant.namespace}`, { token: tenant.token, body }))
          .status;
      },
      refusal: 403,
    },
    {
      move: 'takes the token of the controller',
      attempt: async () => {
        const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
        const account = `${path('serviceaccounts', installation.namespace)}/grantry-controller/token`;
        return (await cluster.call('POST', account, { token: tenant.token, body })).status;
      },
      refusal: 403,
    },
    {
      move: 'applies a client of a mebibyte',
      attempt: async () => (await post('oauthclients', client('big', { displayName: 'x'.repeat(MEBIBYTE) }))).status,
      refusal: 422,
    },
    {
      move: 'applies a client with an annotation of a mebibyte',
      attempt: async () => {
        const big = client('big');
        const metadata = { ...big.metadata, annotations: { note: 'x'.repeat(MEBIBYTE) } };
        return (await post('oauthclients', { ...big, metadata })).status;
      },
      refusal: 422,
    },
    {
      move: 'has a Secret of a mebibyte read',
      attempt: async () => {
        const stringData = { 'client-secret': 'x'.repeat(MEBIBYTE - 100) };
        expect((await post('secrets', secret('big', { stringData }))).status).toBe(201);
        return await verdictOnNew({ auth: { clientSecret: { source: 'Existing', secretName: 'big' } } });
      },
      refusal: 'Ready',
    },
  ];

  it.each(moves)('who $move is answered $refusal', async ({ attempt, refusal }) => {
    expect(await attempt()).toBe(refusal);
  });

  it('who creates ten times as many clients at once as a namespace may have gets that many', {
    timeout: 120_000,
  }, async () => {
    const flood = await createTenant(cluster, installation);
    const policy = await permit({ limits: { maxClientsPerNamespace: CLIENTS_PER_NAMESPACE } }, flood);
    const names = Array.from({ length: FLOOD }, (_, index) => `flood-${index}`);
    const create = async (left: string[]) => {
      const createNext = async () => {
        for (let name = left.pop(); name !== undefined; name = left.pop()) {
          expect((await post('oauthclients', client(name, {}, flood.namespace), flood)).status).toBe(201);
        }
      };
      await Promise.all(Array.from({ length: 16 }, createNext));
    };
    // Of one second who is first is decided by the uid, and who was first for a moment keeps its Secret.
    const permitted = names.slice(0, CLIENTS_PER_NAMESPACE);
    await create([...permitted]);
    await nextSecond();
    await until('the policy counts', async () => {
      const { body } = await cluster.call('GET', path('oauthclients', flood.namespace));
      return body.items.every(({ status }: { status?: { policy?: string } }) => status?.policy === policy);
    });
    await create(names.slice(CLIENTS_PER_NAMESPACE));
    const neighbours = Array.from({ length: 8 }, (_, index) => `meanwhile-${index}`);
    for (const name of neighbours) await post('oauthclients', client(name, {}, victim.namespace), victim);
    for (const name of neighbours) expect(await verdictOn(name, victim.namespace, 60_000)).toBe('Ready');
    await until('each is reported to its neighbour', async () => {
      const { body } = await cluster.call('GET', `/apis/events.k8s.io/v1/namespaces/${victim.namespace}/events`);
      const events: { reason: string; regarding: { name: string } }[] = body.items;
      const told = events.filter(({ reason }) => reason === 'SecretCreated').map(({ regarding }) => regarding.name);
      return neighbours.every((name) => told.includes(name));
    });
    let reasons: string[] = [];
    let served: string[] = [];
    await until(
      'a namespace has what it may have',
      async () => {
        expect((await server.token(victimClient)).status).toBe(200);
        const { body } = await cluster.call('GET', path('oauthclients', flood.namespace));
        const items = body.items as ListedObject[];
        const reasonOf = ({ status }: ListedObject) =>
          status?.conditions?.find(({ type }) => type === 'Ready')?.reason ?? [];
        reasons = items.flatMap(reasonOf);
        served = items.filter((item) => reasonOf(item) === 'Ready').map(({ metadata }) => metadata.name);
        return served.length >= CLIENTS_PER_NAMESPACE;
      },
      60_000,
    );
    expect(served.sort()).toEqual(permitted.sort());
    expect(['Ready', 'Pending', 'ClientLimitExceeded']).toEqual(expect.arrayContaining([...new Set(reasons)]));
    const { body } = await cluster.call('GET', path('secrets', flood.namespace));
    expect(body.items).toHaveLength(CLIENTS_PER_NAMESPACE);
  });
});
