// A client with a Secret of its owner's own, over objects that only this test changes: what is kept of it where the
// client changes in the very moment in which the Secret is read, and what is said of others with its labels. The rest
// is tested in test/cluster/install/secrets-that-are-read.test.ts and former-secrets.test.ts.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import { nextVerifier } from '../../../src/controller/client-secrets/credential-changes.ts';
import {
  type CredentialState,
  readCredentialState,
  verifierSecret,
} from '../../../src/controller/client-secrets/credential-state.ts';
import { ClientController } from '../../../src/controller/clients/client-controller.ts';
import {
  CLIENT_POLICIES,
  NAMESPACES,
  OAUTH_CLIENTS,
  objectKey,
  type Resource,
  SECRETS,
} from '../../../src/kubernetes/objects/resources.ts';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { leaderOver } from '../leader.ts';

const RELEASE = 'grantry-system';
const TEAM = 'team';
const MACHINE = { grantTypes: ['client_credentials'], scopes: [`${TEAM}/read`] };
const FOLLOWS = { ...MACHINE, auth: { clientSecret: { source: 'Existing', secretName: 'mine' } } };
const PERSON = { grantTypes: ['authorization_code'], redirectUris: ['https://app.example/back'] };

class Install {
  readonly clients = new PlayedObjects(OAUTH_CLIENTS);
  readonly policies = new PlayedObjects(CLIENT_POLICIES);
  readonly namespaces = new PlayedObjects(NAMESPACES);
  readonly secrets = new PlayedObjects(SECRETS);
  readonly releaseSecrets = new PlayedObjects(SECRETS);
  readonly errors: string[] = [];
  /** The reasons of the Events. */
  readonly said: string[] = [];
  /** Each write of a verifier Secret: a deletion, or which verifiers it has, and which of them only for a time. */
  readonly kept: string[] = [];
  /** What happens once, while the owner's Secret is read. */
  whileRead: (() => void) | undefined;
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
    const { clients, policies, namespaces, secrets, releaseSecrets } = this;
    this.#controller = new ClientController({
      api: leaderOver({
        get: async (resource, at) => {
          const found = this.#of(resource, at.namespace).get(objectKey(at));
          const happens = resource.kind === SECRETS.kind ? this.whileRead : undefined;
          if (happens !== undefined) this.whileRead = undefined;
          happens?.();
          return found;
        },
        create: async (resource, object) => this.#put(resource, object),
        apply: async (resource, object) => this.#put(resource, object),
        delete: async (resource, at) => {
          if (at.namespace === RELEASE) this.kept.push('deleted');
          this.#of(resource, at.namespace).delete(objectKey(at));
          return 'deleted';
        },
      }),
      sources: { clients, policies, namespaces, secrets, releaseSecrets },
      install: {
        issuer: 'https://id.example',
        className: 'default',
        releaseNamespace: RELEASE,
        defaultPolicy: 'Baseline',
        watchNamespaces: undefined,
      },
      replicas: { find: () => [], ask: async () => undefined },
      observed: { observe: async () => ({ outcome: 'NoReplicas' }) },
      record: ({ reason }) => void this.said.push(reason),
      clock: { now: Date.now },
      random: systemRandom,
      log: { error: (line: object) => void this.errors.push(JSON.stringify(line)) },
      metrics: { reconciled: () => {} },
    });
    this.#controller.start();
    await vi.advanceTimersByTimeAsync(1000);
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

  #put(resource: Resource, object: Parameters<PlayedObjects['put']>[0]) {
    const put = this.#of(resource, object.metadata.namespace).put(object);
    if (object.metadata.namespace === RELEASE) this.kept.push(this.accepted?.join(' ') ?? 'unreadable');
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
    // Once more when it is handed out.
    { writes: ['2 1~', '2 1~'], accepted: ['2', '1~'] },
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

it('a client whose Secret is not there has nothing that works', async () => {
  install.secrets.delete(`${TEAM}/mine`);
  await vi.advanceTimersByTimeAsync(1000);
  expect([install.kept.slice(1), install.accepted]).toEqual([['deleted'], undefined]);
});

it('a Secret that got the labels of the client is reported once, and again when it gets them again', async () => {
  const labelled = { 'grantry.dev/client': 'web', 'grantry.dev/client-uid': 'uid-web' };
  const told: number[] = [];
  for (const [index, labels] of [labelled, labelled, {}, labelled].entries()) {
    install.secrets.put({ metadata: { namespace: TEAM, name: 'theirs', labels } });
    install.declare({ ...FOLLOWS, displayName: `At ${index}` });
    await vi.advanceTimersByTimeAsync(1000);
    told.push(install.said.filter((reason) => reason === 'SecretLeftAlone').length);
  }
  expect(told).toEqual([1, 1, 1, 2]);
});
