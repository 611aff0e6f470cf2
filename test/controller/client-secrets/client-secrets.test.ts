// A client with a Secret of its owner's own, over objects that only this test changes: what is kept of it where the
// client changes in the very moment in which the Secret is read, and what is said of others with its labels. The rest
// is tested in test/cluster/install/secrets-that-are-read.test.ts and former-secrets.test.ts.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import { fieldsOf } from '../../../src/admission/kinds/manifest.ts';
import { nextVerifier } from '../../../src/controller/client-secrets/credential-changes.ts';
import {
  type CredentialState,
  readCredentialState,
  verifierSecret,
} from '../../../src/controller/client-secrets/credential-state.ts';
import { ClientController } from '../../../src/controller/clients/client-controller.ts';
import type { Observation } from '../../../src/controller/replicas/observed-replicas.ts';
import { FIELD_MANAGER, KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import {
  CLIENT_POLICIES,
  CONFIG_MAPS,
  type KubernetesObject,
  NAMESPACES,
  OAUTH_CLIENTS,
  objectKey,
  type Resource,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '../../../src/kubernetes/objects/resources.ts';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const HOUR = 3_600_000;
const RELEASE = 'grantry-system';
const TEAM = 'team';
const MACHINE = { grantTypes: ['client_credentials'], scopes: [`${TEAM}/read`] };
const FOLLOWS = { ...MACHINE, auth: { clientSecret: { source: 'Existing', secretName: 'mine' } } };
const PERSON = { grantTypes: ['authorization_code'], redirectUris: ['https://app.example/back'] };

function refusal(reason: string, resource: Resource): KubernetesError {
  return new KubernetesError({ status: 409, reason, verb: 'write', resource, user: 'grantry' });
}

class Install {
  readonly clients = new PlayedObjects(OAUTH_CLIENTS);
  readonly policies = new PlayedObjects(CLIENT_POLICIES);
  readonly namespaces = new PlayedObjects(NAMESPACES);
  readonly secrets = new PlayedObjects(SECRETS);
  readonly configMaps = new PlayedObjects(CONFIG_MAPS);
  readonly serviceAccounts = new PlayedObjects(SERVICE_ACCOUNTS);
  readonly releaseSecrets = new PlayedObjects(SECRETS);
  readonly errors: string[] = [];
  /** The reasons of the Events. */
  readonly said: string[] = [];
  /** Each write of a verifier Secret: a deletion, or which verifiers it has, and which of them only for a time. */
  readonly kept: string[] = [];
  /** What happens once, while the owner's Secret is read. */
  whileRead: (() => void) | undefined;
  /** What happens while a verifier Secret is read. */
  whileVerifiersRead = () => {};
  /** The client as the API server has it, where the watch of clients is behind. */
  present: KubernetesObject | undefined;
  /** Where the watch of the release namespace stands still; undefined: it follows. */
  watched: readonly KubernetesObject[] | undefined;
  /** What happens once, while a verifier Secret is on its way to the API server. */
  onItsWay: (() => void) | undefined;
  /** The Secrets of the team that were written. */
  readonly written: string[] = [];
  /** The Secrets of the team that were read. */
  readonly reads: string[] = [];
  looks = 0;
  observation: Observation = { outcome: 'NoReplicas' };
  #controller: ClientController | undefined;

  constructor() {
    this.namespaces.put({ metadata: { name: TEAM } });
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const data = { 'client-secret': base64('s'.repeat(40)), 'client-id': base64('team.web') };
    this.secrets.put({ metadata: { namespace: TEAM, name: 'mine' }, data });
    this.declare(FOLLOWS);
  }

  declare(spec: object): void {
    const before = this.clients.get(`${TEAM}/web`)?.metadata.generation ?? 0;
    this.clients.put({ metadata: { namespace: TEAM, name: 'web', generation: before + 1 }, spec });
  }

  /** Begins to lead after the leader before: what that one had read is read again. */
  async lead(): Promise<void> {
    await this.#controller?.stop();
    const { clients, policies, namespaces, secrets, configMaps, serviceAccounts } = this;
    this.#controller = new ClientController({
      api: leaderOver({
        ...UNPLAYED,
        get: async (resource, at) => {
          const found = this.#of(resource, at.namespace).get(objectKey(at));
          if (resource.kind === OAUTH_CLIENTS.kind) return this.present ?? found;
          if (resource.kind === SECRETS.kind && at.namespace === RELEASE) this.whileVerifiersRead();
          if (resource.kind !== SECRETS.kind || at.namespace !== TEAM) return found;
          this.reads.push(at.name);
          const happens = this.whileRead;
          this.whileRead = undefined;
          happens?.();
          return found;
        },
        create: async (resource, object) => {
          if (this.#of(resource, object.metadata.namespace).get(objectKey(object.metadata)) !== undefined) {
            throw refusal('AlreadyExists', resource);
          }
          return await this.#arrived(resource, object);
        },
        apply: (resource, object) => this.#arrived(resource, object),
        delete: async (resource, at) => {
          const { uid, resourceVersion } = this.#of(resource, at.namespace).get(objectKey(at))?.metadata ?? {};
          if (uid !== undefined && (uid !== at.uid || (at.resourceVersion ?? resourceVersion) !== resourceVersion)) {
            return 'changed';
          }
          if (at.namespace === RELEASE) this.kept.push('deleted');
          this.#of(resource, at.namespace).delete(objectKey(at));
          return 'deleted';
        },
      }),
      sources: {
        clients,
        policies,
        namespaces,
        secrets,
        configMaps,
        serviceAccounts,
        releaseSecrets: this.#listed,
      },
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
      observed: { observe: async () => this.observation },
      record: ({ reason }) => void this.said.push(reason),
      clock: { now: Date.now },
      random: systemRandom,
      log: { error: (line: object) => void this.errors.push(JSON.stringify(line)) },
      metrics: {
        reconciled: () => {
          this.looks += 1;
        },
      },
    });
    this.#controller.start();
    await vi.advanceTimersByTimeAsync(1000);
  }

  /** The watch of the release namespace, which is one by label. */
  get #listed() {
    const all = this.releaseSecrets;
    const isListed = (object: KubernetesObject) => object.metadata.labels?.['grantry.dev/part'] !== undefined;
    const objects = () => this.watched ?? all.objects().filter(isListed);
    return {
      get: (key: string) => objects().find(({ metadata }) => objectKey(metadata) === key),
      objects,
      listen: (listener: Parameters<PlayedObjects['listen']>[0]) => all.listen(listener),
    };
  }

  /** The API server names the controller as the manager of what is in a Secret. */
  namesItsManager(name: string): void {
    const managedFields = [{ manager: FIELD_MANAGER, fieldsV1: { 'f:data': { 'f:client-secret': {} } } }];
    const metadata = { namespace: TEAM, name, managedFields };
    this.secrets.put({ metadata });
  }

  async stop(): Promise<void> {
    await this.#controller?.stop();
  }

  /** What is kept of the client. */
  get stored(): CredentialState {
    const state = this.#state;
    if (state === undefined) throw new Error('nothing is kept');
    return state;
  }

  get #state(): CredentialState | undefined {
    return readCredentialState(this.releaseSecrets.get(`${RELEASE}/${verifierSecretName('uid-web')}`));
  }

  /** The revisions that are accepted, `~` where only for a time; undefined where nothing is kept at all. */
  get accepted(): readonly string[] | undefined {
    return this.#state?.verifiers.map(({ revision, expiresAt }) => `${revision}${expiresAt ? '~' : ''}`);
  }

  /** The write arrives later than it is sent: what happens meanwhile is observed before. */
  async #arrived(resource: Resource, object: Parameters<PlayedObjects['put']>[0]) {
    const happens = object.metadata.namespace === RELEASE ? this.onItsWay : undefined;
    if (happens !== undefined) {
      this.onItsWay = undefined;
      happens();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const { resourceVersion } = object.metadata;
    const present = this.#of(resource, object.metadata.namespace).get(objectKey(object.metadata));
    if (resourceVersion !== undefined && present?.metadata.resourceVersion !== resourceVersion) {
      throw refusal('Conflict', resource);
    }
    return this.#put(resource, object);
  }

  #put(resource: Resource, object: Parameters<PlayedObjects['put']>[0]) {
    const put = this.#of(resource, object.metadata.namespace).put(object);
    if (object.metadata.namespace === RELEASE) this.kept.push(this.accepted?.join(' ') ?? 'unreadable');
    else if (resource.kind === SECRETS.kind) this.written.push(object.metadata.name);
    return put;
  }

  #of({ kind }: Resource, namespace: string | undefined): PlayedObjects {
    if (kind !== SECRETS.kind) return this.clients;
    return namespace === RELEASE ? this.releaseSecrets : this.secrets;
  }
}

let install: Install;
beforeEach(async () => {
  const toFake = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'] as const;
  vi.useFakeTimers({ toFake: [...toFake] });
  install = new Install();
  await install.lead();
  expect(install.kept).toEqual(['1']);
});
afterEach(async () => {
  await install.stop();
  vi.useRealTimers();
});

it.each([
  [
    'gets a secret of its own: what it had works on for its grace',
    () => install.declare(MACHINE),
    { writes: ['2 1', '2 1~'], accepted: ['2', '1~'] },
  ],
  [
    'is refused: what it had it keeps',
    () => install.declare({ ...FOLLOWS, scopes: ['other/read'] }),
    { writes: [], accepted: ['1'] },
  ],
  [
    'goes without: nothing is kept, and nothing empty is written before',
    () => install.declare({ ...MACHINE, ...PERSON, auth: { method: 'none' } }),
    { writes: ['deleted'], accepted: undefined },
  ],
  [
    'is deleted: nothing is kept',
    () => install.clients.delete(`${TEAM}/web`),
    { writes: ['deleted'], accepted: undefined },
  ],
])('a client that, while the Secret of its owner is read, %s', async (_, happens, { writes, accepted }) => {
  install.whileRead = happens;
  await install.lead();
  expect(install.whileRead).toBeUndefined();
  expect([install.kept.slice(1), install.accepted, install.errors]).toEqual([writes, accepted, []]);
});

it.each([
  ['the Secret of its owner', FOLLOWS],
  ['the Secret that is made for it', MACHINE],
])('a client whose verifiers go while %s is read gets them again', async (_, spec) => {
  install.declare(spec);
  await vi.advanceTimersByTimeAsync(1000);
  install.whileRead = () => install.releaseSecrets.delete(`${RELEASE}/${verifierSecretName('uid-web')}`);
  await install.lead();
  expect([install.whileRead, install.accepted, install.errors]).toEqual([undefined, ['1'], []]);
});

it.each([
  ['the Secret of its owner', FOLLOWS],
  ['the Secret that is made for it', MACHINE],
])(
  'verifiers of %s that lost their labels, so that no watch lists them → labelled again, and the same',
  async (_, spec) => {
    install.declare(spec);
    await vi.advanceTimersByTimeAsync(1000);
    await install.stop();
    const { accepted } = install;
    const place = { namespace: RELEASE, name: verifierSecretName('uid-web') };
    install.releaseSecrets.put({ metadata: { ...place, labels: {} } });
    install.written.length = 0;
    await install.lead();
    expect(install.releaseSecrets.get(objectKey(place))?.metadata.labels).toMatchObject({
      'grantry.dev/part': 'verifier',
    });
    expect([install.accepted, install.written, install.errors]).toEqual([accepted, [], []]);
  },
);

it('a client that is deleted while its verifiers are read → nothing is written, and nothing is a failure', async () => {
  await install.stop();
  install.kept.length = install.written.length = 0;
  install.whileVerifiersRead = () => install.clients.delete(`${TEAM}/web`);
  await install.lead();
  expect([install.accepted, install.kept, install.written, install.errors]).toEqual([undefined, ['deleted'], [], []]);
});

it('given a watch that is behind what a former leader stored → a rotation goes on from what is stored', async () => {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(1000);
  await install.stop();
  install.watched = install.releaseSecrets.objects();
  const { stored } = install;
  const owner = { namespace: TEAM, name: 'web', uid: 'uid-web' };
  const state = { ...stored, revision: stored.revision + 1 };
  const shared = { releaseNamespace: RELEASE, className: 'default' };
  install.releaseSecrets.put(verifierSecret(owner, state, shared, ['web-oauth']));
  const annotations = { 'grantry.dev/rotate-now': 'now' };
  install.clients.put({ metadata: { namespace: TEAM, name: 'web', annotations } });
  await install.lead();
  expect([install.stored.handled.rotateNow, install.errors]).toEqual(['now', []]);
});

it('a secret whose verifier a former leader stored while the Secret was read is accepted', async () => {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(1000);
  const owner = { namespace: TEAM, name: 'web', uid: 'uid-web' };
  const late = nextVerifier(owner.uid, 'of who led before', install.stored.verifiers);
  install.whileRead = () => {
    const { stored } = install;
    const verifiers = [late, ...stored.verifiers];
    const state = { ...stored, revision: stored.revision + 1, verifiers };
    install.releaseSecrets.put(verifierSecret(owner, state, { releaseNamespace: RELEASE, className: 'default' }));
  };
  const annotations = { 'grantry.dev/rotate-requested-at': 'now' };
  install.clients.put({ metadata: { namespace: TEAM, name: 'web', annotations } });
  await vi.advanceTimersByTimeAsync(1000);
  expect([install.whileRead, install.errors]).toEqual([undefined, []]);
  expect(install.stored.verifiers).toContainEqual({ ...late, expiresAt: expect.any(Number) });
});

it('a client that is deleted while the Secret of its owner is read for the first time leaves nothing behind', async () => {
  install.releaseSecrets.delete(`${RELEASE}/${verifierSecretName('uid-web')}`);
  install.whileRead = () => install.clients.delete(`${TEAM}/web`);
  await install.lead();
  expect([install.kept.slice(1), install.accepted, install.errors]).toEqual([[], undefined, []]);
});

it('a client without verifiers that is deleted while its Secret is read → no verifier Secret, and no Secret is written', async () => {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(1000);
  await install.stop();
  install.releaseSecrets.delete(`${RELEASE}/${verifierSecretName('uid-web')}`);
  install.kept.length = install.written.length = 0;
  install.whileRead = () => install.clients.delete(`${TEAM}/web`);
  await install.lead();
  expect([install.whileRead, install.kept, install.written, install.errors]).toEqual([undefined, [], [], []]);
});

it('a client that is deleted while its first verifier is on its way → the verifier Secret is removed, and no Secret is written', async () => {
  await install.lead();
  install.onItsWay = () => install.clients.delete(`${TEAM}/first`);
  install.clients.put({ metadata: { namespace: TEAM, name: 'first' }, spec: MACHINE });
  await vi.advanceTimersByTimeAsync(1000);
  const verifier = install.releaseSecrets.get(`${RELEASE}/${verifierSecretName('uid-first')}`);
  expect([install.onItsWay, verifier, install.written, install.errors]).toEqual([undefined, undefined, [], []]);
});

it('a client whose Secret is not there has nothing that works', async () => {
  install.secrets.delete(`${TEAM}/mine`);
  await vi.advanceTimersByTimeAsync(1000);
  expect([install.kept.slice(1), install.accepted]).toEqual([['deleted'], undefined]);
});

it('a Secret that only has the labels of the client → no reconcile, no read and no Event', async () => {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(1000);
  install.namesItsManager('web-oauth');
  await vi.advanceTimersByTimeAsync(1000);
  const { looks } = install;
  const labels = { 'grantry.dev/client': 'web', 'grantry.dev/client-uid': 'uid-web' };
  install.secrets.put({ metadata: { namespace: TEAM, name: 'theirs', labels } });
  install.secrets.put({ metadata: { namespace: 'other', name: 'web-oauth', labels } });
  await vi.advanceTimersByTimeAsync(0);
  expect(install.looks).toBe(looks);
  install.declare({ ...MACHINE, auth: { clientSecret: { secretName: 'renamed' } } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(install.looks).toBeGreaterThan(looks);
  expect([install.reads.filter((name) => name === 'theirs'), install.said.includes('SecretLeftAlone')]).toEqual([
    [],
    false,
  ]);
  expect(install.secrets.get(`${TEAM}/theirs`)).toBeDefined();
});

it('a Secret of another writer under the former name of the client → reported once, and left alone', async () => {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(1000);
  // No field manager is named: the Secret is not what the controller wrote.
  for (const secretName of ['renamed', 'renamed-again']) {
    install.declare({ ...MACHINE, auth: { clientSecret: { secretName } } });
    await vi.advanceTimersByTimeAsync(1000);
  }
  install.declare({ ...MACHINE, displayName: 'Changed', auth: { clientSecret: { secretName: 'renamed-again' } } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(install.said.filter((reason) => reason === 'SecretLeftAlone')).toHaveLength(2);
  expect(['web-oauth', 'renamed'].map((name) => install.secrets.get(`${TEAM}/${name}`))).not.toContain(undefined);
});

it('a client with many former Secrets in their grace → at most eight reads of Secrets in a reconcile, and those written down go after it', async () => {
  const reads: number[] = [];
  const names = Array.from({ length: 12 }, (_, index) => `name-${index}`);
  for (const secretName of names) {
    const before = install.reads.length;
    install.declare({ ...MACHINE, auth: { clientSecret: { secretName } } });
    // Names that come quicker are served ever less often.
    await vi.advanceTimersByTimeAsync(HOUR / 2);
    install.namesItsManager(secretName);
    reads.push(install.reads.length - before);
  }
  expect([reads[2], Math.max(...reads), install.errors]).toEqual([3, 8, []]);
  await vi.advanceTimersByTimeAsync(25 * HOUR);
  const left = names.filter((name) => install.secrets.get(`${TEAM}/${name}`) !== undefined);
  // Eight names are written down.
  expect([left, install.errors]).toEqual([[...names.slice(0, 4), 'name-11'], []]);
});

/** A client with a generated secret whose grace of the one before is over, and which gives another name then. */
async function renamed(clientSecret: object): Promise<void> {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(25 * HOUR);
  install.namesItsManager('web-oauth');
  install.declare({ ...MACHINE, auth: { clientSecret } });
}

function valueIn(name: string): unknown {
  return fieldsOf(install.secrets.get(`${TEAM}/${name}`)?.data)['client-secret'];
}

it('a name that is taken, also in the moment in which it is written → ends nothing, until the secret in force is gone', async () => {
  await renamed({ secretName: 'taken' });
  install.whileRead = () => install.secrets.put({ metadata: { namespace: TEAM, name: 'taken' } });
  await vi.advanceTimersByTimeAsync(120_000);
  expect([install.whileRead, install.said.at(-1), install.accepted]).toEqual([undefined, 'SecretNotOwned', ['3', '2']]);
  install.secrets.delete(`${TEAM}/web-oauth`);
  await vi.advanceTimersByTimeAsync(1000);
  expect([install.accepted, install.errors]).toEqual([['3~', '2~'], []]);
});

it('a cut beside a Secret of another owner, which the watch alone still has → requeued, and what is accepted stays', async () => {
  await renamed({ secretName: 'taken' });
  install.secrets.put({ metadata: { namespace: TEAM, name: 'taken' } });
  await vi.advanceTimersByTimeAsync(1000);
  const { accepted, looks } = install;
  const requested = (rotateNow: string) => ({
    metadata: { namespace: TEAM, name: 'web', annotations: { 'grantry.dev/rotate-now': rotateNow } },
  });
  const cached = install.clients.get(`${TEAM}/web`) as KubernetesObject;
  const { annotations } = requested('later').metadata;
  install.present = { ...cached, metadata: { ...cached.metadata, annotations } };
  install.clients.put(requested('earlier'));
  await vi.advanceTimersByTimeAsync(2000);
  expect(install.looks - looks).toBeGreaterThan(2);
  expect([install.accepted, install.errors]).toEqual([accepted, []]);
  install.present = undefined;
  install.clients.put(requested('later'));
  await vi.advanceTimersByTimeAsync(1000);
  expect([install.stored.handled.rotateNow, install.errors]).toEqual(['later', []]);
});

it.each([
  ['another writer takes over after it was read → stays', { labels: {} }, true],
  ['gets an annotation after it was read → is removed by the next reconcile', { annotations: { note: 'n' } }, false],
])('a former Secret that %s', async (_, changed, stays) => {
  await renamed({ secretName: 'other' });
  await vi.advanceTimersByTimeAsync(HOUR);
  install.namesItsManager('other');
  await vi.advanceTimersByTimeAsync(22 * HOUR);
  expect(install.accepted).toEqual(['3', '2~']);
  // First the Secret that the client names is read, then the former one.
  install.whileRead = () => {
    install.whileRead = () => install.secrets.put({ metadata: { namespace: TEAM, name: 'web-oauth', ...changed } });
  };
  await vi.advanceTimersByTimeAsync(2 * HOUR);
  expect([install.whileRead, install.accepted, install.errors]).toEqual([undefined, ['3'], []]);
  expect(install.secrets.get(`${TEAM}/web-oauth`) !== undefined).toBe(stays);
  expect(install.said).not.toContain('SecretLeftAlone');
});

it('a former name that is given again before the other one is recorded as written → each Secret has a value of its own', async () => {
  await renamed({ secretName: 'other' });
  const verifiers = { namespace: RELEASE, name: verifierSecretName('uid-web') };
  install.onItsWay = () => {
    install.onItsWay = () => {
      install.namesItsManager('other');
      install.declare(MACHINE);
      install.releaseSecrets.put({ metadata: verifiers });
    };
  };
  await vi.advanceTimersByTimeAsync(5000);
  expect(install.onItsWay).toBeUndefined();
  expect(valueIn('other')).not.toBe(valueIn('web-oauth'));
  await vi.advanceTimersByTimeAsync(25 * HOUR);
  expect([install.secrets.get(`${TEAM}/other`), install.accepted, install.errors]).toEqual([undefined, ['4'], []]);
});

it('a former Secret of a client that retains it → stays when its value is not accepted any more', async () => {
  await renamed({ secretName: 'other', deletionPolicy: 'Retain' });
  await vi.advanceTimersByTimeAsync(50 * HOUR);
  expect([install.accepted, valueIn('web-oauth'), install.errors]).toEqual([['3'], expect.any(String), []]);
});

it('a write of a former Secret that arrives in the grace → the Secret is removed after it', async () => {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(25 * HOUR);
  install.namesItsManager('web-oauth');
  const late = install.secrets.get(`${TEAM}/web-oauth`);
  install.secrets.delete(`${TEAM}/web-oauth`);
  install.declare({ ...MACHINE, auth: { clientSecret: { secretName: 'other' } } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(install.accepted).toEqual(['3', '2~']);
  if (late !== undefined) install.secrets.put(late);
  await vi.advanceTimersByTimeAsync(HOUR);
  expect(install.secrets.get(`${TEAM}/web-oauth`)).toBeDefined();
  await vi.advanceTimersByTimeAsync(24 * HOUR);
  expect([install.secrets.get(`${TEAM}/web-oauth`), install.accepted, install.errors]).toEqual([undefined, ['3'], []]);
});

it('a former Secret with another text under the key that the client names now → stays for its grace', async () => {
  const text = Buffer.from('r'.repeat(40)).toString('base64');
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(1000);
  const data = install.secrets.get(`${TEAM}/web-oauth`)?.data;
  install.secrets.put({ metadata: { namespace: TEAM, name: 'web-oauth' }, data: { ...fieldsOf(data), cookie: text } });
  await renamed({ secretName: 'other', keys: { clientSecret: 'cookie' } });
  await vi.advanceTimersByTimeAsync(1000);
  expect([valueIn('web-oauth'), install.accepted]).toEqual([expect.any(String), ['3', '2~']]);
});

it('a client that goes on to a Secret of its owner which is not there → the former Secret is removed once it is', async () => {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(1000);
  install.namesItsManager('web-oauth');
  install.declare({ ...MACHINE, auth: { clientSecret: { source: 'Existing', secretName: 'missing' } } });
  await install.lead();
  expect([install.accepted, install.secrets.get(`${TEAM}/web-oauth`) === undefined]).toEqual([undefined, false]);
  install.secrets.put({
    metadata: { namespace: TEAM, name: 'missing' },
    data: install.secrets.get(`${TEAM}/mine`)?.data,
  });
  await install.lead();
  expect([install.accepted, install.secrets.get(`${TEAM}/web-oauth`), install.errors]).toEqual([['1'], undefined, []]);
});

it('a staged secret that another writer removes again and again → made again a few times, and then ever less often', async () => {
  install.declare(MACHINE);
  await vi.advanceTimersByTimeAsync(1000);
  const state = { clients: new Map(), resources: new Map(), keyIds: new Set<string>() };
  install.observation = { outcome: 'Observed', replicas: [{ name: 'behind', state }] };
  install.kept.length = 0;
  const annotations = { 'grantry.dev/rotate-requested-at': 'now' };
  install.clients.put({ metadata: { namespace: TEAM, name: 'web', annotations } });
  const perTry: number[] = [];
  // The first repair was that of the Secret of its owner.
  for (let index = 0; index < 8; index++) {
    await vi.advanceTimersByTimeAsync(1000);
    perTry.push(install.kept.splice(0).length);
    const { metadata, data } = install.secrets.get(`${TEAM}/web-oauth`) as KubernetesObject;
    const { 'client-secret.next': _, ...rest } = fieldsOf(data);
    install.secrets.put({ metadata, data: rest });
  }
  expect([perTry, install.errors]).toEqual([[1, 1, 1, 0, 0, 0, 0, 0], []]);
  expect(install.said).toContain('SecretContested');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(install.kept).toHaveLength(1);
});
