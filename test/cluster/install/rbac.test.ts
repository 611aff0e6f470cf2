// What each ServiceAccount and a tenant may do, asked of a real API server: the whole list of it, and real requests.

import { beforeAll, describe, expect, it } from 'vitest';
import { createTenant, type Installation, install, type Tenant } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const READ = 'get list watch';

describe('the rights that grantry is installed with', () => {
  const cluster = sharedCluster();
  let installation: Installation;
  let tenant: Tenant;
  /** What a ServiceAccount without any right may do: ask who it is and what it may. */
  let bareToken: string;

  beforeAll(async () => {
    installation = await install(cluster);
    tenant = await createTenant(cluster, installation);
    bareToken = await cluster.token({ namespace: await cluster.namespace(), name: 'nobody' });
  });

  /** Everything a token may do in a namespace beyond what every token may, as `<resource>.<group>: <verbs>`. */
  async function rightsOf(token: string, namespace: string): Promise<Record<string, string>> {
    const common = await verbsByResource(bareToken, namespace);
    const rights = await verbsByResource(token, namespace);
    return Object.fromEntries(
      [...rights]
        .map(([resource, verbs]) => [resource, [...verbs].filter((verb) => !common.get(resource)?.has(verb)).join(' ')])
        .filter(([, verbs]) => verbs !== ''),
    );
  }

  async function verbsByResource(token: string, namespace: string): Promise<Map<string, Set<string>>> {
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } };
    const answer = await cluster.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { token, body });
    expect([answer.status, answer.body.status.incomplete]).toEqual([201, false]);
    const rules = answer.body.status.resourceRules as { verbs: string[]; apiGroups: string[]; resources: string[] }[];
    const verbs = new Map<string, Set<string>>();
    for (const rule of rules) {
      for (const resource of rule.resources.flatMap((name) => rule.apiGroups.map((group) => `${name}.${group}`))) {
        verbs.set(resource, new Set([...(verbs.get(resource) ?? []), ...rule.verbs].sort()));
      }
    }
    return verbs;
  }

  function may(text: string): string {
    return text.split(' ').sort().join(' ');
  }

  async function statusOf(token: string, method: string, path: string, body?: object): Promise<number> {
    const contentType = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json';
    const query = method === 'PATCH' ? '?fieldManager=grantry-controller&force=true' : '';
    return (await cluster.call(method, `${path}${query}`, { token, contentType, ...(body && { body }) })).status;
  }

  const clients = (namespace: string) => `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`;
  const secrets = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets`;
  const keys = (namespace: string) => `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/signingkeys`;
  const client = (name: string) => ({
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'OAuthClient',
    metadata: { name },
    spec: { grantTypes: ['client_credentials'] },
  });
  const secret = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: { a: 'b' } });
  const signingKey = (name: string) => ({
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'SigningKey',
    metadata: { name },
    spec: { algorithm: 'ES256' },
  });
  const status = (kind: string, name: string) => ({
    apiVersion: 'grantry.dev/v1alpha1',
    kind,
    metadata: { name },
    status: { observedGeneration: 1 },
  });

  describe('the token server', () => {
    it('may read clients, resources, policies and namespaces everywhere, and nothing else in a namespace of others', async () => {
      expect(await rightsOf(installation.serverToken, tenant.namespace)).toEqual({
        'oauthclients.grantry.dev': may(READ),
        'protectedresources.grantry.dev': may(READ),
        'clientpolicies.grantry.dev': may(READ),
        'namespaces.': may(READ),
      });
    });

    it('may read Secrets, signing keys and identity providers in its own namespace, and write nothing there either', async () => {
      expect(await rightsOf(installation.serverToken, installation.namespace)).toEqual({
        'oauthclients.grantry.dev': may(READ),
        'protectedresources.grantry.dev': may(READ),
        'clientpolicies.grantry.dev': may(READ),
        'namespaces.': may(READ),
        'secrets.': may(READ),
        'signingkeys.grantry.dev': may(READ),
        'identityproviders.grantry.dev': may(READ),
      });
    });

    it('is served what it reads, and refused what it must not', async () => {
      const { serverToken: token, namespace } = installation;
      const answers = await Promise.all([
        statusOf(token, 'GET', '/apis/grantry.dev/v1alpha1/oauthclients'),
        statusOf(token, 'GET', '/apis/grantry.dev/v1alpha1/clientpolicies'),
        statusOf(token, 'GET', '/api/v1/namespaces'),
        statusOf(token, 'GET', `${secrets(namespace)}?labelSelector=grantry.dev/part`),
        statusOf(token, 'GET', keys(namespace)),
        statusOf(token, 'GET', '/api/v1/secrets'),
        statusOf(token, 'GET', secrets(tenant.namespace)),
        statusOf(token, 'GET', '/apis/grantry.dev/v1alpha1/signingkeys'),
        statusOf(token, 'POST', secrets(namespace), secret('planted')),
        statusOf(token, 'POST', clients(tenant.namespace), client('planted')),
        statusOf(token, 'PATCH', `${clients(tenant.namespace)}/planted/status`, status('OAuthClient', 'planted')),
      ]);
      expect(answers).toEqual([200, 200, 200, 200, 200, 403, 403, 403, 403, 403, 403]);
    });
  });

  describe('the controller', () => {
    const everywhere = {
      'oauthclients.grantry.dev': may(READ),
      'oauthclients/status.grantry.dev': 'patch',
      'protectedresources.grantry.dev': may(READ),
      'protectedresources/status.grantry.dev': 'patch',
      'oauthclients/finalizers.grantry.dev': 'update',
      'clientpolicies.grantry.dev': may(READ),
      'clientpolicies/status.grantry.dev': 'patch',
      'namespaces.': may(READ),
      'secrets.': may(`${READ} create patch delete`),
      'configmaps.': may(READ),
      'serviceaccounts.': may('list watch'),
      'events.events.k8s.io': may('create patch'),
    };

    it('may report on clients and resources, write Secrets, and see key sets and accounts everywhere', async () => {
      expect(await rightsOf(installation.controllerToken, tenant.namespace)).toEqual(everywhere);
    });

    it('may care for signing keys, identity providers, replicas and its lease in its own namespace', async () => {
      expect(await rightsOf(installation.controllerToken, installation.namespace)).toEqual({
        ...everywhere,
        'signingkeys.grantry.dev': may(`${READ} create`),
        'signingkeys/status.grantry.dev': 'patch',
        'identityproviders.grantry.dev': may(READ),
        'identityproviders/status.grantry.dev': 'patch',
        'endpointslices.discovery.k8s.io': may(READ),
        'leases.coordination.k8s.io': may('get create update'),
      });
    });

    it('is allowed its work, and refused what is the business of others', async () => {
      const { controllerToken: token, namespace } = installation;
      await cluster.apply({
        ...client('mine'),
        metadata: { namespace: tenant.namespace, name: 'mine' },
      });
      const mine = `${clients(tenant.namespace)}/mine`;
      expect(await statusOf(token, 'PATCH', `${mine}/status`, status('OAuthClient', 'mine'))).toBe(200);
      expect(await statusOf(token, 'POST', secrets(tenant.namespace), secret('mine-oauth'))).toBe(201);
      expect(await statusOf(token, 'PATCH', `${secrets(tenant.namespace)}/mine-oauth`, secret('mine-oauth'))).toBe(200);
      expect(await statusOf(token, 'DELETE', `${secrets(tenant.namespace)}/mine-oauth`)).toBe(200);
      expect(await statusOf(token, 'POST', keys(namespace), signingKey('default'))).toBe(201);

      expect(await statusOf(token, 'PATCH', mine, client('mine'))).toBe(403);
      expect(await statusOf(token, 'DELETE', mine)).toBe(403);
      expect(await statusOf(token, 'POST', keys(tenant.namespace), signingKey('default'))).toBe(403);
      expect(await statusOf(token, 'DELETE', `${keys(namespace)}/default`)).toBe(403);
      expect(await statusOf(token, 'PUT', `${secrets(tenant.namespace)}/mine-oauth`, secret('mine-oauth'))).toBe(403);
      expect(
        await statusOf(token, 'POST', `/api/v1/namespaces/${namespace}/serviceaccounts/grantry-server/token`),
      ).toBe(403);
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${tenant.namespace}/leases`;
      expect(await statusOf(token, 'GET', `${leases}/grantry-controller`)).toBe(403);
    });
  });

  describe('a tenant', () => {
    it('may do everything with clients and resources in their own namespace, but not state what became of them', async () => {
      const rights = await rightsOf(tenant.token, tenant.namespace);
      const ours = Object.entries(rights).filter(([resource]) => resource.endsWith('.grantry.dev'));
      const verbs = may(`${READ} create update patch delete deletecollection`);
      expect(Object.fromEntries(ours)).toEqual({
        'oauthclients.grantry.dev': verbs,
        'protectedresources.grantry.dev': verbs,
      });
    });

    it('is allowed to create and to delete a client', async () => {
      const own = clients(tenant.namespace);
      expect(await statusOf(tenant.token, 'POST', own, client('theirs'))).toBe(201);
      expect(await statusOf(tenant.token, 'GET', `${own}/theirs`)).toBe(200);
      expect(await statusOf(tenant.token, 'DELETE', `${own}/theirs`)).toBe(200);
    });

    it('is refused everything that is ours: status, keys, policies, and the release namespace', async () => {
      const { namespace } = installation;
      const policies = '/apis/grantry.dev/v1alpha1/clientpolicies';
      const answers = await Promise.all([
        statusOf(tenant.token, 'PATCH', `${clients(tenant.namespace)}/any/status`, status('OAuthClient', 'any')),
        statusOf(
          tenant.token,
          'PATCH',
          `${clients(tenant.namespace).replace('oauthclients', 'protectedresources')}/any/status`,
          status('ProtectedResource', 'any'),
        ),
        statusOf(tenant.token, 'POST', keys(tenant.namespace), signingKey('own')),
        statusOf(tenant.token, 'GET', policies),
        statusOf(tenant.token, 'GET', clients(namespace)),
        statusOf(tenant.token, 'GET', secrets(namespace)),
        statusOf(tenant.token, 'POST', secrets(namespace), secret('planted')),
        statusOf(tenant.token, 'GET', '/apis/grantry.dev/v1alpha1/oauthclients'),
      ]);
      expect(answers).toEqual([403, 403, 403, 403, 403, 403, 403, 403]);
    });
  });
});
