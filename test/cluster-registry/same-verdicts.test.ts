// The token servers and the controller admit the same objects by different paths: a server parses once what many
// clients have in common, and validates after a change only the clients that it concerns. Status must not promise what
// no server serves, so both paths come to the same verdicts.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ClientVerifiers,
  readVerifierSecret,
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../src/admission/client-secrets/client-verifier.ts';
import { ClientSet } from '../../src/admission/clients/client-set.ts';
import { accountCredentials, assertionCredentials } from '../../src/admission/clients/credentials.ts';
import { readManifest } from '../../src/admission/kinds/manifest.ts';
import { OAUTH_CLIENT } from '../../src/admission/kinds/oauth-client.ts';
import { admitPolicies } from '../../src/admission/policies/admit-policies.ts';
import { AdmittedResources } from '../../src/admission/resources/admitted-resources.ts';
import { clientCache } from '../../src/cluster-registry/cached-objects.ts';
import { ServedResources } from '../../src/cluster-registry/served-resources.ts';
import { ValidatedClients } from '../../src/cluster-registry/validated-clients.ts';
import { type KubernetesObject, objectKey } from '../../src/kubernetes/objects/resources.ts';
import { type ClusterSource, sourceOf } from '../../src/kubernetes/objects/source-object.ts';
import { labelsOf } from '../../src/kubernetes/watch/namespace-labels.ts';
import type { ObjectChange } from '../../src/kubernetes/watch/object-store.ts';
import { CLIENT_AUTH_METHODS, SECRET_METHODS } from '../../src/oauth/client-auth/index.ts';
import type { Client } from '../../src/oauth/registry/client.ts';
import { KeyRing } from '../../src/oauth/registry/keys.ts';
import { Resources } from '../../src/oauth/registry/resources.ts';
import { DIFFERENCES, PERMITTED, PERMITTING } from '../admission/differing-clients.ts';
import { aKey } from '../oauth/values/signed-tokens.ts';

type Fields = Readonly<Record<string, unknown>>;

const INSTALL = {
  issuer: 'https://id.example',
  className: 'default',
  releaseNamespace: 'grantry',
  defaultPolicy: 'Baseline',
  supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
} as const;
const VERIFIER = new Uint8Array(32).fill(1);
const KEYS = new KeyRing([]);
const PARTS = { resources: Resources.NONE, providers: [] };

function object(kind: string, metadata: Fields & { readonly name: string }, spec?: unknown): KubernetesObject {
  const shared = { resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' };
  const apiVersion = kind === 'Namespace' ? 'v1' : 'grantry.dev/v1alpha1';
  return { apiVersion, kind, metadata: { uid: `${kind}-${metadata.name}`, ...shared, ...metadata }, spec };
}

/** Both paths over the same objects. */
class TwoPaths {
  /** By namespace and name. */
  readonly #clients = new Map<string, KubernetesObject>();
  readonly #namespaces = new Map<string, KubernetesObject>();
  /** The texts of ConfigMaps and the uids of ServiceAccounts, by namespace and name. */
  readonly #configMaps = new Map<string, string>();
  readonly #accounts = new Map<string, KubernetesObject>();
  #policies: readonly KubernetesObject[] = [];
  readonly #keep = clientCache(INSTALL);
  readonly #served = new ServedResources({
    ...this.#resourceOptions(),
  });
  readonly #admitted = new AdmittedResources({ ...this.#resourceOptions(), unknownFields: 'ignore' });
  readonly #server: ValidatedClients;
  readonly #controller: ClientSet<ClusterSource>;

  constructor() {
    this.#server = new ValidatedClients({
      ...INSTALL,
      policies: () => this.#validPolicies(),
      ownerOf: (identifier) => this.#served.ownerOf(identifier),
      clock: { now: () => Date.parse('2026-02-01T00:00:00Z') },
      namespaceLabels: (namespace) => labelsOf(this.#namespaces, namespace),
      verifiersOf: (uid) => this.#storedOf(uid),
    });
    this.#controller = new ClientSet({
      ...this.#resourceOptions(),
      unknownFields: 'ignore',
      ownerOf: this.#admitted.ownerOf,
      factsOf: (uid) => ({
        secret: () => 'withheld',
        configMap: this.#configMapOf,
        serviceAccountUid: this.#accountUid,
        verifiersOf: () => (hasSecret(uid) ? [VERIFIER] : []),
        jwksOf: () => undefined,
        programmed: { status: 'True', reason: 'Programmed', message: '' },
      }),
    });
  }

  /** Creates or updates a client; one of another uid was deleted before. */
  putClient(client: KubernetesObject): void {
    const { uid } = client.metadata;
    const key = objectKey(client.metadata);
    if (this.#clients.get(key)?.metadata.uid !== uid) this.deleteClient(key);
    this.#clients.set(key, client);
    this.#server.put(this.#keep(client));
    this.#server.validate(uid);
    this.#controller.put(sourceOf(client));
    this.#controller.validate(key);
  }

  deleteClient(key: string): void {
    const client = this.#clients.get(key);
    if (client === undefined) return;
    this.#clients.delete(key);
    this.#server.delete(client.metadata.uid);
    this.#controller.delete(key);
  }

  setPolicies(policies: readonly KubernetesObject[]): void {
    this.#policies = policies;
    this.#served.revalidate();
    this.#admitted.revalidate();
    for (const uid of this.#server.revalidate()) this.#server.validate(uid);
    this.#validate(this.#controller.revalidate());
    this.#recomputeResources();
  }

  #validPolicies() {
    const policies = this.#policies.map(sourceOf);
    return admitPolicies({ className: 'default', unknownFields: 'ignore', policies }).map(({ policy }) => policy);
  }

  /** Creates, updates or deletes a resource. */
  changeResource(change: Pick<ObjectChange, 'type' | 'object'>): void {
    const key = objectKey(change.object.metadata);
    this.#served.changed({ key, ...change });
    if (change.type === 'delete') this.#admitted.delete(key);
    else this.#admitted.put(sourceOf(change.object));
    this.#recomputeResources();
  }

  #recomputeResources(): void {
    for (const uid of this.#server.resourcesChanged(this.#served.recompute())) this.#server.validate(uid);
    this.#admitted.recompute();
    // Their claims depend on the resources that there are.
    const introspecting = [...this.#clients.values()].filter(
      ({ spec }) => (spec as Fields).resourceServer !== undefined,
    );
    this.#validate(introspecting.map(sourceOf));
  }

  #validate(clients: readonly ClusterSource[]): void {
    for (const { manifest } of clients) this.#controller.validate(objectKey(manifest.metadata));
  }

  #resourceOptions() {
    return {
      ...INSTALL,
      reservedNamespace: INSTALL.releaseNamespace,
      policies: () => this.#validPolicies(),
      namespaceLabels: (namespace: string) => labelsOf(this.#namespaces, namespace),
    };
  }

  putNamespace(name: string, labels: Readonly<Record<string, string>>): void {
    this.#namespaces.set(name, object('Namespace', { name, labels }));
    this.#served.relabelled(name);
    this.#admitted.revalidate(name);
    for (const uid of this.#server.revalidate(name)) this.#server.validate(uid);
    this.#validate(this.#controller.revalidate(name));
    this.#recomputeResources();
  }

  /** @param text undefined: it is deleted */
  putConfigMap(key: string, text: string | undefined): void {
    if (text === undefined) this.#configMaps.delete(key);
    else this.#configMaps.set(key, text);
    this.#validateAll();
  }

  /** @param uid undefined: it is deleted */
  putAccount(key: string, uid: string | undefined): void {
    if (uid === undefined) this.#accounts.delete(key);
    else this.#accounts.set(key, object('ServiceAccount', { name: key, uid }));
    this.#validateAll();
  }

  /** As after the controller followed the change. */
  #validateAll(): void {
    for (const { metadata } of this.#clients.values()) this.#server.validate(metadata.uid);
  }

  readonly #accountUid = (namespace: string, name: string) => this.#accounts.get(`${namespace}/${name}`)?.metadata.uid;

  readonly #configMapOf = (namespace: string, name: string) => {
    const text = this.#configMaps.get(`${namespace}/${name}`);
    return text === undefined ? undefined : { data: { 'jwks.json': text } };
  };

  /** What the controller stores of a client, as a token server reads it. */
  #storedOf(uid: string): ClientVerifiers | undefined {
    const client = [...this.#clients.values()].find(({ metadata }) => metadata.uid === uid);
    const source = client && sourceOf(client);
    const manifest = source && readManifest(OAUTH_CLIENT.ignore, source.manifest).manifest;
    if (source === undefined || manifest === undefined) return undefined;
    const { method } = manifest.spec.auth;
    if (SECRET_METHODS.includes(method)) {
      return hasSecret(uid) ? stored(uid, { verifiers: [{ verifier: VERIFIER, revision: 1 }] }) : undefined;
    }
    const identity =
      method === 'private_key_jwt'
        ? assertionCredentials(source, manifest.spec, { configMap: this.#configMapOf, jwksOf: () => undefined })
        : accountCredentials(source, manifest.spec, { serviceAccountUid: this.#accountUid });
    if (identity.state !== 'ready') return undefined;
    const { assertion, serviceAccounts } = identity;
    if (serviceAccounts !== undefined) return stored(uid, { verifiers: [], serviceAccounts });
    if (assertion === undefined || 'jwksUri' in assertion.keys) return undefined;
    return stored(uid, { verifiers: [], jwks: assertion.keys });
  }

  /** Compares the verdicts on every client. @returns those that are served */
  compare(): readonly Client[] {
    this.#server.recompute();
    const { registry, changes } = this.#server.publish(KEYS, PARTS);
    this.#controller.recompute();
    const verdicts = [...this.#clients.keys()].map((key) => this.#controller.verdict(key));
    for (const { object, client, conditions } of verdicts) {
      const served = registry.findByUid(object.uid);
      const fields = client && (Object.keys(client) as (keyof Client)[]);
      expect(served && fieldsOf(served, fields), JSON.stringify(conditions)).toEqual(
        client && fieldsOf(client, fields),
      );
    }
    const reasons = verdicts.flatMap(({ clientId, conditions }) => {
      const { reason = '' } = conditions.at(-1) ?? {};
      // A token server reads no object of a tenant: it waits for what the controller does not find there.
      return [reason, ...(OF_REFERENCES.includes(reason) ? ['Pending'] : [])].map((each) => `${clientId} ${each}`);
    });
    for (const { kind, clientId, reason } of changes) {
      if (kind === 'refused') expect(reasons).toContain(`${clientId} ${reason}`);
    }
    return verdicts.flatMap(({ client }) => client ?? []);
  }
}

const OF_REFERENCES = ['ConfigMapNotFound', 'InvalidJwks', 'ServiceAccountNotFound'];

/** The content of a verifier Secret after it was written and read. */
function stored(uid: string, content: Omit<ClientVerifiers, 'revision'>): ClientVerifiers | undefined {
  const data = verifierSecretData({ revision: 1, ...content });
  return readVerifierSecret({ type: VERIFIER_SECRET_TYPE, metadata: { name: verifierSecretName(uid) }, data });
}

/** Most clients have a secret, and some have none yet. */
function hasSecret(uid: string): boolean {
  return !uid.startsWith('uid-4');
}

/** The fields of a client in a form that is compared: its verifiers may be of another class of bytes. */
function fieldsOf(client: Client, fields: readonly (keyof Client)[] = []): object {
  const secretVerifiers = client.secretVerifiers.map((verifier) => Buffer.from(verifier).toString('hex'));
  return { ...Object.fromEntries(fields.map((field) => [field, client[field]])), secretVerifiers };
}

const ALLOW = PERMITTING.allow as Fields;
const EVERY_METHOD = {
  ...PERMITTING,
  allow: {
    ...ALLOW,
    resources: ['urn:foreign:api'],
    authMethods: [...INSTALL.supportedAuthMethods],
    jwksHosts: ['app.example.com'],
  },
};
const policy = (name: string, namespaceSelector: unknown, spec: Fields = EVERY_METHOD) =>
  object('ClientPolicy', { name }, { namespaceSelector, ...spec });
const POLICIES = [
  policy('all', {}),
  policy('gold', { matchLabels: { tier: 'gold' } }, { allow: { ...ALLOW, consentSkip: true } }),
  policy('not-gold', { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['gold'] }] }),
  policy('few', {}, { ...PERMITTING, limits: { maxClientsPerNamespace: 2 } }),
  policy('strict', { matchLabels: { tier: 'gold' } }, { allow: { scopes: [] } }),
  policy('unreadable', { matchLabels: { tier: 'silver' } }, { allow: { scopes: 'team/*' } }),
  policy('unreadable-selector', { matchLabels: { tier: 'gold', zone: 7 } }),
  policy('of-another-class', {}, { ...PERMITTING, className: 'another' }),
];

const [FIRST, SECOND, RS256_ONLY] = [
  { ...aKey('ES256').jwk, kid: 'first' },
  { ...aKey('EdDSA').jwk, kid: 'second' },
  aKey('RS256').jwk,
];
const ENCRYPTING = { ...FIRST, use: 'enc' };
const privateKeyJwt = (settings: Fields) => ({ method: 'private_key_jwt', privateKeyJwt: settings });
const AUTHS: readonly Fields[] = [
  privateKeyJwt({ jwks: { keys: [FIRST] } }),
  privateKeyJwt({ jwks: { keys: [SECOND, RS256_ONLY] }, signingAlgorithms: ['RS256'] }),
  privateKeyJwt({ jwks: { keys: [RS256_ONLY] } }),
  privateKeyJwt({ jwks: { keys: [ENCRYPTING] } }),
  privateKeyJwt({ jwks: { keys: [FIRST] }, jwksUri: 'https://app.example.com/jwks' }),
  privateKeyJwt({ jwksUri: 'https://app.example.com/jwks' }),
  privateKeyJwt({ jwksUri: 'http://app.example.com/jwks' }),
  privateKeyJwt({ jwksConfigMapRef: { name: 'keys' } }),
  privateKeyJwt({ jwksConfigMapRef: { name: 'keys' }, signingAlgorithms: ['EdDSA'] }),
  privateKeyJwt({ jwksConfigMapRef: { name: 'keys', key: 'another' } }),
  { method: 'kubernetes_service_account', serviceAccounts: [{ name: 'worker' }] },
  { method: 'kubernetes_service_account', serviceAccounts: [{ name: 'worker' }, { name: 'helper' }] },
  { method: 'kubernetes_service_account', serviceAccounts: [{ name: 'default' }] },
  { method: 'kubernetes_service_account' },
];
const TEXTS = [
  undefined,
  JSON.stringify({ keys: [FIRST] }),
  JSON.stringify({ keys: [RS256_ONLY, ENCRYPTING, SECOND] }),
  JSON.stringify({ keys: [FIRST, { ...SECOND, d: 'x' }] }),
  '{"keys": []}',
  'keys:',
];

/** A client from few values, so that claims meet. */
const client = fc
  .record({
    slot: fc.nat(5),
    namespace: fc.constantFrom('team', 'team', 'other', 'grantry'),
    day: fc.constantFrom('01', '02', '03'),
    difference: fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, fc.constantFrom(...DIFFERENCES)),
    more: fc.constantFrom<Fields>({}, {}, { clientId: 'team_app' }, { clientId: 'other_app' }, { suspended: true }),
    secretName: fc.constantFrom(undefined, undefined, 'app-0-oauth', 'shared'),
    auth: fc.option(fc.constantFrom(...AUTHS), { freq: 2 }),
  })
  .map(({ slot, namespace, day, difference, more, secretName, auth }) => {
    const ofSecret = secretName === undefined ? {} : { auth: { clientSecret: { secretName } } };
    const secret = auth === null ? ofSecret : { auth };
    const spec = { ...PERMITTED, ...more, ...secret, ...difference?.[2] };
    const metadata = { namespace, uid: `uid-${slot}-${namespace}-${day}` };
    const creationTimestamp = `2026-01-${day}T00:00:00Z`;
    return object('OAuthClient', { name: `app-${slot}`, ...metadata, creationTimestamp }, spec);
  });

const API = object('ProtectedResource', { name: 'api', namespace: 'team' }, { resource: 'urn:foreign:api' });

const API_CLIENT = object(
  'OAuthClient',
  { name: 'api', namespace: 'team', uid: 'uid-api' },
  { ...PERMITTED, resourceServer: { audiences: ['urn:foreign:api'] } },
);

const resource = fc
  .record({
    namespace: fc.constantFrom('team', 'other'),
    identifier: fc.constantFrom('urn:foreign:api', 'urn:foreign:api/'),
  })
  .map(({ namespace, identifier }) =>
    object('ProtectedResource', { name: 'api', namespace }, { resource: identifier }),
  );

type Change = (paths: TwoPaths) => void;
const labels = fc.constantFrom({}, { tier: 'gold' }, { tier: 'silver' });

const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 8, arbitrary: client.map((each) => (paths: TwoPaths) => paths.putClient(each)) },
  client.map(
    ({ metadata }) =>
      (paths: TwoPaths) =>
        paths.deleteClient(objectKey(metadata)),
  ),
  fc.tuple(fc.constantFrom('put', 'put', 'delete'), resource).map(
    ([type, each]) =>
      (paths: TwoPaths) =>
        paths.changeResource({ type, object: each }),
  ),
  fc.shuffledSubarray(POLICIES).map((policies) => (paths: TwoPaths) => paths.setPolicies(policies)),
  fc.tuple(fc.constantFrom('team', 'other'), labels).map(
    ([name, given]) =>
      (paths: TwoPaths) =>
        paths.putNamespace(name, given),
  ),
  fc.tuple(fc.constantFrom('team/keys', 'other/keys'), fc.constantFrom(...TEXTS)).map(
    ([key, text]) =>
      (paths: TwoPaths) =>
        paths.putConfigMap(key, text),
  ),
  fc.tuple(fc.constantFrom('team/worker', 'team/helper', 'other/worker'), fc.constantFrom('u-1', 'u-2', undefined)).map(
    ([key, uid]) =>
      (paths: TwoPaths) =>
        paths.putAccount(key, uid),
  ),
);

describe('after every change of clients, policies, namespaces and resources', () => {
  it('a token server serves exactly the clients that the controller reports as ready, and refuses the others for the same reasons', () => {
    const served: Client[] = [];
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 25 }), (changes) => {
        const paths = new TwoPaths();
        paths.setPolicies(POLICIES.slice(0, 2));
        paths.putNamespace('team', {});
        paths.changeResource({ type: 'put', object: API });
        paths.putClient(API_CLIENT);
        paths.putConfigMap('team/keys', JSON.stringify({ keys: [FIRST] }));
        paths.putAccount('team/worker', 'u-1');
        for (const apply of changes) {
          apply(paths);
          served.push(...paths.compare());
        }
      }),
      { numRuns: 200 },
    );
    expect(served.length).toBeGreaterThan(200);
    const methods = served.map(({ authMethod }) => authMethod);
    expect(methods).toEqual(expect.arrayContaining(['private_key_jwt', 'kubernetes_service_account']));
    // No policy permits it.
    expect(served.some(({ resourceServerAudiences }) => resourceServerAudiences.includes('urn:foreign:api'))).toBe(
      true,
    );
  });
});
