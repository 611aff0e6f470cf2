// Where the API server keeps each kind. That the paths are right is proven by the suite against a real one.

import { describe, expect, it } from 'vitest';
import { type KubernetesApi, KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import {
  apiVersionOf,
  CLIENT_POLICIES,
  CONFIG_MAPS,
  ENDPOINT_SLICES,
  EVENTS,
  IDENTITY_PROVIDERS,
  LEASES,
  NAMESPACES,
  OAUTH_CLIENTS,
  objectKey,
  PROTECTED_RESOURCES,
  resourceName,
  resourcePath,
  SECRETS,
  SERVICE_ACCOUNTS,
  SIGNING_KEYS,
} from '../../../src/kubernetes/objects/resources.ts';

describe('a resource', () => {
  it.each([
    [OAUTH_CLIENTS, '/apis/grantry.dev/v1alpha1/oauthclients', 'oauthclients.grantry.dev'],
    [IDENTITY_PROVIDERS, '/apis/grantry.dev/v1alpha1/identityproviders', 'identityproviders.grantry.dev'],
    [PROTECTED_RESOURCES, '/apis/grantry.dev/v1alpha1/protectedresources', 'protectedresources.grantry.dev'],
    [CLIENT_POLICIES, '/apis/grantry.dev/v1alpha1/clientpolicies', 'clientpolicies.grantry.dev'],
    [SIGNING_KEYS, '/apis/grantry.dev/v1alpha1/signingkeys', 'signingkeys.grantry.dev'],
    [SECRETS, '/api/v1/secrets', 'secrets'],
    [CONFIG_MAPS, '/api/v1/configmaps', 'configmaps'],
    [NAMESPACES, '/api/v1/namespaces', 'namespaces'],
    [SERVICE_ACCOUNTS, '/api/v1/serviceaccounts', 'serviceaccounts'],
    [ENDPOINT_SLICES, '/apis/discovery.k8s.io/v1/endpointslices', 'endpointslices.discovery.k8s.io'],
    [LEASES, '/apis/coordination.k8s.io/v1/leases', 'leases.coordination.k8s.io'],
    [EVENTS, '/apis/events.k8s.io/v1/events', 'events.events.k8s.io'],
  ])('$kind has its path and its name', (resource, path, name) => {
    expect(resourcePath(resource)).toBe(path);
    expect(resourceName(resource)).toBe(name);
  });

  it('has a path in one namespace and a path of one object, whatever is in the names', () => {
    expect(resourcePath(SECRETS, { namespace: 'team-a' })).toBe('/api/v1/namespaces/team-a/secrets');
    expect(resourcePath(SECRETS, { namespace: 'a', name: '../b?c' })).toBe('/api/v1/namespaces/a/secrets/..%2Fb%3Fc');
    expect(resourcePath(NAMESPACES, { name: 'team-a' })).toBe('/api/v1/namespaces/team-a');
  });

  it('has the apiVersion of its manifests', () => {
    expect(apiVersionOf(SECRETS)).toBe('v1');
    expect(apiVersionOf(OAUTH_CLIENTS)).toBe('grantry.dev/v1alpha1');
  });

  it('has objects with a key', () => {
    expect(objectKey({ namespace: 'team-a', name: 'web' })).toBe('team-a/web');
    expect(objectKey({ name: 'team-a' })).toBe('team-a');
  });
});

describe('an error of the API server', () => {
  it('says which verb, which resource, where, who asked and what came back', async () => {
    const who = { verb: 'list', resource: OAUTH_CLIENTS, user: 'system:serviceaccount:auth:grantry-server' };
    const error = new KubernetesError({ ...who, status: 403, reason: 'Forbidden', namespace: 'team-a' });
    expect(error.message).toBe(
      'list oauthclients.grantry.dev in namespace team-a as system:serviceaccount:auth:grantry-server: 403 Forbidden',
    );
    expect(error).toMatchObject({ status: 403, reason: 'Forbidden', verb: 'list', namespace: 'team-a' });
    const api: Pick<KubernetesApi, 'get'> = { get: () => Promise.reject(error) };
    await expect(api.get(OAUTH_CLIENTS, { name: 'a' })).rejects.toBe(error);
    const silent = new KubernetesError({ ...who, status: 0, reason: 'NoAnswer', detail: 'ECONNREFUSED' });
    expect(silent.message).toContain('as system:serviceaccount:auth:grantry-server: NoAnswer (ECONNREFUSED)');
  });
});
