// The token servers and the controller judge the same objects by different paths: a server parses and judges once what
// many clients have in common, and judges after a change only the clients that it concerns. Status must not promise what
// no server serves, so both paths come to the same verdicts.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admitPolicies } from '../../../src/admission/policies/admit-policies.ts';
import { AdmittedClients } from '../../../src/cluster-registry/admitted-clients.ts';
import { clientKeeper } from '../../../src/cluster-registry/kept-client.ts';
import { JudgedClients } from '../../../src/controller/verdicts/judged-clients.ts';
import { type KubernetesObject, objectKey } from '../../../src/kubernetes/objects/resources.ts';
import { sourceOf } from '../../../src/kubernetes/objects/source-object.ts';
import { labelsOf } from '../../../src/kubernetes/watch/namespace-labels.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { KeyRing } from '../../../src/oauth/registry/keys.ts';
import { DIFFERENCES, PERMITTED, PERMITTING } from '../../admission/differing-clients.ts';

type Fields = Readonly<Record<string, unknown>>;

const INSTALL = {
  issuer: 'https://id.example',
  mutualTls: true,
  releaseNamespace: 'grantry',
  defaultPolicy: 'Baseline',
} as const;
const VERIFIER = new Uint8Array(32).fill(1);
const KEYS = new KeyRing([]);

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
  #policies: readonly KubernetesObject[] = [];
  readonly #keep = clientKeeper('default', INSTALL);
  readonly #server: AdmittedClients;
  readonly #controller: JudgedClients;

  constructor() {
    this.#server = new AdmittedClients({
      ...INSTALL,
      clock: { now: () => Date.parse('2026-02-01T00:00:00Z') },
      labelsOf: (namespace) => labelsOf(this.#namespaces, namespace),
      verifiersOf: (uid) =>
        hasSecret(uid) ? { revision: 1, verifiers: [{ verifier: VERIFIER, revision: 1 }] } : undefined,
    });
    this.#controller = new JudgedClients({
      ...INSTALL,
      className: 'default',
      policies: { get: () => undefined, objects: () => this.#policies },
      namespaces: { get: (name) => this.#namespaces.get(name), objects: () => this.#namespaces.values() },
    });
  }

  /** Creates or updates a client; one of another uid was deleted before. */
  putClient(client: KubernetesObject): void {
    const { uid } = client.metadata;
    const key = objectKey(client.metadata);
    if (this.#clients.get(key)?.metadata.uid !== uid) this.deleteClient(key);
    this.#clients.set(key, client);
    this.#server.put(this.#keep(client, key));
    this.#server.judge(uid);
    this.#controller.put(client);
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
    const verdicts = admitPolicies({
      className: 'default',
      unknownFields: 'ignore',
      policies: policies.map(sourceOf),
    });
    for (const uid of this.#server.setPolicies(verdicts.map(({ policy }) => policy))) this.#server.judge(uid);
    this.#controller.policiesChanged();
    for (const client of this.#clients.values()) this.#controller.put(client);
  }

  putNamespace(name: string, labels: Readonly<Record<string, string>>): void {
    this.#namespaces.set(name, object('Namespace', { name, labels }));
    for (const uid of this.#server.relabelled(name)) this.#server.judge(uid);
    for (const client of this.#clients.values()) this.#controller.put(client);
  }

  /** Compares the verdicts on every client. @returns how many are served */
  compare(): number {
    this.#server.settle();
    const { registry, changes } = this.#server.publish(KEYS);
    this.#controller.settle();
    const verdicts = [...this.#clients.values()].map(({ metadata }) => {
      const verifiers = hasSecret(metadata.uid) ? [VERIFIER] : [];
      const programmed = { status: 'True', reason: 'Programmed', message: '' } as const;
      return this.#controller.verdict(objectKey(metadata), { secret: () => 'withheld', verifiers, programmed });
    });
    for (const { object, client, conditions } of verdicts) {
      const served = registry.findByUid(object.uid);
      const fields = client && (Object.keys(client) as (keyof Client)[]);
      expect(served && fieldsOf(served, fields), JSON.stringify(conditions)).toEqual(
        client && fieldsOf(client, fields),
      );
    }
    const reasons = verdicts.map(({ clientId, conditions }) => `${clientId} ${conditions.at(-1)?.reason}`);
    for (const { kind, clientId, reason } of changes) {
      if (kind === 'refused') expect(reasons).toContain(`${clientId} ${reason}`);
    }
    return verdicts.filter(({ client }) => client !== undefined).length;
  }
}

/** Most clients have a secret, and some have none yet. */
function hasSecret(uid: string): boolean {
  return !uid.startsWith('uid-4');
}

/** The fields of a client in a form that is compared: those of a served one are getters. */
function fieldsOf(client: Client, fields: readonly (keyof Client)[] = []): object {
  const secretVerifiers = client.secretVerifiers.map((verifier) => Buffer.from(verifier).toString('hex'));
  return { ...Object.fromEntries(fields.map((field) => [field, client[field]])), secretVerifiers };
}

const policy = (name: string, namespaceSelector: unknown, spec: Fields = PERMITTING) =>
  object('ClientPolicy', { name }, { namespaceSelector, ...spec });
const POLICIES = [
  policy('all', {}),
  policy('gold', { matchLabels: { tier: 'gold' } }, { allow: { ...(PERMITTING.allow as Fields), consentSkip: true } }),
  policy('not-gold', { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['gold'] }] }),
  policy('few', {}, { ...PERMITTING, limits: { maxClientsPerNamespace: 2 } }),
  policy('strict', { matchLabels: { tier: 'gold' } }, { allow: { scopes: [] } }),
  policy('unreadable', { matchLabels: { tier: 'silver' } }, { allow: { scopes: 'team/*' } }),
  policy('unreadable-selector', { matchLabels: { tier: 'gold', zone: 7 } }),
  policy('of-another-class', {}, { ...PERMITTING, className: 'another' }),
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
  })
  .map(({ slot, namespace, day, difference, more, secretName }) => {
    const secret = secretName === undefined ? {} : { auth: { clientSecret: { secretName } } };
    const spec = { ...PERMITTED, ...more, ...secret, ...difference?.[2] };
    const metadata = { namespace, uid: `uid-${slot}-${namespace}-${day}` };
    const creationTimestamp = `2026-01-${day}T00:00:00Z`;
    return object('OAuthClient', { name: `app-${slot}`, ...metadata, creationTimestamp }, spec);
  });

type Change = (paths: TwoPaths) => void;
const labels = fc.constantFrom({}, { tier: 'gold' }, { tier: 'silver' });

const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 8, arbitrary: client.map((each) => (paths: TwoPaths) => paths.putClient(each)) },
  client.map(
    ({ metadata }) =>
      (paths: TwoPaths) =>
        paths.deleteClient(objectKey(metadata)),
  ),
  fc.shuffledSubarray(POLICIES).map((policies) => (paths: TwoPaths) => paths.setPolicies(policies)),
  fc.tuple(fc.constantFrom('team', 'other'), labels).map(
    ([name, given]) =>
      (paths: TwoPaths) =>
        paths.putNamespace(name, given),
  ),
);

describe('after every change of clients, policies and namespaces', () => {
  it('a token server serves exactly the clients that the controller reports as ready, and refuses the others for the same reasons', () => {
    let served = 0;
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 25 }), (changes) => {
        const paths = new TwoPaths();
        paths.setPolicies(POLICIES.slice(0, 2));
        paths.putNamespace('team', {});
        for (const apply of changes) {
          apply(paths);
          served += paths.compare();
        }
      }),
      { numRuns: 200 },
    );
    expect(served).toBeGreaterThan(200);
  });
});
