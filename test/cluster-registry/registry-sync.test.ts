// What a token server makes of changes that come while it works on others: key material is read in the background, and the
// test decides when that is done. What a real API server sends is tested in test/cluster/.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type AcceptedVerifier,
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../src/admission/client-secrets/client-verifier.ts';
import {
  KEY_SECRET_TYPE,
  keySecretData,
  keySecretMetadata,
  keySecretName,
  type StoredKey,
} from '../../src/admission/keys/key-secret.ts';
import { PART_LABEL, PEPPER_SECRET } from '../../src/admission/references/secret-parts.ts';
import { type RegistrySwap, RegistrySync } from '../../src/cluster-registry/registry-sync.ts';
import {
  KubernetesError,
  type ListPage,
  type Selection,
  type WatchFrame,
} from '../../src/kubernetes/api/kubernetes-api.ts';
import {
  CLIENT_POLICIES,
  type KubernetesObject,
  NAMESPACES,
  OAUTH_CLIENTS,
  type Resource,
  SIGNING_KEYS,
} from '../../src/kubernetes/objects/resources.ts';
import { clientAccess } from '../../src/oauth/access/client-access.ts';
import { CLIENT_AUTH_METHODS } from '../../src/oauth/client-auth/index.ts';
import { generateSigningKeyPem, importSigningKey } from '../../src/oauth/registry/keys.ts';
import { systemClock, systemRandom } from '../../src/processes/lifecycle/machine.ts';
import { aKey } from '../oauth/values/signed-tokens.ts';
import { until } from '../until.ts';

const RELEASE = 'grantry-system';
const NOTES = { metadata: { namespace: 'team' }, spec: { scopes: [{ name: 'team/read' }] } };
const CREATED = '2026-01-01T00:00:00Z';

/** The objects of a cluster, and the frames of their watches. */
class PlayedCluster {
  readonly #objects = new Map<string, readonly KubernetesObject[]>();
  readonly #frames = new Map<string, WatchFrame[]>();
  #wake = Promise.withResolvers<void>();
  #versions = 1;
  #isAway = false;

  object(kind: string, name: string, rest: { readonly metadata?: object; readonly [field: string]: unknown } = {}) {
    const { metadata, ...fields } = rest;
    return {
      apiVersion: kind === 'Namespace' || kind === 'Secret' ? 'v1' : 'grantry.dev/v1alpha1',
      kind,
      ...fields,
      metadata: {
        name,
        uid: `uid-${kind}-${name}`,
        resourceVersion: String(++this.#versions),
        generation: 1,
        creationTimestamp: CREATED,
        ...metadata,
      },
    } satisfies KubernetesObject;
  }

  /** Is there from the start. */
  has(plural: string, ...objects: readonly KubernetesObject[]): void {
    this.#objects.set(plural, objects);
  }

  /** Sends a new or changed object. */
  put(plural: string, object: KubernetesObject): void {
    this.#framesOf(plural).push({ type: 'MODIFIED', object });
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  /** Ends the watch, because what it went on from is too old. */
  expire(resource: Resource): void {
    const told = { status: 410, reason: 'Expired', verb: 'watch', user: 'the test' };
    this.#framesOf(resource.plural).push({ type: 'ERROR', error: new KubernetesError({ ...told, resource }) });
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  /** Cuts every watch, and refuses each connection until `returns`. */
  leaves(): void {
    this.#isAway = true;
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  returns(): void {
    this.#isAway = false;
  }

  #assertReachable(resource: Resource): void {
    const error = { status: 0, reason: 'ECONNREFUSED', verb: 'watch', user: 'the test' };
    if (this.#isAway) throw new KubernetesError({ ...error, resource });
  }

  /** Once every frame was read. */
  async told(): Promise<void> {
    await until('all frames are read', () => [...this.#frames.values()].every(({ length }) => length === 0));
  }

  async list(resource: Resource, selection: Selection = {}): Promise<ListPage> {
    this.#assertReachable(resource);
    const items = this.#objects.get(selected(resource, selection)) ?? [];
    return { items, resourceVersion: '1', continue: undefined, bytes: 0 };
  }

  async watch(
    resource: Resource,
    { signal, ...selection }: Selection & { readonly signal: AbortSignal },
  ): Promise<AsyncIterable<WatchFrame>> {
    this.#assertReachable(resource);
    signal.addEventListener('abort', () => this.#wake.resolve());
    return this.#follow(resource, selected(resource, selection), signal);
  }

  async *#follow(resource: Resource, plural: string, signal: AbortSignal): AsyncGenerator<WatchFrame> {
    while (!signal.aborted) {
      this.#assertReachable(resource);
      const frame = this.#framesOf(plural)[0];
      if (frame === undefined) await this.#wake.promise;
      else {
        yield frame;
        this.#framesOf(plural).shift();
      }
    }
  }

  #framesOf(plural: string): WatchFrame[] {
    const frames = this.#frames.get(plural) ?? [];
    this.#frames.set(plural, frames);
    return frames;
  }
}

/** What is selected by a field is a collection of its own: `secrets type=…`. */
function selected({ plural }: Resource, { fieldSelector }: Selection): string {
  return fieldSelector === undefined ? plural : `${plural} ${fieldSelector}`;
}

function changed(object: KubernetesObject, metadata: Partial<KubernetesObject['metadata']>): KubernetesObject {
  return { ...object, metadata: { ...object.metadata, ...metadata } };
}

/** What the reads of key material wait for, and how many there were. */
const reads = vi.hoisted(() => ({ count: 0, mayEnd: Promise.resolve() }));
vi.mock('../../src/oauth/registry/keys.ts', async (original) => {
  const keys = await original<typeof import('../../src/oauth/registry/keys.ts')>();
  const imported: typeof keys.importSigningKey = async (...asked) => {
    reads.count += 1;
    await reads.mayEnd;
    return await keys.importSigningKey(...asked);
  };
  return { ...keys, importSigningKey: imported };
});

/** Holds every read of key material until the test releases it. */
function heldMaterial() {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const before = reads.count;
  reads.mayEnd = released;
  return {
    wanted: () => until('material is read', () => reads.count > before),
    release: () => {
      reads.mayEnd = Promise.resolve();
      release();
    },
  };
}

describe('the registry of a token server', () => {
  let cluster: PlayedCluster;
  let sync: RegistrySync;
  let swaps: RegistrySwap[];
  let onSecret: () => void;
  let onSwapped: () => void;
  let onUsers: () => void;
  const log = { info: () => {}, warn: () => {}, error: vi.fn() };

  beforeEach(() => {
    log.error.mockReset();
    swaps = [];
    onSecret = () => {};
    onSwapped = () => {};
    onUsers = () => {};
    cluster = new PlayedCluster();
    cluster.has('namespaces', namespace('team'));
    cluster.has('protectedresources', cluster.object('ProtectedResource', 'notes', NOTES));
    cluster.has('oauthclients', client('web'));
    sync = new RegistrySync({
      issuer: 'https://id.example',
      api: cluster,
      className: 'default',
      releaseNamespace: RELEASE,
      defaultPolicy: 'Baseline',
      supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
      watchNamespaces: [],
      clock: systemClock,
      random: systemRandom,
      log,
      metrics: { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {} },
    });
  });
  afterEach(async () => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    await sync.stop();
  });

  function namespace(name: string, labels: Readonly<Record<string, string>> = {}) {
    return cluster.object('Namespace', name, {
      metadata: { labels: { 'kubernetes.io/metadata.name': name, ...labels } },
    });
  }
  /** A public client, which is served as it is. */
  function client(name: string, more: object = {}) {
    return cluster.object('OAuthClient', name, {
      metadata: { namespace: 'team' },
      spec: {
        auth: { method: 'none' },
        grantTypes: ['authorization_code'],
        scopes: ['openid'],
        redirectUris: ['https://app.example/cb'],
        ...more,
      },
    });
  }
  function policy(generation: number, grantTypes: readonly string[], namespaceSelector: object = {}) {
    return cluster.object('ClientPolicy', 'tenants', {
      metadata: { generation },
      spec: { namespaceSelector, allow: { grantTypes, scopes: ['openid'], redirectHosts: ['*.example'] } },
    });
  }
  function ring(generation: number, revokedKeyIds: readonly string[]) {
    return cluster.object('SigningKey', 'default', {
      metadata: { namespace: RELEASE, generation },
      spec: { revokedKeyIds },
    });
  }
  async function key(metadata: object = {}) {
    const pem = await generateSigningKeyPem('ES256');
    const { kid: keyId } = await importSigningKey(pem, 'ES256', 'Active');
    const times = { publishedAt: Date.now(), activatedAt: Date.now(), removeAfter: undefined };
    const stored: StoredKey = { signingKeyName: 'default', keyId, algorithm: 'ES256', state: 'Active', ...times };
    const secret = cluster.object('Secret', keySecretName(stored), {
      type: KEY_SECRET_TYPE,
      metadata: { namespace: RELEASE, ...keySecretMetadata(stored), ...metadata },
      data: keySecretData(pem),
    });
    return { keyId, secret };
  }
  async function serving() {
    const onSwap = (swap: RegistrySwap) => {
      swaps.push(swap);
      onSwapped();
    };
    sync.start({ onSwap, onSecret: () => onSecret(), onUsers: () => onUsers() });
    await sync.whenServing();
  }
  const keyIds = () => sync.current.keys.jwks.keys.map(({ kid }) => kid);
  const isServed = () => sync.current.find('team.web') !== undefined;

  /** The swaps that follow from an object as it is now, where one of each kind was there before. */
  async function swapsFor(plural: string, object: () => KubernetesObject): Promise<readonly RegistrySwap[]> {
    cluster.has('clientpolicies', policy(1, ['authorization_code']));
    cluster.has('signingkeys', ring(1, []));
    await serving();
    expect(isServed()).toBe(true);
    swaps.splice(0);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    cluster.put(plural, object());
    await cluster.told();
    vi.advanceTimersByTime(10);
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    return swaps;
  }

  it('answers the generation of each resource that has a verdict, served or refused, and of no other', async () => {
    expect(sync.servedResource('uid-ProtectedResource-notes')).toBeUndefined();
    sync.start({ onSwap: (swap) => swaps.push(swap), onSecret: () => {}, onUsers: () => {} });
    await sync.whenServing();
    expect(sync.servedResource('uid-ProtectedResource-notes')).toEqual({ generation: 1 });
    expect(sync.servedResource('uid-OAuthClient-web')).toBeUndefined();
    const refused = { scopes: [{ name: 'openid' }] };
    const metadata = { namespace: 'team', generation: 2 };
    cluster.put('protectedresources', cluster.object('ProtectedResource', 'notes', { metadata, spec: refused }));
    await until('it has a verdict', () => sync.servedResource('uid-ProtectedResource-notes')?.generation === 2);
    const spec = { className: 'staging' };
    cluster.put('protectedresources', cluster.object('ProtectedResource', 'staged', { metadata, spec }));
    cluster.put('protectedresources', cluster.object('ProtectedResource', 'more', { metadata, spec: {} }));
    await until('the next has a verdict', () => sync.servedResource('uid-ProtectedResource-more')?.generation === 2);
    expect(sync.servedResource('uid-ProtectedResource-staged')).toBeUndefined();
  });

  describe('identity providers', () => {
    const SECRETS = 'secrets type=grantry.dev/identity-provider';
    const ISSUER = 'https://id.corp.example';
    const current = () => sync.current.providers.find(({ name }) => name === 'corp');

    function provider(generation: number, more: object = {}, name = 'corp') {
      return cluster.object('IdentityProvider', name, {
        metadata: { namespace: RELEASE, generation },
        spec: { type: 'OIDC', clientSecretRef: { name: 'corp-client' }, oidc: { issuer: ISSUER }, ...more },
      });
    }
    function credentials(clientSecret: string, type = 'grantry.dev/identity-provider') {
      const encoded = (text: string) => Buffer.from(text).toString('base64');
      return cluster.object('Secret', 'corp-client', {
        type,
        metadata: { namespace: RELEASE },
        data: { 'client-id': encoded('grantry'), 'client-secret': encoded(clientSecret) },
      });
    }

    it('given one and its Secret → it is open, and each change is served', async () => {
      cluster.has('identityproviders', provider(1));
      cluster.has(SECRETS, credentials('first'));
      await serving();
      expect(current()?.credentials).toMatchObject({ clientId: 'grantry', clientSecret: 'first' });
      expect(sync.servedProviders).toEqual(new Map([['uid-IdentityProvider-corp', { generation: 1 }]]));
      cluster.put(SECRETS, credentials('second'));
      await until('the Secret is served', () => current()?.credentials?.clientSecret === 'second');
      cluster.put('identityproviders', provider(2, { displayName: 'Corp' }));
      await until('the manifest is served', () => current()?.displayName === 'Corp');
      expect(sync.servedProviders.get('uid-IdentityProvider-corp')).toEqual({ generation: 2 });
    });

    it('given one without its Secret → it stands and waits; the Secret opens it', async () => {
      cluster.has('identityproviders', provider(1));
      await serving();
      expect(current()).toMatchObject({ type: 'OIDC', issuer: ISSUER, credentials: undefined });
      cluster.put(SECRETS, credentials('first'));
      await until('it is open', () => current()?.credentials !== undefined);
    });

    it('given a Secret of its name among the parts of grantry → it is not read', async () => {
      cluster.has('identityproviders', provider(1));
      cluster.has('secrets', credentials('a part', 'Opaque'));
      await serving();
      cluster.put('secrets', credentials('a part'));
      cluster.put('identityproviders', provider(2));
      await until('the next generation has a verdict', () => {
        return sync.servedProviders.get('uid-IdentityProvider-corp')?.generation === 2;
      });
      expect(current()?.credentials).toBeUndefined();
    });

    it('given a change of something else → the same list, and the same objects of those that stay', async () => {
      cluster.has('identityproviders', provider(1), provider(1, { oidc: { issuer: 'https://b.example' } }, 'other'));
      cluster.has(SECRETS, credentials('first'));
      await serving();
      const { providers } = sync.current;
      const before = current();
      cluster.put('oauthclients', client('second'));
      await until('the client is served', () => sync.current.find('team.second') !== undefined);
      expect(sync.current.providers).toBe(providers);
      cluster.put('identityproviders', provider(2, { oidc: { issuer: 'https://c.example' } }, 'other'));
      await until('the other is served', () =>
        sync.current.providers.some(({ name, generation }) => name === 'other' && generation === 2),
      );
      expect(current()).toBe(before);
    });

    it('given one that arrives while key material is read → served, without a further change', async () => {
      await serving();
      const { secret } = await key();
      const material = heldMaterial();
      cluster.put('secrets', secret);
      await material.wanted();
      cluster.put('identityproviders', provider(1));
      await cluster.told();
      material.release();
      await until('it is served', () => current() !== undefined);
    });

    it('given one that is suspended → the registry says so', async () => {
      cluster.has('identityproviders', provider(1), provider(1, { oidc: { issuer: 'https://b.example' } }, 'other'));
      cluster.has(SECRETS, credentials('first'));
      await serving();
      cluster.put('identityproviders', provider(2, { suspended: true }));
      await until('it is suspended', () => current()?.isSuspended === true);
      expect(sync.current.providers.map(({ isSuspended }) => isSuspended)).toEqual([true, false]);
    });
  });

  it('loses no key that is revoked while another is read', async () => {
    await serving();
    const [one, other] = [await key(), await key()];
    const material = heldMaterial();
    cluster.put('secrets', one.secret);
    await material.wanted();
    cluster.put('signingkeys', ring(1, [one.keyId]));
    await cluster.told();
    material.release();
    await until('it signs no more', () => keyIds().length === 0);
    cluster.put('secrets', other.secret);
    await until('the other signs', () => sync.current.keys.signing?.kid === other.keyId);
  });

  it('loses no key that arrives while another is read', async () => {
    await serving();
    const [one, other] = [await key(), await key()];
    const material = heldMaterial();
    cluster.put('secrets', one.secret);
    await material.wanted();
    cluster.put('secrets', other.secret);
    await cluster.told();
    material.release();
    await until('both are there', () => keyIds().length === 2);
  });

  it('loses no policy that changes while a key is read', async () => {
    await serving();
    expect(isServed()).toBe(true);
    const { secret } = await key();
    const material = heldMaterial();
    cluster.put('secrets', secret);
    await material.wanted();
    cluster.put('clientpolicies', policy(1, ['client_credentials']));
    await cluster.told();
    material.release();
    await until('it permits nothing', () => !isServed());
  });

  it('takes a change again that could not be taken', async () => {
    await serving();
    const { secret } = await key();
    const broken = { ...secret, data: {} };
    log.error.mockImplementationOnce(() => {
      throw new Error('no log can be written now');
    });
    cluster.put('secrets', broken);
    await until('it is said', () => log.error.mock.calls.length > 1);
    expect(log.error.mock.calls.map(([fields]) => Object.keys(fields))).toEqual([['secret'], ['err']]);
    await until('it is tried again', () => log.error.mock.calls.length > 2);
    expect(log.error.mock.lastCall?.[0]).toEqual({ secret: secret.metadata.name });
  });

  it('retries a change that a listener threw at, and not after the end', async () => {
    await serving();
    let tries = 0;
    onSecret = () => {
      tries += 1;
      throw new Error('no');
    };
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const labels = { [PART_LABEL]: PEPPER_SECRET.part };
    cluster.put('secrets', cluster.object('Secret', PEPPER_SECRET.name, { metadata: { namespace: RELEASE, labels } }));
    await cluster.told();
    expect(tries).toBe(1);
    vi.advanceTimersByTime(500);
    expect(tries).toBe(2);
    await sync.stop();
    vi.advanceTimersByTime(600_000);
    expect(tries).toBe(2);
  });

  it('serves on and reports since when while the API server is unavailable for 12 hours, and has what it missed when that recovers', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    const passes = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);
    const { secret, keyId } = await key();
    cluster.has('secrets', secret);
    sync.start({ onSwap: (swap) => swaps.push(swap), onSecret: () => onSecret(), onUsers: () => {} });
    await until('it serves', async () => {
      await passes(1);
      return isServed() && keyIds().length > 0;
    });
    await passes(10);
    expect(sync.watchFault).toBeUndefined();
    const { current, lastProgress } = sync;
    cluster.leaves();
    for (const hours of [1, 11]) {
      await passes(hours * 3600);
      expect([sync.startFault, sync.current]).toEqual([undefined, current]);
      expect([isServed(), keyIds()]).toEqual([true, [keyId]]);
      expect(sync.watchFault).toMatch(/^watch oauthclients\.grantry\.dev .*ECONNREFUSED/);
      expect(sync.lastProgress).toBe(lastProgress);
    }
    cluster.put('oauthclients', client('next'));
    cluster.returns();
    // A reflector retries after 30 s at the latest, and its fault is over once the watch lasted a second.
    await passes(32);
    expect([isServed(), sync.current.find('team.next') !== undefined]).toEqual([true, true]);
    expect(sync.watchFault).toBeUndefined();
    expect(sync.lastProgress).toBeGreaterThan(lastProgress + 12 * 3_600_000);
  });

  it('swaps once for all changes that come within ten milliseconds', async () => {
    await serving();
    expect(swaps.splice(0)).toHaveLength(1);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const burst = async (names: readonly string[]) => {
      for (const name of names) cluster.put('oauthclients', client(name));
      await cluster.told();
    };
    await burst(['a', 'b', 'c']);
    vi.advanceTimersByTime(9);
    await burst(['d', 'e']);
    expect(swaps).toEqual([]);
    vi.advanceTimersByTime(1);
    await until('the last one is served', () => sync.current.find('team.e') !== undefined);
    const served = swaps.map(({ changes }) => changes.map(({ clientId }) => clientId).sort());
    expect(served).toEqual([['team.a', 'team.b', 'team.c', 'team.d', 'team.e']]);
  });

  const status = { conditions: [{ type: 'Accepted', status: 'True' }] };
  it.each<[string, string, () => KubernetesObject]>([
    ['a client', 'oauthclients', () => client('web')],
    ['a client whose status is another', 'oauthclients', () => ({ ...client('web'), status })],
    ['a policy', 'clientpolicies', () => policy(1, ['authorization_code'])],
    ['a policy whose status is another', 'clientpolicies', () => ({ ...policy(1, ['authorization_code']), status })],
    ['a namespace', 'namespaces', () => namespace('team')],
    ['a namespace whose status is another', 'namespaces', () => ({ ...namespace('team'), status })],
    ['a signing key', 'signingkeys', () => ring(1, [])],
    ['a signing key whose status is another', 'signingkeys', () => ({ ...ring(1, []), status })],
  ])('validates no client and swaps nothing for another version of %s', async (_, plural, object) => {
    expect(await swapsFor(plural, object)).toEqual([]);
  });

  it.each<[string, string, () => KubernetesObject]>([
    ['a client', 'oauthclients', () => changed(client('web'), { generation: 2 })],
    ['a client that is being deleted', 'oauthclients', () => changed(client('web'), { deletionTimestamp: CREATED })],
    ['a policy', 'clientpolicies', () => policy(2, ['client_credentials'])],
    ['the labels of a namespace', 'namespaces', () => namespace('team', { tier: 'two' })],
    ['a signing key', 'signingkeys', () => ring(2, ['one'])],
  ])('swaps once for a change of %s', async (_, plural, object) => {
    expect(await swapsFor(plural, object)).toHaveLength(1);
  });

  it.each<[string, Resource, () => KubernetesObject]>([
    ['client', OAUTH_CLIENTS, () => client('web')],
    ['policy', CLIENT_POLICIES, () => policy(1, ['authorization_code'])],
    ['namespace', NAMESPACES, () => namespace('team')],
    ['signing key', SIGNING_KEYS, () => ring(1, [])],
  ])('validates again for a %s that a list after a gap has in another version', async (_, resource, object) => {
    cluster.has('clientpolicies', policy(1, ['authorization_code']));
    cluster.has('signingkeys', ring(1, []));
    await serving();
    swaps.splice(0);
    cluster.has(resource.plural, object());
    cluster.expire(resource);
    await until('it is validated', () => swaps.length > 0);
  });

  it('takes another spec of the same generation from a list, as after a restore of the cluster', async () => {
    cluster.has('clientpolicies', policy(2, ['authorization_code']));
    await serving();
    expect(isServed()).toBe(true);
    cluster.has('clientpolicies', policy(2, ['client_credentials']));
    cluster.expire(CLIENT_POLICIES);
    await until('it permits nothing', () => !isServed());
  });

  describe('for a client that refers to a resource', () => {
    const TASKS = 'urn:grantry:ns:api:tasks';
    const SCOPES = [{ name: 'api/read' }, { name: 'api/write' }];
    const LET_IN = [{ namespaces: ['team'] }];

    beforeEach(() => {
      cluster.has('namespaces', namespace('team'), namespace('api'));
      cluster.has('oauthclients', client('web', { resources: [{ namespace: 'api', name: 'tasks' }] }));
    });

    let generation = 1;
    function tasks(spec: object, metadata: object = {}) {
      const given = { namespace: 'api', generation: generation++, ...metadata };
      return cluster.object('ProtectedResource', 'tasks', { metadata: given, spec: { scopes: SCOPES, ...spec } });
    }
    /** What the served client may have of the resource; undefined where that is no audience of it. */
    function access(): readonly string[] | undefined {
      const registry = sync.current;
      const found = registry.find('team.web');
      const given = found && clientAccess(found, registry);
      return given?.audiences.includes(TASKS) ? given.scopesAt(TASKS) : undefined;
    }
    /** The client objects before and after, and the swaps of a change. */
    async function follows(fact: string, change: () => void, isSo: () => boolean) {
      const before = sync.current.find('team.web');
      swaps.splice(0);
      change();
      await until(fact, isSo);
      expect(swaps.map(({ changes }) => changes)).toEqual([[]]);
      expect(sync.current.find('team.web')).toBe(before);
    }

    it('given a grant that comes and goes → the next registry has it so, and validates no client', async () => {
      cluster.has('protectedresources', tasks({}));
      await serving();
      expect(access()).toBeUndefined();
      const grant = (spec: object) => () => cluster.put('protectedresources', tasks(spec));
      await follows('it is granted', grant({ allowedClients: LET_IN }), () => access()?.length === 2);
      await follows('it is withdrawn', grant({}), () => access() === undefined);
    });

    it('given a scope that the owner removes → it is not given any more', async () => {
      cluster.has('protectedresources', tasks({ allowedClients: LET_IN }));
      await serving();
      expect(access()).toEqual(['api/read', 'api/write']);
      const narrowed = tasks({ allowedClients: LET_IN, scopes: SCOPES.slice(0, 1) });
      await follows(
        'it is gone',
        () => cluster.put('protectedresources', narrowed),
        () => access()?.length === 1,
      );
    });

    it('given a resource that is refused for a while → not granted, its restrictions stay, and granted again', async () => {
      const restricted = { allowedClients: LET_IN, tokens: { maxLifetime: '5m', senderConstraint: 'DPoP' } };
      const owned = () => sync.current.resources.ownerOf(TASKS);
      const restrictions = { maxLifetimeSeconds: 300, senderConstraint: 'DPoP' };
      cluster.has('protectedresources', tasks(restricted));
      await serving();
      expect(owned()).toMatchObject(restrictions);
      const refused = tasks({ ...restricted, scopes: [...SCOPES, { name: 'openid' }] });
      await follows(
        'it is refused',
        () => cluster.put('protectedresources', refused),
        () => access() === undefined,
      );
      expect(owned()).toMatchObject(restrictions);
      const mended = tasks(restricted);
      await follows(
        'it is mended',
        () => cluster.put('protectedresources', mended),
        () => access()?.length === 2,
      );
      cluster.put('protectedresources', tasks(restricted, { deletionTimestamp: CREATED }));
      await until('it has no owner', () => owned() === undefined);
    });

    it('given a resource that is deleted → its audience is gone, and the client stays', async () => {
      cluster.has('protectedresources', tasks({ allowedClients: LET_IN }));
      await serving();
      expect(access()).toBeDefined();
      const deleted = tasks({ allowedClients: LET_IN }, { deletionTimestamp: CREATED });
      await follows(
        'it is gone',
        () => cluster.put('protectedresources', deleted),
        () => access() === undefined,
      );
    });

    it('given a label that its namespace gets, and that an entry selects by → granted', async () => {
      const entry = { namespaceSelector: { matchLabels: { tier: 'gold' } } };
      cluster.has('protectedresources', tasks({ allowedClients: [entry] }));
      await serving();
      expect(access()).toBeUndefined();
      cluster.put('namespaces', namespace('team', { tier: 'gold' }));
      await until('it is granted', () => access()?.length === 2);
    });

    it('given another client that changes → the resources are the same', async () => {
      cluster.has('protectedresources', tasks({ allowedClients: LET_IN }));
      await serving();
      const { resources } = sync.current;
      expect(resources.size).toBe(1);
      cluster.put('oauthclients', client('next'));
      await until('it is served', () => sync.current.find('team.next') !== undefined);
      expect(sync.current.resources).toBe(resources);
    });
  });

  describe('for an API that introspects tokens for a resource of its namespace', () => {
    const API = 'https://notes.example/api';

    beforeEach(() => {
      const allow = { grantTypes: ['authorization_code'], scopes: ['openid'], redirectHosts: ['*.example'] };
      const spec = { namespaceSelector: {}, allow: { ...allow, authMethods: ['*'], resources: [API], audiences: [] } };
      cluster.has('clientpolicies', cluster.object('ClientPolicy', 'tenants', { spec }));
      cluster.has('protectedresources');
      cluster.has('oauthclients', client('web'), api());
    });

    /** By keys of its manifest, so that no secret is needed. */
    function api(name = 'api') {
      const auth = { method: 'private_key_jwt', privateKeyJwt: { jwks: { keys: [aKey('ES256').jwk] } } };
      const spec = { auth, grantTypes: [], resourceServer: { audiences: [API] } };
      return cluster.object('OAuthClient', name, { metadata: { namespace: 'team' }, spec });
    }
    function resource(namespace: string, metadata: object = {}, spec: object = {}) {
      const given = { namespace, uid: `uid-${namespace}`, ...metadata };
      return cluster.object('ProtectedResource', 'notes', { metadata: given, spec: { resource: API, ...spec } });
    }
    const isApiServed = () => sync.current.find('team.api') !== undefined;

    it('given the resource later → served in the same swap; given its end → refused in the same swap', async () => {
      await serving();
      expect([isServed(), isApiServed()]).toEqual([true, false]);
      const seen: (readonly [resources: number, isApiServed: boolean])[] = [];
      onSwapped = () => seen.push([sync.current.resources.size, isApiServed()]);
      cluster.put('protectedresources', resource('team'));
      await until('the API is served', isApiServed);
      cluster.put('protectedresources', resource('team', { generation: 2, deletionTimestamp: CREATED }));
      await until('the API is refused', () => !isApiServed());
      expect(seen).toEqual([
        [1, true],
        [0, false],
      ]);
    });

    it('given a resource that is refused and holds its identifier → served until its end', async () => {
      cluster.has('protectedresources', resource('team'));
      await serving();
      const seen: boolean[] = [];
      onSwapped = () => seen.push(isApiServed());
      const refused = { scopes: [{ name: 'openid' }] };
      cluster.put('protectedresources', resource('team', { generation: 2 }, refused));
      await until('it is refused', () => sync.current.resources.find('team', 'notes') === undefined);
      expect(sync.current.resources.ownerOf(API)?.namespace).toBe('team');
      cluster.put('protectedresources', resource('team', { generation: 3, deletionTimestamp: CREATED }, refused));
      await until('the API is refused', () => !isApiServed());
      expect(seen).toEqual([true, false]);
    });

    it('given 60 of them and time to validate one at once → no registry has lost the resource before all are refused', async () => {
      const names = Array.from({ length: 60 }, (_, index) => `api-${index}`);
      cluster.has('oauthclients', client('web'), ...names.map((name) => api(name)));
      cluster.has('protectedresources', resource('team'));
      await serving();
      const served = () => names.filter((name) => sync.current.find(`team.${name}`) !== undefined).length;
      expect(served()).toBe(60);
      const seen: (readonly [resources: number, served: number])[] = [];
      onSwapped = () => seen.push([sync.current.resources.size, served()]);
      let now = performance.now();
      vi.spyOn(performance, 'now').mockImplementation(() => {
        now += 5;
        return now;
      });
      cluster.put('protectedresources', resource('team', { generation: 2, deletionTimestamp: CREATED }));
      await until('all are refused', () => served() === 0);
      expect(seen).toEqual([[0, 0]]);
    });

    it('given a resource of another namespace → refused', async () => {
      cluster.has('namespaces', namespace('team'), namespace('elsewhere'));
      cluster.has('protectedresources', resource('elsewhere'));
      await serving();
      expect([sync.current.resources.size, isServed(), isApiServed()]).toEqual([1, true, false]);
    });
  });

  it('given a policy that permits the identifier of a resource no more → refused; again → accepted', async () => {
    const NOTES_API = 'https://notes.example/api';
    const permitting = (resources: readonly string[], generation: number) => {
      const allow = { grantTypes: ['authorization_code'], scopes: ['openid'], redirectHosts: ['*.example'], resources };
      const metadata = { generation };
      return cluster.object('ClientPolicy', 'tenants', { metadata, spec: { namespaceSelector: {}, allow } });
    };
    const spec = { resource: NOTES_API };
    cluster.has('clientpolicies', permitting([NOTES_API], 1));
    cluster.has(
      'protectedresources',
      cluster.object('ProtectedResource', 'notes', { metadata: { namespace: 'team' }, spec }),
    );
    await serving();
    const isAccepted = () => sync.current.resources.find('team', 'notes') !== undefined;
    expect(isAccepted()).toBe(true);
    cluster.put('clientpolicies', permitting([], 2));
    await until('it is refused', () => !isAccepted());
    cluster.put('clientpolicies', permitting([NOTES_API], 3));
    await until('it is accepted', isAccepted);
  });

  describe('for a client with a secret', () => {
    const MINUTE = 60_000;
    const isMachineServed = () => sync.current.find('team.machine') !== undefined;
    function verifiers(...ends: readonly (number | undefined)[]) {
      const accepted = ends.map((expiresAt, index): AcceptedVerifier => {
        const verifier = new Uint8Array(32).fill(index);
        return { verifier, revision: ends.length - index, ...(expiresAt !== undefined && { expiresAt }) };
      });
      return cluster.object('Secret', verifierSecretName('uid-OAuthClient-machine'), {
        type: VERIFIER_SECRET_TYPE,
        metadata: { namespace: RELEASE, labels: { [PART_LABEL]: 'verifier' } },
        data: verifierSecretData({ revision: ends.length, verifiers: accepted }),
      });
    }
    beforeEach(() => {
      const spec = { grantTypes: ['client_credentials'], scopes: ['team/read'] };
      const machine = cluster.object('OAuthClient', 'machine', { metadata: { namespace: 'team' }, spec });
      cluster.has('oauthclients', client('web'), machine);
    });

    it('given its verifiers later → served; given others → accepts those; given their end → refused', async () => {
      await serving();
      expect(isMachineServed()).toBe(false);
      cluster.put('secrets', verifiers(undefined));
      await until('it is served', isMachineServed);
      cluster.put('secrets', verifiers(undefined, Date.now() + 60 * MINUTE));
      const count = () => sync.current.find('team.machine')?.secretVerifiers.length;
      await until('it has two', () => count() === 2);
      cluster.put('secrets', { ...verifiers(undefined), data: {} });
      await until('it is refused', () => !isMachineServed());
    });

    it('given verifiers whose time comes → dropped one after the other, though no object changes', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
      const passes = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);
      const comes = (fact: string, isSo: () => boolean) =>
        until(fact, async () => {
          await passes(100);
          return isSo();
        });
      const count = () => sync.current.find('team.machine')?.secretVerifiers.length;
      // Whole seconds, as they are stored.
      const start = Math.ceil(Date.now() / 1000) * 1000;
      cluster.has('secrets', verifiers(start + 2 * MINUTE, start + MINUTE));
      sync.start({ onSwap: () => {}, onSecret: () => {}, onUsers: () => {} });
      await comes('it is served', isMachineServed);
      expect(count()).toBe(2);
      await passes(start + MINUTE - Date.now());
      await comes('the older one is dropped', () => count() === 1);
      await passes(start + 2 * MINUTE - Date.now());
      await comes('it is refused', () => !isMachineServed());
    });
  });

  it('given 60 clients that a policy concerns, a new one, and time to validate one at once → served meanwhile, the new one first', async () => {
    const gold = { tier: 'gold' };
    const names = Array.from({ length: 60 }, (_, index) => `web-${index}`);
    cluster.has('namespaces', namespace('team', gold), namespace('elsewhere'));
    cluster.has('clientpolicies', policy(1, ['authorization_code'], { matchLabels: gold }));
    cluster.has('oauthclients', ...names.map((name) => client(name)));
    await serving();
    const served = () => names.filter((name) => sync.current.find(`team.${name}`) !== undefined).length;
    expect([served(), swaps.splice(0).map(({ isFirst }) => isFirst)]).toEqual([60, [true]]);
    const seen: (readonly [isNewServed: boolean, others: number])[] = [];
    onSwapped = () => seen.push([sync.current.find('elsewhere.new') !== undefined, served()]);
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => {
      now += 5;
      return now;
    });
    cluster.put('clientpolicies', policy(2, ['client_credentials'], { matchLabels: gold }));
    cluster.put('oauthclients', changed(client('new'), { namespace: 'elsewhere' }));
    await until('all have a verdict', () => served() === 0);
    expect(seen.length).toBeGreaterThan(1);
    expect(seen.every(([isNewServed]) => isNewServed)).toBe(true);
    expect(swaps.every(({ isFirst }) => !isFirst)).toBe(true);
    // Each from the first change on, until nothing is left.
    expect(swaps.map(({ seconds }) => seconds)).toEqual(swaps.map(({ seconds }) => seconds).toSorted((a, b) => a - b));
    expect(swaps.at(-1)?.seconds).toBeGreaterThan(swaps[0]?.seconds ?? Number.POSITIVE_INFINITY);
  });

  it('given a Secret with users before the first registry and after it → reported from then on', async () => {
    const USERS = 'secrets type=grantry.dev/users';
    const users = () =>
      cluster.object('Secret', 'people', { type: 'grantry.dev/users', metadata: { namespace: RELEASE } });
    let reports = 0;
    onUsers = () => {
      reports++;
    };
    cluster.has(USERS, users());
    await serving();
    expect([reports, [...sync.usersSecrets()].length]).toEqual([0, 1]);
    cluster.put(USERS, { ...users(), data: { 'users.yaml': 'dXNlcnM6IFtdCg==' } });
    await until('it is reported', () => reports === 1);
  });

  it('given a namespace that leaves the policy of its resource → refused; that comes back → accepted', async () => {
    const NOTES_API = 'https://notes.example/api';
    const gold = { tier: 'gold' };
    const allow = { grantTypes: ['authorization_code'], scopes: ['openid'], redirectHosts: ['*.example'] };
    const spec = { namespaceSelector: { matchLabels: gold }, allow: { ...allow, resources: [NOTES_API] } };
    cluster.has('clientpolicies', cluster.object('ClientPolicy', 'tenants', { spec }));
    cluster.has('namespaces', namespace('team', gold));
    cluster.has(
      'protectedresources',
      cluster.object('ProtectedResource', 'notes', { metadata: { namespace: 'team' }, spec: { resource: NOTES_API } }),
    );
    await serving();
    const isAccepted = () => sync.current.resources.find('team', 'notes') !== undefined;
    expect(isAccepted()).toBe(true);
    cluster.put('namespaces', namespace('team'));
    await until('it is refused', () => !isAccepted());
    cluster.put('namespaces', namespace('team', gold));
    await until('it is accepted', isAccepted);
  });

  it('serves no client of a namespace that is not known yet, whatever a policy would make of its labels', async () => {
    cluster.has('namespaces');
    cluster.has(
      'clientpolicies',
      policy(1, ['authorization_code'], { matchExpressions: [{ key: 'restricted', operator: 'DoesNotExist' }] }),
    );
    await serving();
    expect(isServed()).toBe(false);
    expect(sync.servedState('uid-OAuthClient-web')).toEqual({ generation: 1 });
    cluster.put('namespaces', namespace('team'));
    await until('it is served', isServed);
  });
});
