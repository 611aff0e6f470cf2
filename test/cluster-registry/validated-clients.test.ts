// What follows from one change among all clients of an install, without any API server.

import { beforeEach, describe, expect, it } from 'vitest';
import type { ClientVerifiers } from '../../src/admission/client-secrets/client-verifier.ts';
import { CLIENT_POLICY } from '../../src/admission/kinds/client-policy.ts';
import { policyOf } from '../../src/admission/policies/policy.ts';
import type { Policy } from '../../src/admission/policies/policy-violations.ts';
import { clientCache } from '../../src/cluster-registry/cached-objects.ts';
import { ValidatedClients } from '../../src/cluster-registry/validated-clients.ts';
import type { KubernetesObject } from '../../src/kubernetes/objects/resources.ts';
import { CLIENT_AUTH_METHODS } from '../../src/oauth/client-auth/index.ts';
import { KeyRing } from '../../src/oauth/registry/keys.ts';
import { Resources } from '../../src/oauth/registry/resources.ts';

const KEYS = new KeyRing([]);
const CREATED = '2026-01-01T00:00:00Z';

describe('the admitted clients', () => {
  let clients: ValidatedClients;
  let verifiers: Map<string, ClientVerifiers>;
  /** The namespaces of resources by identifier. */
  let owners: Map<string, string>;
  let labels: Readonly<Record<string, string>>;
  let policies: readonly Policy[];
  const keep = clientCache({
    className: 'default',
    issuer: 'https://id.example',
    supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
  });
  const clock = { value: Date.parse(CREATED), now: () => clock.value };

  beforeEach(() => {
    clock.value = Date.parse(CREATED);
    verifiers = new Map();
    owners = new Map();
    labels = {};
    policies = [];
    clients = new ValidatedClients({
      issuer: 'https://id.example',
      releaseNamespace: 'grantry',
      defaultPolicy: 'Baseline',
      ownerOf: (identifier) => owners.get(identifier),
      supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
      clock,
      policies: () => policies,
      namespaceLabels: (namespace) => ({ 'kubernetes.io/metadata.name': namespace, ...labels }),
      verifiersOf: (uid) => verifiers.get(uid),
    });
  });

  function setPolicies(present: readonly Policy[]): readonly string[] {
    policies = present;
    return clients.revalidate();
  }
  function object(name: string, spec: object = {}, metadata: object = {}): KubernetesObject {
    const defaults = { grantTypes: ['client_credentials'], scopes: ['team/read'] };
    const manifest = {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: {
        name,
        namespace: 'team',
        uid: `uid-${name}`,
        resourceVersion: '1',
        generation: 1,
        creationTimestamp: CREATED,
        ...metadata,
      },
      spec: { ...defaults, ...spec },
    };
    return keep(manifest);
  }
  const withSecret = (uid: string, expiresAt?: number, byte = 1) =>
    verifiers.set(uid, {
      revision: 1,
      verifiers: [
        { verifier: new Uint8Array(32).fill(byte), revision: 1, ...(expiresAt !== undefined && { expiresAt }) },
      ],
    });
  function add(...objects: readonly KubernetesObject[]) {
    for (const each of objects) {
      withSecret(each.metadata.uid);
      clients.put(each);
      clients.validate(each.metadata.uid);
    }
    return serve();
  }
  function serve() {
    clients.recompute();
    return clients.publish(KEYS, { resources: Resources.NONE, providers: [] });
  }
  const ids = () => {
    const { registry } = serve();
    return ['one', 'two', 'three'].filter((name) => registry.find(`team.${name}`) !== undefined);
  };

  it('are served when their secret is known, and not before', () => {
    clients.put(object('one'));
    clients.validate('uid-one');
    expect(serve().changes).toEqual([{ clientId: 'team.one', kind: 'refused', reason: 'Pending' }]);
    withSecret('uid-one');
    clients.validate('uid-one');
    expect(serve().changes).toEqual([{ clientId: 'team.one', kind: 'accepted' }]);
    expect(ids()).toEqual(['one']);
    expect(clients.refused).toBe(0);
  });

  it('change only the client that a change concerns', () => {
    add(object('one'), object('two'));
    const before = serve().registry;
    add(object('two', { displayName: 'Two' }, { generation: 2 }));
    const after = serve().registry;
    expect(after.find('team.one')).toBe(before.find('team.one'));
    expect(after.find('team.two')?.displayName).toBe('Two');
    expect(before.find('team.two')?.displayName).toBe('team.two');
    expect(clients.servedState('uid-two')).toEqual({ generation: 2, secretRevision: 1 });
  });

  it('given limits of sign-in → serve each client with its own, and a change of them', () => {
    add(
      object('one'),
      object('two', { signIn: { identityProviders: ['corp', 'local'], groups: ['corp:ops'] } }),
      object('three', { signIn: { identityProviders: [], groups: [] } }),
    );
    const limits = () => ['one', 'two', 'three'].map((name) => serve().registry.find(`team.${name}`)?.signIn);
    const ofTwo = { identityProviders: ['corp', 'local'], groups: ['corp:ops'] };
    expect(limits()).toEqual([undefined, ofTwo, undefined]);
    add(object('one', { signIn: { groups: ['dev'] } }, { generation: 2 }), object('two', {}, { generation: 2 }));
    expect(limits()).toEqual([{ identityProviders: [], groups: ['dev'] }, undefined, undefined]);
  });

  it('report a verdict only once it is served', () => {
    add(object('one'));
    clients.put(object('one', { suspended: true }, { generation: 2 }));
    clients.validate('uid-one');
    expect(clients.servedState('uid-one')?.generation).toBe(1);
    expect(serve().changes).toEqual([{ clientId: 'team.one', kind: 'refused', reason: 'Suspended' }]);
    expect(clients.servedState('uid-one')?.generation).toBe(2);
    expect(ids()).toEqual([]);
    expect(clients.refused).toBe(1);
  });

  it('name the clients that a policy concerns, and serve the same client objects where their verdict stays the same', () => {
    add(object('one'), object('other', { scopes: ['elsewhere/read'] }, { namespace: 'elsewhere' }));
    const policy = (scopes: readonly string[]) =>
      policyOf(
        CLIENT_POLICY.ignore.parse({
          apiVersion: 'grantry.dev/v1alpha1',
          kind: 'ClientPolicy',
          metadata: { name: 'team' },
          spec: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'team' } }, allow: { scopes } },
        }),
      );
    const servedUnder = (scopes: readonly string[]) => {
      expect(setPolicies([policy(scopes)])).toEqual(['uid-one']);
      clients.validate('uid-one');
      return serve().registry.find('team.one');
    };
    const before = servedUnder(['team/*']);
    expect(servedUnder(['team/*', 'more/*'])).toBe(before);
    expect(setPolicies([policy(['team/*', 'more/*'])])).toEqual([]);
    expect(setPolicies([policy(['nothing'])])).toEqual(['uid-one']);
    clients.validate('uid-one');
    expect(serve().changes).toEqual([{ clientId: 'team.one', kind: 'refused', reason: 'PolicyViolation' }]);
  });

  it('have the share of state of the greatest policy that permits them, as it is now', () => {
    const policy = (name: string, maxState: string, scopes = ['**']) =>
      policyOf(
        CLIENT_POLICY.ignore.parse({
          apiVersion: 'grantry.dev/v1alpha1',
          kind: 'ClientPolicy',
          metadata: { name },
          spec: { namespaceSelector: {}, allow: { scopes }, limits: { maxState } },
        }),
      );
    const share = (...policies: ReturnType<typeof policy>[]) => {
      setPolicies(policies);
      clients.validate('uid-one');
      return serve().registry.find('team.one')?.maxState;
    };
    add(object('one'));
    expect(serve().registry.find('team.one')).toMatchObject({ namespace: 'team', maxState: 64 * 2 ** 20 });
    expect(share(policy('a', '1Mi'), policy('b', '2Mi'), policy('c', '3Mi', ['nothing']))).toBe(2 * 2 ** 20);
    expect(share(policy('a', '1Mi'))).toBe(2 ** 20);
  });

  it.each([
    ['PolicyViolation', { scopes: ['elsewhere/read'] }],
    ['UnsupportedGrantType', { grantTypes: ['magic'] }],
  ])('are each refused with %s for what they say alike', (reason, spec) => {
    const { changes } = add(object('one', spec), object('two', spec), object('three', spec));
    expect(changes).toEqual(
      ['one', 'two', 'three'].map((name) => ({ clientId: `team.${name}`, kind: 'refused', reason })),
    );
    expect(ids()).toEqual([]);
  });

  it('are validated against other policies where their namespace has other labels', () => {
    setPolicies([
      policyOf(
        CLIENT_POLICY.ignore.parse({
          apiVersion: 'grantry.dev/v1alpha1',
          kind: 'ClientPolicy',
          metadata: { name: 'strict' },
          spec: { namespaceSelector: { matchLabels: { tier: 'strict' } }, allow: { scopes: [] } },
        }),
      ),
    ]);
    add(object('one'));
    expect(ids()).toEqual(['one']);
    labels = { tier: 'strict' };
    expect(clients.revalidate('team')).toEqual(['uid-one']);
    clients.validate('uid-one');
    expect(serve().changes).toEqual([{ clientId: 'team.one', kind: 'refused', reason: 'PolicyViolation' }]);
  });

  it('accept another secret, and no longer the one before, once their verifier is another', () => {
    add(object('one'));
    withSecret('uid-one', undefined, 2);
    clients.validate('uid-one');
    const served = serve()
      .registry.find('team.one')
      ?.secretVerifiers.map((verifier) => [...verifier]);
    expect(served).toEqual([Array(32).fill(2)]);
  });

  it('name the reason of each refused id while it is refused, whichever client has it', () => {
    const wrong = { scopes: ['elsewhere/read'] };
    add(object('one', wrong), object('two', { clientId: 'team.one', suspended: true }), object('three'));
    const reasons = () => ['one', 'two', 'three'].map((name) => serve().registry.refused.reasonOf(`team.${name}`));
    expect(reasons()).toEqual(['PolicyViolation', undefined, undefined]);
    clients.delete('uid-one');
    expect(reasons()).toEqual(['Suspended', undefined, undefined]);
    add(object('two', wrong, { resourceVersion: '2', generation: 2 }));
    expect(reasons()).toEqual([undefined, 'PolicyViolation', undefined]);
    add(object('two', {}, { resourceVersion: '3', generation: 3 }));
    expect(reasons()).toEqual([undefined, undefined, undefined]);
  });

  it('with one spec in a namespace that a policy selects and in one that none does → each knows what admitted it', () => {
    const policy = policyOf(
      CLIENT_POLICY.ignore.parse({
        apiVersion: 'grantry.dev/v1alpha1',
        kind: 'ClientPolicy',
        metadata: { name: 'team' },
        spec: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'team' } } },
      }),
    );
    const spec = { scopes: [] };
    add(object('one', spec), object('one', spec, { namespace: 'other', uid: 'uid-other' }));
    const admittedBy = () => ['team', 'other'].map((name) => serve().registry.find(`${name}.one`)?.admittedBy);
    expect(admittedBy()).toEqual(['baseline', 'baseline']);
    for (const uid of setPolicies([policy])) clients.validate(uid);
    expect(admittedBy()).toEqual(['policy', 'baseline']);
    for (const uid of setPolicies([])) clients.validate(uid);
    expect(admittedBy()).toEqual(['baseline', 'baseline']);
  });

  it('with one spec in two namespaces → each the default audience of its own', () => {
    setPolicies([
      policyOf(
        CLIENT_POLICY.ignore.parse({
          apiVersion: 'grantry.dev/v1alpha1',
          kind: 'ClientPolicy',
          metadata: { name: 'wide' },
          spec: { namespaceSelector: {}, allow: { scopes: ['**'], audiences: ['**'] } },
        }),
      ),
    ]);
    add(object('one'), object('one', {}, { namespace: 'other', uid: 'uid-other' }));
    const audiences = () => ['team', 'other'].map((name) => serve().registry.find(`${name}.one`)?.audiences);
    expect(audiences()).toEqual([['urn:grantry:ns:team:default'], ['urn:grantry:ns:other:default']]);
    add(object('one', { audiences: ['urn:a'] }, { resourceVersion: '2', generation: 2 }));
    expect(audiences()).toEqual([['urn:a'], ['urn:grantry:ns:other:default']]);
    expect(add(object('two', { audiences: ['https://id.example'] })).changes).toEqual([
      { clientId: 'team.two', kind: 'refused', reason: 'InvalidAudience' },
    ]);
  });

  it('drop a verifier whose time has come', () => {
    add(object('one'));
    withSecret('uid-one', clock.value + 1000);
    clients.validate('uid-one');
    expect(ids()).toEqual(['one']);
    clock.value += 1000;
    clients.validate('uid-one');
    expect(ids()).toEqual([]);
  });

  it('have a Secret each, by whatever name: the older of two with one is served', () => {
    const naming = (secretName: string) => ({ auth: { clientSecret: { secretName } } });
    const later = { creationTimestamp: '2026-01-01T00:00:01Z' };
    // `one` is no name of the Secret of `one`, and `one-oauth` is.
    add(object('one', {}, later), object('two', naming('one'), later), object('three', naming('one'), later));
    expect(ids()).toEqual(['one', 'three']);
    add(object('three', naming('one-oauth'), { resourceVersion: '2' }));
    expect(ids()).toEqual(['two', 'three']);
    add(object('three', naming('three-oauth'), { resourceVersion: '3' }));
    expect(ids()).toEqual(['one', 'two', 'three']);
  });

  it('forget one that is deleted, or being deleted, and count no refusal of it', () => {
    add(object('one'), object('two', { grantTypes: ['magic'] }));
    expect(clients.refused).toBe(1);
    clients.put(object('two', {}, { deletionTimestamp: CREATED }));
    clients.delete('uid-one');
    const { changes } = serve();
    expect(changes.map(({ kind }) => kind)).toEqual(['removed', 'removed']);
    expect([ids(), clients.refused, clients.servedState('uid-one')]).toEqual([[], 0, undefined]);
  });

  it('pass over objects of another class', () => {
    add(object('one', { className: 'another' }));
    expect([ids(), clients.refused]).toEqual([[], 0]);
  });

  it('given two with one id → the younger is refused as long as the other is there, and says so once', () => {
    policies = [
      policyOf(
        CLIENT_POLICY.ignore.parse({
          apiVersion: 'grantry.dev/v1alpha1',
          kind: 'ClientPolicy',
          metadata: { name: 'shared-id' },
          spec: {
            namespaceSelector: {},
            allow: { scopes: ['**'], grantTypes: ['client_credentials'], clientIds: ['shop'] },
          },
        }),
      ),
    ];
    const younger = { creationTimestamp: '2026-01-02T00:00:00Z' };
    const refused = { clientId: 'shop', kind: 'refused', reason: 'ClientIdConflict' };
    expect(add(object('one', { clientId: 'shop' })).changes).toEqual([{ clientId: 'shop', kind: 'accepted' }]);
    expect(add(object('two', { clientId: 'shop' }, younger)).changes).toEqual([refused]);
    // Refused as before: no other line of the audit stream.
    expect(add(object('two', { clientId: 'shop' }, { ...younger, generation: 2 })).changes).toEqual([]);
    expect(serve().registry.refused.reasonOf('shop')).toBe('ClientIdConflict');
    clients.delete('uid-one');
    const removed = { clientId: 'shop', kind: 'removed' };
    expect(serve().changes).toEqual([removed, { clientId: 'shop', kind: 'accepted' }]);
    expect(serve().registry.find('shop')?.name).toBe('two');
  });

  it('given one that is deleted before it is published → is not served', () => {
    withSecret('uid-one');
    clients.put(object('one'));
    clients.validate('uid-one');
    clients.delete('uid-one');
    const { registry, changes } = serve();
    expect([registry.size, changes]).toEqual([0, [{ clientId: 'team.one', kind: 'removed' }]]);
  });

  it('given a generation that is not validated yet → the state of the one before', () => {
    add(object('one'));
    clients.put(object('one', { displayName: 'One' }, { generation: 2 }));
    withSecret('uid-one', undefined, 2);
    expect(serve().registry.find('team.one')?.displayName).toBe('team.one');
    expect(clients.servedState('uid-one')).toEqual({ generation: 1, secretRevision: 1 });
    clients.validate('uid-one');
    clients.put(object('one', {}, { generation: 3 }));
    expect(serve().registry.find('team.one')?.displayName).toBe('One');
    expect(clients.servedState('uid-one')?.generation).toBe(2);
  });
});
