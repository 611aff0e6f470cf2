// The keys of an install against a real API server, with the rights of its controller: made, published, activated, retired
// and removed by a clock that the test moves. A moved clock comes with a new leader, which knows only what is stored.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventFacts } from '../../../src/controller/reconciling/events.ts';
import type { Observation } from '../../../src/controller/replicas/observed-replicas.ts';
import { KeyController } from '../../../src/controller/signing-keys/key-controller.ts';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';
import { SECRETS, SIGNING_KEYS } from '../../../src/kubernetes/objects/resources.ts';
import { SharedReflector } from '../../../src/kubernetes/watch/shared-reflector.ts';
import { generateSigningKeyPem, importSigningKey } from '../../../src/oauth/registry/keys.ts';
import { systemClock, systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { leaderOver, UNPLAYED } from '../../controller/leader.ts';
import { until } from '../../until.ts';
import { install } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const HOUR = 3_600_000;
const cluster = sharedCluster();
const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const noMetrics = { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {}, reconciled: () => {} };

/** The controller of one install, from one leader to the next. */
class Leaders {
  readonly namespace: string;
  readonly events: EventFacts[] = [];
  readonly errors: string[] = [];
  /** What the replicas serve; undefined: their addresses are unknown. */
  replicas: Readonly<Record<string, readonly string[]>> | undefined;
  #offset = 0;
  readonly #client: ApiClient;
  #stop: (() => Promise<void>) | undefined;

  private constructor(namespace: string, kubeconfig: string) {
    this.namespace = namespace;
    const access = kubeconfigAccess({ files: [kubeconfig], clock: systemClock });
    this.#client = new ApiClient({ access, userAgent: 'grantry/test' });
  }

  static async install(): Promise<Leaders> {
    const { namespace, controllerToken } = await install(cluster);
    return new Leaders(namespace, cluster.kubeconfig({ token: controllerToken }));
  }

  now = () => Date.now() + this.#offset;

  async lead(): Promise<this> {
    const clock = { now: this.now };
    const watched = { api: this.#client, clock, random: systemRandom, log: quiet, metrics: noMetrics };
    const namespaces = [this.namespace];
    const signingKeys = new SharedReflector({ ...watched, resource: SIGNING_KEYS, namespaces });
    const labelSelector = 'grantry.dev/part';
    const releaseSecrets = new SharedReflector({ ...watched, resource: SECRETS, namespaces, labelSelector });
    const sources = { signingKeys, releaseSecrets };
    for (const source of Object.values(sources)) source.start();
    await Promise.all(Object.values(sources).map((source) => source.whenSynced()));
    const api = leaderOver({
      ...UNPLAYED,
      get: (...at) => this.#client.get(...at),
      create: (...object) => this.#client.create(...object),
      apply: (...object) => this.#client.apply(...object),
      delete: (...at) => this.#client.delete(...at),
    });
    const controller = new KeyController({
      api,
      reader: this.#client,
      sources,
      releaseNamespace: this.namespace,
      clock,
      metrics: noMetrics,
      observed: { observe: async () => this.#observation() },
      record: (event) => void this.events.push(event),
      log: {
        error: (line: { err?: Error; fault?: string }) => void this.errors.push(line.err?.message ?? line.fault ?? ''),
      },
    });
    controller.start();
    this.#stop = async () => {
      await controller.stop();
      await Promise.all(Object.values(sources).map((source) => source.stop()));
    };
    return this;
  }

  /** The leader ends what is begun, and no controller leads. */
  async abdicate(): Promise<void> {
    await this.#stop?.();
    this.#stop = undefined;
  }

  /** Time passes, and another process leads. */
  async pass(milliseconds: number): Promise<void> {
    await this.abdicate();
    this.#offset += milliseconds;
    await this.lead();
  }

  async end(): Promise<void> {
    await this.abdicate();
    this.#client.close();
  }

  #observation(): Observation {
    if (this.replicas === undefined) return { outcome: 'NotObserved' };
    const replicas = Object.entries(this.replicas).map(([name, keyIds]) => ({
      name,
      state: { clients: new Map(), resources: new Map(), keyIds: new Set(keyIds) },
    }));
    return { outcome: 'Observed', replicas };
  }
}

describe('the signing keys of an install', () => {
  let leaders: Leaders;
  beforeEach(async () => {
    leaders = await Leaders.install();
  });
  afterEach(async () => {
    await leaders.end();
    expect(leaders.errors).toEqual([]);
  });

  const path = (name = 'default') => `/apis/grantry.dev/v1alpha1/namespaces/${leaders.namespace}/signingkeys/${name}`;
  const manifest = (name: string, spec: object, annotations: object = {}) => ({
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'SigningKey',
    metadata: { name, namespace: leaders.namespace, annotations },
    spec,
  });
  const status = async (name = 'default') => (await cluster.call('GET', path(name))).body.status ?? {};
  const states = async (name = 'default'): Promise<readonly string[]> =>
    ((await status(name)).keys ?? []).map(({ state }: { state: string }) => state);
  const condition = async (type: string, name = 'default') =>
    (await status(name)).conditions?.find((each: { type: string }) => each.type === type) ?? {};
  const secretsThat = async (isOf: (ring: string) => boolean) => {
    const all = await cluster.call('GET', `/api/v1/namespaces/${leaders.namespace}/secrets`);
    return all.body.items.filter(
      ({ type, metadata }: { type: string; metadata: { labels?: Record<string, string> } }) =>
        type === 'grantry.dev/signing-key' && isOf(metadata.labels?.['grantry.dev/signing-key'] ?? ''),
    );
  };
  const secretsOf = (name: string) => secretsThat((ring) => ring === name);
  /** Without those of `default-rs256`, which most installs of this file have as well. */
  const secrets = () => secretsThat((ring) => ring !== 'default-rs256');
  const untilStates = (name: string, ...expected: string[]) =>
    until(`${name}: ${expected}`, async () => String(await states(name)) === String(expected));

  it('begin with a ring of its own where there is none, ready at once', async () => {
    await leaders.lead();
    const { code, errors } = await cluster.kubectl([
      ...['-n', leaders.namespace, 'wait', '--for=condition=Ready', '--timeout=20s', 'signingkey/default'],
    ]);
    // kubectl wait fails for what is not there yet.
    if (code !== 0) await until(errors, async () => (await condition('Ready')).status === 'True');
    const { activeKeyId, keys } = await status();
    const [secret] = await secretsOf('default');
    expect(await secretsOf('default')).toHaveLength(1);
    expect(secret).toMatchObject({
      immutable: true,
      metadata: {
        name: keys[0].secretName,
        labels: { 'grantry.dev/part': 'signing-key', 'grantry.dev/key-state': 'Active' },
        annotations: { 'grantry.dev/key-id': activeKeyId },
      },
    });
    expect(secret.metadata.ownerReferences).toBeUndefined();
    const pem = Buffer.from(secret.data['private-key.pem'], 'base64').toString();
    expect((await importSigningKey(pem, 'ES256', 'Active')).kid).toBe(activeKeyId);
    expect((await condition('KeyMaterialReady')).reason).toBe('KeyGenerated');
    await untilStates('default-rs256', 'Active');
    expect(leaders.events.map(({ reason }) => reason)).toEqual(['KeyActivated', 'KeyActivated']);
  });

  it('begin with a key of RS256 beside one of another algorithm, which is made again when it is deleted', async () => {
    await cluster.apply(manifest('corp', { algorithm: 'EdDSA' }));
    await leaders.lead();
    await untilStates('corp', 'Active');
    await untilStates('default-rs256', 'Active');
    const made = (await cluster.call('GET', path('default-rs256'))).body;
    expect(made.spec).toMatchObject({ algorithm: 'RS256', rsaModulusBits: 2048 });
    const [secret] = await secretsOf('default-rs256');
    const pem = Buffer.from(secret.data['private-key.pem'], 'base64').toString();
    const key = await importSigningKey(pem, 'RS256', 'Active');
    expect([key.kid, key.privateKey.asymmetricKeyDetails?.modulusLength]).toEqual([made.status.activeKeyId, 2048]);
    expect((await cluster.call('GET', path())).status).toBe(404);
    await cluster.call('DELETE', path('default-rs256'));
    await until('it is active again', async () => (await status('default-rs256')).activeKeyId === key.kid);
    await cluster.call('DELETE', path('corp'));
    await untilStates('default', 'Active');
  });

  it('given a SigningKey of RS256, suspended or not → no other is made until it is of another algorithm', async () => {
    await cluster.apply(manifest('corp', { algorithm: 'RS256', rsaModulusBits: 2048, suspended: true }));
    await leaders.lead();
    await until('it is in the status', async () => (await condition('Ready', 'corp')).reason === 'Suspended');
    await cluster.apply(manifest('corp', { algorithm: 'RS256', rsaModulusBits: 2048, suspended: false }));
    await untilStates('corp', 'Active');
    const made = await cluster.call('GET', `/apis/grantry.dev/v1alpha1/namespaces/${leaders.namespace}/signingkeys`);
    expect(made.body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual(['corp']);
    await cluster.apply(manifest('corp', { algorithm: 'ES256' }));
    await untilStates('default-rs256', 'Active');
  });

  it('come to rest: nothing is written when nothing changes', async () => {
    await leaders.lead();
    await untilStates('default', 'Active');
    await cluster.call('PATCH', path(), {
      body: { metadata: { annotations: { 'grantry.dev/rotate-requested-at': 'a' } } },
    });
    await untilStates('default', 'Active', 'Published');
    await leaders.abdicate();
    const versions = async () =>
      [(await cluster.call('GET', path())).body, ...(await secrets())].map((object) => object.metadata.resourceVersion);
    const before = await versions();
    await leaders.pass(1000);
    await sleep(1000);
    expect(await versions()).toEqual(before);
  });

  it('are published, activated when every replica has them, retired and removed by the clock', async () => {
    await leaders.lead();
    await untilStates('default', 'Active');
    const first = (await status()).activeKeyId;
    await leaders.pass(2136 * HOUR + 1000);
    await untilStates('default', 'Active', 'Published');
    expect(await condition('Rotating')).toMatchObject({ status: 'True', reason: 'KeyPublished' });
    const second = (await status()).keys[1].keyId;
    leaders.replicas = { one: [first, second], two: [first] };
    await leaders.pass(24 * HOUR + 1000);
    await until('it waits', async () => (await condition('Rotating')).reason === 'WaitingForReplicas');
    expect((await condition('Rotating')).message).toContain('two');
    expect(await states()).toEqual(['Active', 'Published']);
    leaders.replicas = { one: [first, second], two: [first, second] };
    await untilStates('default', 'Retiring', 'Active');
    expect((await status()).activeKeyId).toBe(second);
    expect(await condition('Rotating')).toMatchObject({ status: 'False' });
    await leaders.pass(47 * HOUR);
    await sleep(300);
    expect(await secrets()).toHaveLength(2);
    await leaders.pass(2 * HOUR);
    await untilStates('default', 'Active');
    expect(await secrets()).toHaveLength(1);
    expect((await status()).nextRotationTime > (await status()).lastRotationTime).toBe(true);
  });

  it('given 18 rings made at once → 16 keys, and the others wait with a reason until there is room', async () => {
    const names = Array.from({ length: 18 }, (_, index) => `ring-${index}`);
    for (const name of names) await cluster.apply(manifest(name, { algorithm: 'ES256' }));
    await leaders.lead();
    const reasons = async () =>
      await Promise.all(
        [...names, 'default-rs256'].map(async (name) => (await condition('KeyMaterialReady', name)).reason),
      );
    const count = async (reason: string) => (await reasons()).filter((each) => each === reason).length;
    await until('each has a verdict', async () => (await count('KeyGenerated')) + (await count('TooManyKeys')) === 19);
    expect([await count('KeyGenerated'), (await secretsThat(() => true)).length]).toEqual([16, 16]);
    const faults = leaders.events.filter(({ type, reason }) => type === 'Warning' && reason === 'TooManyKeys');
    expect(faults).toHaveLength(3);

    const active = names[(await reasons()).indexOf('KeyGenerated')] ?? '';
    const rotation = { 'grantry.dev/rotate-requested-at': 'a' };
    await cluster.apply(manifest(active, { algorithm: 'ES256' }, rotation));
    await until('its rotation waits', async () => (await condition('Rotating', active)).reason === 'TooManyKeys');
    expect([await states(active), (await condition('Ready', active)).status]).toEqual([['Active'], 'True']);
    expect(await secretsThat(() => true)).toHaveLength(16);

    const other = names[(await reasons()).lastIndexOf('KeyGenerated')] ?? '';
    await cluster.apply(manifest(other, { algorithm: 'ES256', suspended: true }));
    await until('one more has a key', async () => (await secretsThat(() => true)).length === 17, 40_000);
    const published = (await reasons()).filter((reason) => reason === 'KeyGenerated').length;
    expect(published).toBeLessThanOrEqual(16);
  });

  it('rotate on request only when that is their policy', async () => {
    await cluster.apply(
      manifest('manual', { rotation: { policy: 'Manual' } }, { 'grantry.dev/rotate-requested-at': 'a' }),
    );
    await leaders.lead();
    await untilStates('manual', 'Active');
    await leaders.pass(5000 * HOUR);
    await sleep(300);
    expect(await states('manual')).toEqual(['Active']);
    await cluster.apply(
      manifest('manual', { rotation: { policy: 'Manual' } }, { 'grantry.dev/rotate-requested-at': 'b' }),
    );
    await untilStates('manual', 'Active', 'Published');
    expect((await status('manual')).lastHandledRotateAt).toBe('b');
    await leaders.pass(24 * HOUR + 1000);
    await untilStates('manual', 'Retiring', 'Active');
  });

  it('go over to another algorithm', async () => {
    await cluster.apply(manifest('ring', {}));
    await leaders.lead();
    await untilStates('ring', 'Active');
    await cluster.apply(manifest('ring', { algorithm: 'EdDSA' }));
    await untilStates('ring', 'Active', 'Published');
    await leaders.pass(24 * HOUR + 1000);
    await untilStates('ring', 'Retiring', 'Active');
    expect((await status('ring')).keys.map(({ algorithm }: { algorithm: string }) => algorithm)).toEqual([
      'ES256',
      'EdDSA',
    ]);
  });

  it('are replaced at once when they are revoked', async () => {
    await leaders.lead();
    await untilStates('default', 'Active');
    const { activeKeyId } = await status();
    leaders.replicas = { one: [activeKeyId] };
    await cluster.call('PATCH', path(), { body: { spec: { revokedKeyIds: [activeKeyId] } } });
    await untilStates('default', 'Revoked', 'Active');
    expect((await status()).activeKeyId).not.toBe(activeKeyId);
    expect((await condition('Ready')).status).toBe('True');
    expect(leaders.events.map(({ reason }) => reason)).toContain('KeyRevoked');
  });

  it('can be imported, as soon as there is something to import', async () => {
    const pem = await generateSigningKeyPem('ES384');
    const { kid } = await importSigningKey(pem, 'ES384', 'Active');
    const spec = { algorithm: 'ES384', importSecretRef: { name: 'theirs', keyId: kid } };
    await cluster.apply(manifest('imported', spec));
    await leaders.lead();
    await until(
      'the fault is in the status',
      async () => (await condition('Ready', 'imported')).reason === 'SecretNotFound',
    );
    expect((await condition('Reconciling', 'imported')).status).toBe('True');
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'theirs', namespace: leaders.namespace } };
    await cluster.apply({ ...secret, stringData: { 'tls.key': pem } });
    await untilStates('imported', 'Active');
    expect((await status('imported')).activeKeyId).toBe(kid);
    expect((await condition('KeyMaterialReady', 'imported')).reason).toBe('KeyImported');
    expect((await condition('Reconciling', 'imported')).status).toBeUndefined();
  });

  it('of two SigningKeys that import one key → the older has it, and the younger none until that one is deleted', async () => {
    const pem = await generateSigningKeyPem('RS256', 2048);
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'theirs', namespace: leaders.namespace } };
    await cluster.apply({ ...secret, stringData: { 'tls.key': pem } });
    const importing = (algorithm: string) => ({ algorithm, importSecretRef: { name: 'theirs' } });
    await cluster.apply(manifest('a', importing('RS256')));
    await leaders.lead();
    await untilStates('a', 'Active');
    await cluster.apply(manifest('b', importing('PS256')));
    await until('the fault is in the status', async () => (await condition('Stalled', 'b')).status === 'True');
    expect(await condition('KeyMaterialReady', 'b')).toMatchObject({ status: 'False', reason: 'DuplicateKeyMaterial' });
    expect(leaders.events).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'DuplicateKeyMaterial' }));
    expect(await states('b')).toEqual([]);
    await cluster.call('DELETE', path('a'));
    await until('the younger signs', async () => (await condition('Ready', 'b')).status === 'True');
    expect(await states('b')).toEqual(['Active']);
    await until('it is an Event, too', () => leaders.events.some(({ reason }) => reason === 'Ready'));
  });

  it('that a SigningKey revokes → no other one signs with them, also one that has them already', async () => {
    const pem = await generateSigningKeyPem('ES256');
    const { kid } = await importSigningKey(pem, 'ES256', 'Active');
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'theirs', namespace: leaders.namespace } };
    await cluster.apply({ ...secret, stringData: { 'tls.key': pem } });
    await cluster.apply(manifest('a', { importSecretRef: { name: 'theirs' } }));
    await cluster.apply(manifest('c', {}));
    await leaders.lead();
    await untilStates('a', 'Active');
    await untilStates('c', 'Active');
    await cluster.apply(manifest('b', { importSecretRef: { name: 'theirs' } }));
    await until('b is refused', async () => (await condition('Ready', 'b')).reason === 'DuplicateKeyMaterial');
    const generated = (await status('c')).activeKeyId;
    await cluster.call('PATCH', path('a'), { body: { spec: { revokedKeyIds: [kid, generated] } } });
    await until('b is refused for that', async () => (await condition('Ready', 'b')).reason === 'KeyRevoked');
    expect(await states('b')).toEqual([]);
    await untilStates('c', 'Revoked', 'Active');
    expect(await states('a')).toEqual(['Revoked']);
  });

  it('of a SigningKey whose key an older one begins to import → refused as soon as that is published', async () => {
    const pems = await Promise.all([generateSigningKeyPem('RS256', 2048), generateSigningKeyPem('RS256', 2048)]);
    for (const [index, pem] of pems.entries()) {
      const metadata = { name: `key-${index}`, namespace: leaders.namespace };
      await cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { 'tls.key': pem } });
    }
    await cluster.apply(manifest('a', { algorithm: 'RS256', importSecretRef: { name: 'key-0' } }));
    await cluster.apply(manifest('b', { algorithm: 'PS256', importSecretRef: { name: 'key-1' } }));
    await leaders.lead();
    await untilStates('b', 'Active');
    await cluster.apply(manifest('a', { algorithm: 'RS256', importSecretRef: { name: 'key-1' } }));
    await untilStates('a', 'Active', 'Published');
    const isRefused = async () => (await condition('Ready', 'b')).reason === 'DuplicateKeyMaterial';
    await until('the fault is in the status', isRefused);
  });

  it('say what only their owner can put right', async () => {
    await cluster.apply(
      manifest('labelled', { secretTemplate: { labels: { 'argocd.argoproj.io/secret-type': 'x' } } }),
    );
    await leaders.lead();
    await until(
      'it is in the status',
      async () => (await condition('Stalled', 'labelled')).reason === 'InvalidSecretTemplate',
    );
    expect((await condition('Ready', 'labelled')).status).toBe('False');
    await until('it is an Event, too', () => leaders.events.length > 0);
    expect(leaders.events).toContainEqual(
      expect.objectContaining({ type: 'Warning', reason: 'InvalidSecretTemplate' }),
    );
  });

  it('have the labels and annotations that are asked for, also later, and none that were asked for before', async () => {
    const template = (labels: object, annotations: object) => ({ secretTemplate: { labels, annotations } });
    await cluster.apply(manifest('ring', template({ team: 'a', colour: 'red' }, { owner: 'them' })));
    await leaders.lead();
    await untilStates('ring', 'Active');
    const metadata = async () => (await secrets())[0].metadata;
    const first = await metadata();
    expect(first).toMatchObject({ labels: { team: 'a', colour: 'red' }, annotations: { owner: 'them' } });
    await cluster.apply(manifest('ring', template({ team: 'b' }, { backup: 'yes' })));
    await until('the labels follow', async () => (await metadata()).labels.team === 'b');
    const second = await metadata();
    expect(second.annotations.backup).toBe('yes');
    expect(second.labels['grantry.dev/key-state']).toBe('Active');
    expect(second.labels).not.toHaveProperty('colour');
    expect(second.annotations).not.toHaveProperty('owner');
    await cluster.apply(manifest('ring', {}));
    await until('nothing is left', async () => (await metadata()).labels.team === undefined);
    expect((await metadata()).annotations).not.toHaveProperty('backup');
  });

  it('do nothing while suspended, and go on as they were', async () => {
    await leaders.lead();
    await untilStates('default', 'Active');
    const { activeKeyId } = await status();
    await cluster.call('PATCH', path(), { body: { spec: { suspended: true } } });
    await until('it is in the status', async () => (await condition('Ready')).reason === 'Suspended');
    await leaders.pass(5000 * HOUR);
    await sleep(300);
    expect(await states()).toEqual(['Active']);
    await cluster.call('PATCH', path(), { body: { spec: { suspended: false } } });
    await until('it is ready', async () => (await condition('Ready')).status === 'True');
    expect((await status()).activeKeyId).toBe(activeKeyId);
  });

  it('outlive their SigningKey until another signs, and until their last token has died', async () => {
    await cluster.apply(manifest('mine', {}));
    await leaders.lead();
    await untilStates('mine', 'Active');
    await cluster.call('DELETE', path('mine'));
    await untilStates('default', 'Active');
    const labels = async () =>
      (await secrets()).map(({ metadata }: { metadata: { labels: object } }) =>
        Object.values(metadata.labels).join(' '),
      );
    await until('it retires', async () => (await labels()).some((each: string) => each.includes('Retiring')));
    expect(await labels()).toHaveLength(2);
    await leaders.pass(49 * HOUR);
    await until('it is removed', async () => (await labels()).length === 1);
  });

  it('are taken up again by a SigningKey of the same name', async () => {
    await leaders.lead();
    await untilStates('default', 'Active');
    const { activeKeyId } = await status();
    await cluster.call('DELETE', path());
    await until('it is active again', async () => (await status()).activeKeyId !== undefined);
    expect((await status()).activeKeyId).toBe(activeKeyId);
    expect(await secrets()).toHaveLength(1);
  });
});
