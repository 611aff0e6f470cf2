// A leader that loses the lease during any kind of write writes nothing more, not even what is left of one reconcile.
// Each row is carried out once by a leader that keeps the lease, and then by leaders who lose it after each number of
// writes. And nothing but an Event is written or removed except as it was read.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PEPPER_SECRET } from '../../../src/admission/references/secret-parts.ts';
import { verifierSecret } from '../../../src/controller/client-secrets/credential-state.ts';
import { ClientController } from '../../../src/controller/clients/client-controller.ts';
import { InstallSecrets } from '../../../src/controller/install/install-secrets.ts';
import { LostSecrets } from '../../../src/controller/install/lost-secrets.ts';
import type { LeaderApi } from '../../../src/controller/leadership/leader-api.ts';
import { LeadershipLostError } from '../../../src/controller/leadership/lease.ts';
import { PolicyController } from '../../../src/controller/policies/policy-controller.ts';
import { EventRecorder } from '../../../src/controller/reconciling/events.ts';
import { KeyReconciler } from '../../../src/controller/signing-keys/key-reconciler.ts';
import { FIELD_MANAGER } from '../../../src/kubernetes/api/kubernetes-api.ts';
import {
  CLIENT_POLICIES,
  CONFIG_MAPS,
  EVENTS,
  NAMESPACES,
  OAUTH_CLIENTS,
  objectKey,
  type Resource,
  SECRETS,
  SERVICE_ACCOUNTS,
  SIGNING_KEYS,
} from '../../../src/kubernetes/objects/resources.ts';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const RELEASE = 'grantry-system';
const TEAM = 'shop';
const HOUR = 3_600_000;
const [MADE, CHANGED, REMOVED] = ['create Secret', 'apply Secret', 'delete Secret'];
const [CLIENT, RING] = ['apply OAuthClient', 'apply SigningKey'];
const WITH_SECRET = { grantTypes: ['client_credentials'], scopes: [`${TEAM}/read`] };

/** All there is, and who leads for so many writes. */
class World {
  readonly clients = new PlayedObjects(OAUTH_CLIENTS);
  readonly policies = new PlayedObjects(CLIENT_POLICIES);
  readonly namespaces = new PlayedObjects(NAMESPACES);
  readonly signingKeys = new PlayedObjects(SIGNING_KEYS);
  readonly secrets = new PlayedObjects(SECRETS);
  readonly releaseSecrets = new PlayedObjects(SECRETS);
  readonly writes: string[] = [];
  /** What was written or removed without saying which state of it is meant. */
  readonly unpinned: string[] = [];
  readonly api: LeaderApi;
  /** Ends what was started. */
  end: () => Promise<void> = async () => {};
  readonly #events = new PlayedObjects(EVENTS);

  constructor(leadsFor: number) {
    this.namespaces.put({ metadata: { name: TEAM } });
    const note = (verb: string, { kind }: Resource) => this.writes.push(`${verb} ${kind}`);
    const calls = {
      ...UNPLAYED,
      get: async (resource: Resource, at: { namespace?: string; name: string }) =>
        this.#of(resource, at.namespace).get(objectKey(at)),
      create: async (resource: Resource, object: Parameters<LeaderApi['create']>[1]) => {
        note('create', resource);
        return this.#of(resource, object.metadata.namespace).put(object);
      },
      apply: async (resource: Resource, object: Parameters<LeaderApi['apply']>[1]) => {
        note('apply', resource);
        this.#expectPinned(resource, object.metadata);
        return this.#of(resource, object.metadata.namespace).put(object);
      },
      delete: async (resource: Resource, at: Parameters<LeaderApi['delete']>[1]) => {
        note('delete', resource);
        this.#expectPinned(resource, at);
        this.#of(resource, at.namespace).delete(objectKey(at));
        return 'deleted' as const;
      },
    };
    this.api = leaderOver(calls, () => {
      if (this.writes.length >= leadsFor) throw new LeadershipLostError();
    });
  }

  #expectPinned(resource: Resource, at: Parameters<LeaderApi['apply']>[1]['metadata']): void {
    if (resource.kind === EVENTS.kind) return;
    const { uid, resourceVersion } = this.#of(resource, at.namespace).get(objectKey(at))?.metadata ?? {};
    if (at.uid !== uid || at.resourceVersion !== resourceVersion) this.unpinned.push(at.name);
  }

  #of({ kind }: Resource, namespace: string | undefined): PlayedObjects {
    if (kind === SECRETS.kind) return namespace === RELEASE ? this.releaseSecrets : this.secrets;
    const views = { OAuthClient: this.clients, ClientPolicy: this.policies, SigningKey: this.signingKeys };
    return views[kind as keyof typeof views] ?? this.#events;
  }
}

const clock = { now: () => Date.now() };
const quiet = {
  record: () => {},
  clock,
  random: systemRandom,
  log: { error: () => {} },
  metrics: { reconciled: () => {} },
  className: 'default',
  releaseNamespace: RELEASE,
};

function startClients(world: World): void {
  const { api, clients, policies, namespaces, secrets, releaseSecrets } = world;
  const [configMaps, serviceAccounts] = [new PlayedObjects(CONFIG_MAPS), new PlayedObjects(SERVICE_ACCOUNTS)];
  const controller = new ClientController({
    ...quiet,
    api,
    sources: { clients, policies, namespaces, secrets, configMaps, serviceAccounts, releaseSecrets },
    install: {
      issuer: 'https://id.example',
      className: 'default',
      releaseNamespace: RELEASE,
      defaultPolicy: 'Baseline',
      supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
      watchNamespaces: undefined,
    },
    replicas: { find: () => [], ask: async () => undefined },
    grantsOf: () => undefined,
    ownerOf: () => undefined,
    observed: { observe: async () => ({ outcome: 'NoReplicas' }) },
  });
  controller.start();
  world.end = () => controller.stop();
}

async function rotatedClient(world: World): Promise<void> {
  const metadata = { namespace: TEAM, name: 'web' };
  world.clients.put({ metadata, spec: WITH_SECRET });
  startClients(world);
  await vi.advanceTimersByTimeAsync(100);
  world.clients.put({ metadata: { ...metadata, annotations: { 'grantry.dev/rotate-now': 'once' } } });
}

/** It was under another name before, which is written down. */
async function renamedSecret(world: World): Promise<void> {
  const auth = { clientSecret: { secretName: 'renamed', rotation: { gracePeriod: '0s' } } };
  const { uid } = world.clients.put({
    metadata: { namespace: TEAM, name: 'web' },
    spec: { ...WITH_SECRET, auth },
  }).metadata;
  const labels = { 'grantry.dev/client': 'web', 'grantry.dev/client-uid': uid };
  const managedFields = [{ manager: FIELD_MANAGER, fieldsV1: { 'f:data': { 'f:client-secret': {} } } }];
  const ownerReferences = [{ apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', name: 'web', uid }];
  const metadata = { namespace: TEAM, name: 'web-oauth', labels, ownerReferences, managedFields };
  const value = 'of the former name, and long enough for a secret';
  world.secrets.put({ metadata, data: { 'client-secret': Buffer.from(value).toString('base64') } });
  const handled = { rotateAt: undefined, rotateNow: undefined };
  const verifiers = [{ verifier: secretVerifier(uid, value), revision: 1 }];
  const state = { revision: 1, verifiers, rotatedAt: 0, begunAt: undefined, handled };
  const owner = { namespace: TEAM, name: 'web', uid };
  const install = { releaseNamespace: RELEASE, className: 'default' };
  world.releaseSecrets.put(verifierSecret(owner, state, install, ['web-oauth']));
  startClients(world);
}

async function abandonedVerifier(world: World): Promise<void> {
  const handled = { rotateAt: undefined, rotateNow: undefined };
  const state = { revision: 1, verifiers: [], rotatedAt: 0, begunAt: undefined, handled };
  const owner = { namespace: TEAM, name: 'gone', uid: 'uid-gone' };
  world.releaseSecrets.put(verifierSecret(owner, state, { releaseNamespace: RELEASE, className: 'default' }));
  startClients(world);
}

/** From none to its third key, when the first one goes. */
async function keys({ api, signingKeys, releaseSecrets: secrets }: World): Promise<void> {
  const replicas = { observe: async () => ({ outcome: 'NotObserved' as const }) };
  const rotation = { policy: 'Scheduled', interval: '24h', prePublish: '1h', retain: '48h' };
  const reader = {
    list: async () => ({ items: secrets.objects(), resourceVersion: '', continue: undefined, bytes: 0 }),
  };
  const reconciler = new KeyReconciler({ ...quiet, api, reader, signingKeys, secrets, replicas });
  const key = `${RELEASE}/default`;
  for (const hours of [0, 0, 23, 24, 73]) {
    vi.setSystemTime(hours * HOUR);
    await reconciler.reconcile(key).catch(() => {});
    const ring = signingKeys.get(key);
    if (ring !== undefined) signingKeys.put({ metadata: ring.metadata, spec: { algorithm: 'ES256', rotation } });
  }
}

async function policy(world: World): Promise<void> {
  const { api, policies, namespaces, clients } = world;
  policies.put({ metadata: { name: 'gold' }, spec: { namespaceSelector: {} } });
  const controller = new PolicyController({ ...quiet, api, sources: { policies, namespaces, clients } });
  controller.start();
  world.end = () => controller.stop();
}

async function pepper(world: World): Promise<void> {
  const { api, releaseSecrets } = world;
  const lost = new LostSecrets(releaseSecrets);
  const secrets = new InstallSecrets({ ...quiet, api, sources: { releaseSecrets }, wanted: [PEPPER_SECRET], lost });
  secrets.start();
  world.end = () => secrets.stop();
}

async function events({ api, clients }: World): Promise<void> {
  const recorder = new EventRecorder({ api, instance: 'test', clock, log: { debug: () => {} } });
  const regarding = clients.put({ metadata: { namespace: TEAM, name: 'web' } });
  for (const note of ['Once.', 'Twice.', 'Twice.']) {
    recorder.record({ regarding, type: 'Normal', reason: 'Said', action: 'Say', note });
    await vi.advanceTimersByTimeAsync(0);
  }
  await vi.advanceTimersByTimeAsync(60_000);
}

describe('who loses the lease', () => {
  beforeEach(() => {
    const toFake = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'] as const;
    vi.useFakeTimers({ toFake: [...toFake], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  async function writesOf(work: (world: World) => Promise<void>, leadsFor: number): Promise<readonly string[]> {
    const world = new World(leadsFor);
    await work(world);
    await vi.advanceTimersByTimeAsync(1000);
    await world.end();
    expect(world.unpinned).toEqual([]);
    return world.writes;
  }

  it.each([
    ['a client with a secret that is rotated', rotatedClient, [MADE, MADE, CHANGED, CHANGED, CLIENT]],
    ['a client whose Secret got another name', renamedSecret, [CHANGED, MADE, CHANGED, REMOVED, CHANGED, CLIENT]],
    ['verifiers of a client that is gone', abandonedVerifier, [REMOVED]],
    [
      'a ring of keys',
      keys,
      [...['create SigningKey', MADE, RING], ...[MADE, RING, CHANGED, CHANGED, RING, MADE, REMOVED, RING]],
    ],
    ['a policy', policy, ['apply ClientPolicy']],
    ['the pepper', pepper, [MADE]],
    ['Events', events, ['apply Event', 'apply Event', 'apply Event']],
  ])('makes no further write about %s', async (_, work, expected) => {
    const writes = await writesOf(work, Number.POSITIVE_INFINITY);
    expect(writes).toEqual(expected);
    for (let leadsFor = 0; leadsFor < writes.length; leadsFor++) {
      expect(await writesOf(work, leadsFor)).toEqual(writes.slice(0, leadsFor));
    }
  });
});
