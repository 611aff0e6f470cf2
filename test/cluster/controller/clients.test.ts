// OAuthClients reconciled on a real API server.

import { beforeAll, describe, expect, it } from 'vitest';
import type { AcceptedVerifier } from '../../../src/admission/client-secrets/client-verifier.ts';
import type { ControllerSources } from '../../../src/processes/controller/controller-sources.ts';
import { startReplica } from '../../controller/replicas/replica-servers.ts';
import { until } from '../../until.ts';
import { ClientInstall, type Write } from '../setup/client-controllers.ts';
import { nextSecond } from '../setup/cluster.ts';
import { FaultProxy, type SeenRequest, watchOf } from '../setup/fault-proxy.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();
let install: ClientInstall;
let team: string;
beforeAll(async () => {
  install = await ClientInstall.make(cluster);
  team = await cluster.namespace();
});

const OLD = 'an-example-value-that-was-restored-from-a-backup';

function secretManifest(name: string, data: Record<string, string>, labels: Record<string, string> = {}) {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: team, name, labels }, stringData: data };
}

describe('a generated secret', () => {
  it('stands in a Secret of the owner, is accepted, and makes the client ready', async () => {
    const controller = await install.start();
    await install.apply(team, 'basic');
    const { metadata, status } = await install.whenReady(team, 'basic');
    const secret = await install.secret(team, 'basic-oauth');
    expect(secret?.type).toBe('Opaque');
    expect(secret?.data).toEqual({
      'client-id': `${team}.basic`,
      'client-secret': expect.stringMatching(/^[\w-]{43}$/),
      'issuer-url': 'https://id.example',
    });
    expect(secret?.metadata.labels).toEqual({ 'grantry.dev/client': 'basic', 'grantry.dev/client-uid': metadata.uid });
    expect(secret?.metadata.ownerReferences).toEqual([
      { apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', name: 'basic', uid: metadata.uid },
    ]);
    expect(await install.accepts(metadata.uid, secret?.data['client-secret'])).toBe(true);
    expect(status.conditions.map(({ type, reason }: Record<string, string>) => `${type}=${reason}`).sort()).toEqual([
      'Accepted=Accepted',
      'CredentialsReady=SecretGenerated',
      'Programmed=NotObserved',
      'Ready=Ready',
      'ResolvedRefs=ResolvedRefs',
    ]);
    expect(status).toMatchObject({ clientId: `${team}.basic`, binding: { name: 'basic-oauth' } });
    expect(controller.eventsOf('basic')).toEqual(['SecretCreated']);
  });

  it('is written once, and status too', async () => {
    const controller = await install.start();
    await install.apply(team, 'quiet');
    const { metadata } = await install.whenReady(team, 'quiet');
    await install.poke(team, 'quiet');
    await controller.whenAtRest(team, 'quiet');
    const before = (await install.client(team, 'quiet')).metadata.resourceVersion;
    // A client that is reconciled after it.
    await install.apply(team, 'after-quiet');
    await install.whenReady(team, 'after-quiet');
    expect((await install.client(team, 'quiet')).metadata.resourceVersion).toBe(before);
    const own = controller.writes.filter(({ name }) => name.startsWith('quiet') || name.endsWith(metadata.uid));
    expect(own.map(({ verb, kind }) => `${verb} ${kind}`)).toEqual([
      'create Secret',
      'create Secret',
      'apply OAuthClient',
    ]);
  });

  it('is written as its owner wants it, keeps its value when that changes, and leaves nothing behind', async () => {
    await install.start();
    const clientSecret = {
      keys: { clientId: 'ID', clientSecret: 'SECRET', issuer: 'ISSUER' },
      extraData: { URL: '$' + '{TOKEN_ENDPOINT}' },
      randomKeys: ['cookie-secret'],
      secretTemplate: { labels: { team: 'one' }, annotations: { note: 'n' } },
    };
    await install.apply(team, 'shaped', { auth: { clientSecret } });
    await install.whenReady(team, 'shaped');
    const first = await install.secret(team, 'shaped-oauth');
    expect(first?.data).toMatchObject({ ID: `${team}.shaped`, URL: 'https://id.example/token' });
    expect(Buffer.from(first?.data['cookie-secret'] ?? '', 'base64url')).toHaveLength(32);
    expect(first?.metadata.labels.team).toBe('one');
    await cluster.apply(secretManifest('shaped-oauth', { theirs: 'of another owner' }));
    const renamed = { keys: { clientSecret: 'KEY' }, randomKeys: ['cookie-secret'] };
    await install.apply(team, 'shaped', { auth: { clientSecret: renamed } });
    await until(
      'the keys are renamed',
      async () => (await install.secret(team, 'shaped-oauth'))?.data.URL === undefined,
    );
    const second = await install.secret(team, 'shaped-oauth');
    expect(second?.data).toEqual({
      'client-id': `${team}.shaped`,
      KEY: first?.data.SECRET,
      'issuer-url': 'https://id.example',
      'cookie-secret': first?.data['cookie-secret'],
      theirs: 'of another owner',
    });
    expect(second?.metadata.labels).not.toHaveProperty('team');
    expect(second?.metadata.annotations ?? {}).not.toHaveProperty('note');
  });

  it.each([
    ['was created', 'made', async () => {}],
    [
      'was created and applied since',
      'applied',
      async (name: string) => {
        const secretTemplate = { labels: { team: 'one' } };
        await install.apply(team, name, { auth: { clientSecret: { secretTemplate } } });
        const labels = async () => (await install.secret(team, `${name}-oauth`))?.metadata.labels;
        await until('it has the label', async () => (await labels())?.team === 'one');
      },
    ],
    [
      'was written by another writer too',
      'restored',
      async (name: string) => {
        const texts = Object.entries((await install.secret(team, `${name}-oauth`))?.data ?? {});
        const data = Object.fromEntries(texts.map(([key, text]) => [key, Buffer.from(text).toString('base64')]));
        await cluster.apply({ ...secretManifest(`${name}-oauth`, {}), stringData: undefined, data });
      },
    ],
  ])('that %s leaves nothing under a key that its owner renames, and the value stays', async (_, how, happens) => {
    const name = `renamed-${how}`;
    await install.start();
    await install.apply(team, name);
    await install.whenReady(team, name);
    const first = await install.secret(team, `${name}-oauth`);
    await happens(name);
    await install.apply(team, name, { auth: { clientSecret: { keys: { clientSecret: 'KEY' } } } });
    const data = async () => (await install.secret(team, `${name}-oauth`))?.data ?? {};
    await until('the former key is gone', async () => !('client-secret' in (await data())));
    const { 'client-secret': value, ...others } = first?.data ?? {};
    expect(await data()).toEqual({ ...others, KEY: value });
    expect((await install.secret(team, `${name}-oauth`))?.metadata.labels).toEqual(first?.metadata.labels);
  });

  it('whose key is renamed has its value under both keys where a controller dies in between, and the next one removes the former', async () => {
    const own = await ClientInstall.make(cluster);
    let isDead = false;
    const diesBefore = ({ verb }: Write) => {
      isDead ||= verb === 'merge';
      return isDead;
    };
    const first = await own.start({ diesBefore });
    await own.apply(team, 'between');
    await own.whenReady(team, 'between');
    const { 'client-secret': value, ...others } = (await own.secret(team, 'between-oauth'))?.data ?? {};
    await own.apply(team, 'between', { auth: { clientSecret: { keys: { clientSecret: 'KEY' } } } });
    await until('it died', () => isDead);
    const data = async () => (await own.secret(team, 'between-oauth'))?.data ?? {};
    expect(await data()).toEqual({ ...others, 'client-secret': value, KEY: value });
    await first.stop();
    await own.start();
    await until('the former key is gone', async () => !('client-secret' in (await data())));
    expect(await data()).toEqual({ ...others, KEY: value });
  });

  it('outlives its client where the owner wants that', async () => {
    await install.start();
    await install.apply(team, 'kept', { auth: { clientSecret: { deletionPolicy: 'Retain' } } });
    await install.whenReady(team, 'kept');
    expect((await install.secret(team, 'kept-oauth'))?.metadata.ownerReferences).toBeUndefined();
    await install.apply(team, 'kept', { auth: { clientSecret: { deletionPolicy: 'Delete' } } });
    const owners = async () => (await install.secret(team, 'kept-oauth'))?.metadata.ownerReferences?.length ?? 0;
    await until('it has an owner', async () => (await owners()) === 1);
    await install.apply(team, 'kept', { auth: { clientSecret: { deletionPolicy: 'Retain' } } });
    await until('it has none', async () => (await owners()) === 0);
  });

  it('is let go when the owner wants that of a Secret that was to go with its client, and adopted again', async () => {
    const controller = await install.start();
    await install.apply(team, 'let-go');
    const { metadata } = await install.whenReady(team, 'let-go');
    const first = await install.secret(team, 'let-go-oauth');
    const owners = async () =>
      (await install.secret(team, 'let-go-oauth'))?.metadata.ownerReferences?.map(({ uid }: { uid: string }) => uid);
    expect(await owners()).toEqual([metadata.uid]);
    for (const [deletionPolicy, wanted] of [
      ['Retain', undefined],
      ['Delete', [metadata.uid]],
      ['Retain', undefined],
    ] as const) {
      await install.apply(team, 'let-go', { auth: { clientSecret: { deletionPolicy } } });
      const isSo = async () => JSON.stringify((await owners()) ?? []) === JSON.stringify(wanted ?? []);
      await until(`it is as ${deletionPolicy} says`, isSo);
    }
    await install.whenReady(team, 'let-go');
    expect((await install.secret(team, 'let-go-oauth'))?.data).toEqual(first?.data);
    expect(controller.eventsOf('let-go')).toEqual(['SecretCreated']);
  });

  it('is never written into a Secret of another owner', async () => {
    const controller = await install.start();
    await cluster.apply(secretManifest('foreign-oauth', { password: 'of another owner' }));
    await install.apply(team, 'foreign');
    const { metadata, status } = await install.whenCondition(team, 'foreign', 'CredentialsReady', 'SecretNotOwned');
    expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'Stalled', reason: 'SecretNotOwned' }));
    expect((await install.secret(team, 'foreign-oauth'))?.data).toEqual({ password: 'of another owner' });
    expect(await install.verifiers(metadata.uid)).toBeUndefined();
    await controller.expectEventsOf('foreign', ['SecretNotOwned']);
    await cluster.call('DELETE', `/api/v1/namespaces/${team}/secrets/foreign-oauth`);
    await install.whenReady(team, 'foreign');
    await controller.expectEventsOf('foreign', ['SecretNotOwned', 'SecretCreated', 'Ready']);
  });

  it('is not taken over from a client that lives, whatever the labels say', async () => {
    const controller = await install.start();
    await install.apply(team, 'victim');
    const { metadata } = await install.whenReady(team, 'victim');
    const labels = { 'grantry.dev/client': 'thief', 'grantry.dev/client-uid': metadata.uid };
    await cluster.apply(secretManifest('thief-oauth', { 'client-secret': OLD }, labels));
    await install.apply(team, 'thief');
    await install.whenCondition(team, 'thief', 'CredentialsReady', 'SecretNotOwned');
    await install.poke(team, 'victim');
    await controller.whenAtRest(team, 'victim');
    expect((await install.secret(team, 'thief-oauth'))?.data).toEqual({ 'client-secret': OLD });
  });

  it('that was left behind by a client that is gone keeps its value', async () => {
    const controller = await install.start();
    const labels = { 'grantry.dev/client': 'restored', 'grantry.dev/client-uid': crypto.randomUUID() };
    await cluster.apply(secretManifest('restored-oauth', { 'client-secret': OLD }, labels));
    await install.apply(team, 'restored');
    const { metadata } = await install.whenReady(team, 'restored');
    const secret = await install.secret(team, 'restored-oauth');
    expect(secret?.data['client-secret']).toBe(OLD);
    expect(secret?.metadata.labels['grantry.dev/client-uid']).toBe(metadata.uid);
    expect(await install.accepts(metadata.uid, OLD)).toBe(true);
    expect(controller.eventsOf('restored')).toEqual(['SecretAdopted']);
  });

  it('that comes back in the very moment in which one is made keeps its value too', async () => {
    const labels = { 'grantry.dev/client': 'raced', 'grantry.dev/client-uid': crypto.randomUUID() };
    const restored = secretManifest('raced-oauth', { 'client-secret': OLD }, labels);
    let isRestored = false;
    let inVain: readonly AcceptedVerifier[] = [];
    const before = async ({ verb, name }: { verb: string; name: string }) => {
      if (isRestored || verb !== 'create' || name !== 'raced-oauth') return;
      isRestored = true;
      const { uid } = (await install.client(team, 'raced')).metadata;
      ({ verifiers: inVain } = (await install.verifiers(uid)) ?? { verifiers: [] });
      await cluster.apply(restored);
    };
    const controller = await install.start({ before });
    await install.apply(team, 'raced');
    const { metadata } = await install.whenReady(team, 'raced');
    expect(isRestored).toBe(true);
    expect((await install.secret(team, 'raced-oauth'))?.data['client-secret']).toBe(OLD);
    expect(await install.accepts(metadata.uid, OLD)).toBe(true);
    // The secret of the first try was not published, and it is not accepted for any grace.
    const { verifiers = [] } = (await install.verifiers(metadata.uid)) ?? {};
    expect([inVain.length, verifiers.length]).toEqual([1, 1]);
    expect(verifiers[0]?.verifier).not.toEqual(inVain[0]?.verifier);
    expect(controller.eventsOf('raced')).toEqual(['SecretAdopted']);
  });

  it.each(['deleted', 'changed'])('is replaced when it was %s, and the old one works on for its grace', async (how) => {
    const name = `drift-${how}`;
    const controller = await install.start();
    await install.apply(team, name);
    const { metadata } = await install.whenReady(team, name);
    const old = (await install.secret(team, `${name}-oauth`))?.data['client-secret'];
    const path = `/api/v1/namespaces/${team}/secrets/${name}-oauth`;
    if (how === 'deleted') await cluster.call('DELETE', path);
    else await install.patch(path, { stringData: { 'client-secret': OLD } });
    const current = async () => (await install.secret(team, `${name}-oauth`))?.data['client-secret'];
    await until('it is replaced', async () => ![undefined, old, OLD].includes(await current()));
    expect(await install.accepts(metadata.uid, await current())).toBe(true);
    expect([await install.accepts(metadata.uid, old), await install.accepts(metadata.uid, OLD)]).toEqual([true, false]);
    await controller.expectEventsOf(name, ['SecretCreated', 'DriftRepaired']);
  });

  it('has its other keys and labels put back, with the same value', async () => {
    const controller = await install.start();
    await install.apply(team, 'defaced');
    await install.whenReady(team, 'defaced');
    const first = await install.secret(team, 'defaced-oauth');
    const path = `/api/v1/namespaces/${team}/secrets/defaced-oauth`;
    await install.patch(path, { metadata: { labels: { 'grantry.dev/client': 'x' } }, data: { 'client-id': null } });
    const isBack = async () => (await install.secret(team, 'defaced-oauth'))?.data['client-id'] !== undefined;
    await until('it is put back', isBack);
    const second = await install.secret(team, 'defaced-oauth');
    expect([second?.data, second?.metadata.labels]).toEqual([first?.data, first?.metadata.labels]);
    await controller.expectEventsOf('defaced', ['SecretCreated', 'DriftRepaired']);
  });
});

describe('a rotation', () => {
  const interval = { auth: { clientSecret: { rotation: { interval: '48h', gracePeriod: '24h' } } } };
  const secretOf = async (name: string) => (await install.secret(team, `${name}-oauth`))?.data['client-secret'];
  const HOUR = 3_600_000;

  it('by interval hands out a new secret, lets the old one work for its grace, and then drops it', async () => {
    const own = await ClientInstall.make(cluster);
    const controller = await own.start();
    await own.apply(team, 'by-interval', interval);
    const { metadata, status } = await own.whenReady(team, 'by-interval');
    expect(Date.parse(status.secret.nextRotationTime) - Date.parse(status.secret.lastRotationTime)).toBe(48 * HOUR);
    const old = await secretOf('by-interval');
    own.ahead = 47 * HOUR;
    await own.poke(team, 'by-interval');
    await controller.whenAtRest(team, 'by-interval');
    expect(await secretOf('by-interval')).toBe(old);
    own.ahead = 49 * HOUR;
    await own.poke(team, 'by-interval');
    await own.passUnobserved(metadata.uid, status.secret.revision);
    await until('there is a new one', async () => (await secretOf('by-interval')) !== old);
    const current = await secretOf('by-interval');
    expect([await own.accepts(metadata.uid, current), await own.accepts(metadata.uid, old)]).toEqual([true, true]);
    await until(
      'status has the revision',
      async () => (await own.client(team, 'by-interval')).status.secret.revision === 2,
    );
    const { secret } = (await own.client(team, 'by-interval')).status;
    expect(Date.parse(secret.previousExpiresAt) - own.clock.now()).toBeGreaterThan(23 * HOUR);
    own.ahead = 74 * HOUR;
    await own.poke(team, 'by-interval');
    await until('it is dropped', async () => (await own.verifiers(metadata.uid))?.verifiers.length === 1);
    expect([await own.accepts(metadata.uid, current), await own.accepts(metadata.uid, old)]).toEqual([true, false]);
    await controller.expectEventsOf('by-interval', ['SecretCreated', 'SecretRotated', 'PreviousSecretExpired']);
  });

  it('on request stages the next secret until every replica accepts it, also under another leader, and writes the previous one where the owner asks for it', async () => {
    let isBehind = false;
    let asked = 0;
    const served = new Map<string, object>();
    const replica = await startReplica((path, question) => {
      const { uids = [] } = question as { uids?: string[] };
      if (path.endsWith('/report')) return { body: { cursor: '1', lastUsed: {}, denied: {}, alerts: [] } };
      asked += 1;
      return { body: { clients: Object.fromEntries(uids.flatMap((uid) => answerOf(uid))), keyIds: [] } };
    });
    const answerOf = (uid: string) => (served.has(uid) ? [[uid, served.get(uid)]] : []);
    const follow = async (uid: string) => {
      const revision = (await install.verifiers(uid))?.revision;
      if (!isBehind && revision !== undefined) served.set(uid, { generation: 1, secretRevision: revision });
    };
    const first = await install.start({ replicas: [replica] });
    const spec = { auth: { clientSecret: { keys: { previousClientSecret: 'previous' } } } };
    await install.apply(team, 'asked', spec);
    const { metadata } = await install.whenCondition(team, 'asked', 'Programmed', 'Pending');
    const following = setInterval(() => void follow(metadata.uid), 50);
    try {
      await install.whenReady(team, 'asked');
      const old = await secretOf('asked');
      isBehind = true;
      await install.apply(team, 'asked', spec, { annotations: { 'grantry.dev/rotate-requested-at': 'monday' } });
      await until('a new one is stored', async () => (await install.verifiers(metadata.uid))?.verifiers.length === 2);
      const before = asked;
      await until('the replica is asked again and again', () => asked > before + 2);
      const during = (await install.secret(team, 'asked-oauth'))?.data ?? {};
      expect([during['client-secret'], during.previous]).toEqual([old, undefined]);
      await first.stop();
      await install.start({ replicas: [replica] });
      isBehind = false;
      await until('it is published', async () => (await secretOf('asked')) !== old);
      const after = (await install.secret(team, 'asked-oauth'))?.data ?? {};
      expect([after['client-secret'], after.previous]).toEqual([during['client-secret.next'], old]);
      expect(after).not.toHaveProperty(['client-secret.next']);
      expect(await install.accepts(metadata.uid, after['client-secret'])).toBe(true);
      const handled = async () => (await install.client(team, 'asked')).status.lastHandledRotateAt === 'monday';
      await until('status says so', handled);
    } finally {
      clearInterval(following);
    }
  });

  it('that cuts leaves the old secret no time', async () => {
    await install.start();
    await install.apply(team, 'leaked');
    const { metadata } = await install.whenReady(team, 'leaked');
    const old = await secretOf('leaked');
    await install.apply(team, 'leaked', {}, { annotations: { 'grantry.dev/rotate-now': 'it leaked' } });
    await until('there is a new one', async () => (await secretOf('leaked')) !== old);
    expect(await install.accepts(metadata.uid, old)).toBe(false);
    expect(await install.accepts(metadata.uid, await secretOf('leaked'))).toBe(true);
  });

  it.each([
    ['rotate-now', true],
    ['rotate-requested-at', false],
  ])('by %s of a Secret that cannot be written says what still works and what to do', async (annotation, isCut) => {
    await install.start();
    const name = `sealed-${annotation}`;
    await install.apply(team, name);
    const { metadata, status: before } = await install.whenReady(team, name);
    const { revision } = before.secret;
    const old = await secretOf(name);
    const path = `/api/v1/namespaces/${team}/secrets/${name}-oauth`;
    await install.patch(path, { immutable: true });
    await install.apply(team, name, {}, { annotations: { [`grantry.dev/${annotation}`]: 'it leaked' } });
    if (!isCut) await install.passUnobserved(metadata.uid, revision);
    const { status } = await install.whenCondition(team, name, 'CredentialsReady', 'RotationFailed');
    const stalled = status.conditions.find(({ type }: { type: string }) => type === 'Stalled');
    expect(stalled).toMatchObject({ status: 'True', reason: 'RotationFailed' });
    expect(stalled.message).toContain('delete it');
    expect(stalled.message.includes('not accepted any more')).toBe(isCut);
    expect(await install.accepts(metadata.uid, old)).toBe(!isCut);
    await cluster.call('DELETE', path);
    const healed = await install.whenReady(team, name);
    expect(healed.status.conditions.some(({ type }: { type: string }) => type === 'Stalled')).toBe(false);
    expect(await secretOf(name)).not.toBe(old);
    expect(await install.accepts(metadata.uid, await secretOf(name))).toBe(true);
  });

  it.each([
    ['create Secret', 1],
    ['create Secret', 2],
    ['apply Secret', 1],
    ['apply Secret', 2],
    ['apply Secret', 3],
    ['apply Secret', 4],
  ])('is carried through by another controller where the first one died before %s number %i', async (dying, nth) => {
    const isFirst = dying === 'create Secret';
    const name = `died-${isFirst ? 'create' : 'apply'}-${nth}`;
    const own = await ClientInstall.make(cluster);
    let seen = 0;
    const diesBefore = ({ verb, kind }: { verb: string; kind: string }) =>
      `${verb} ${kind}` === dying && ++seen === nth;
    const first = await own.start({ diesBefore });
    await own.apply(team, name, interval);
    const revisionOf = async () => (await own.verifiers((await own.client(team, name)).metadata.uid))?.revision ?? 0;
    let revision = 0;
    let old: string | undefined;
    if (!isFirst) {
      await own.whenReady(team, name);
      old = await secretOf(name);
      revision = await revisionOf();
      own.ahead = 49 * HOUR;
      await own.poke(team, name);
      if (nth > 2) await own.passUnobserved((await own.client(team, name)).metadata.uid, revision);
    }
    await until(`${dying} ${nth} is reached`, () => seen >= nth);
    revision = await revisionOf();
    await first.stop();
    await own.start();
    const { metadata } = await own.whenReady(team, name);
    if (!isFirst) await own.passUnobserved(metadata.uid, revision);
    const isRight = async () => {
      const current = await secretOf(name);
      return (await own.accepts(metadata.uid, current)) && (isFirst || current !== old);
    };
    await until(`the secret of ${name} is there and accepted`, isRight);
    if (old !== undefined) expect(await own.accepts(metadata.uid, old)).toBe(true);
  });
});

describe("a Secret of the owner's own", () => {
  const existing = (secretName: string) => ({ auth: { clientSecret: { source: 'Existing', secretName } } });

  it('is waited for, used once it is there, followed as it changes, and believed no longer when it is gone', async () => {
    await install.start();
    await install.apply(team, 'own', existing('mine'));
    const { metadata } = await install.whenCondition(team, 'own', 'ResolvedRefs', 'SecretNotFound');
    expect(await install.secret(team, 'mine')).toBeUndefined();
    await cluster.apply(secretManifest('mine', { 'client-secret': 'short' }));
    await install.whenCondition(team, 'own', 'CredentialsReady', 'WeakSecret');
    await cluster.apply(secretManifest('mine', { 'client-secret': OLD }));
    await install.whenReady(team, 'own');
    expect(await install.accepts(metadata.uid, OLD)).toBe(true);
    await cluster.apply(secretManifest('mine', { 'client-secret': `${OLD}-2` }));
    await until('the new one counts', () => install.accepts(metadata.uid, `${OLD}-2`));
    expect(await install.accepts(metadata.uid, OLD)).toBe(false);
    await cluster.call('DELETE', `/api/v1/namespaces/${team}/secrets/mine`);
    await install.whenCondition(team, 'own', 'ResolvedRefs', 'SecretNotFound');
    expect(await install.verifiers(metadata.uid)).toBeUndefined();
  });

  it('is never written', async () => {
    const controller = await install.start();
    await cluster.apply(secretManifest('untouched', { 'client-secret': OLD, password: 'x' }));
    const before = await install.secret(team, 'untouched');
    await install.apply(team, 'reader', existing('untouched'));
    await install.whenReady(team, 'reader');
    expect(await install.secret(team, 'untouched')).toEqual(before);
    expect(controller.writes.filter(({ name }) => name === 'untouched')).toEqual([]);
  });
});

describe('a client that is refused', () => {
  it('gets no Secret and one status', async () => {
    const controller = await install.start();
    await install.apply(team, 'implicit', { grantTypes: ['implicit'] });
    const { metadata, status } = await install.whenCondition(team, 'implicit', 'Accepted', 'UnsupportedGrantType');
    expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'Stalled', status: 'True' }));
    expect(await install.secret(team, 'implicit-oauth')).toBeUndefined();
    expect(await install.verifiers(metadata.uid)).toBeUndefined();
    await install.poke(team, 'implicit');
    await controller.whenAtRest(team, 'implicit');
    expect(controller.writes.filter(({ name }) => name === 'implicit')).toHaveLength(1);
    await controller.expectEventsOf('implicit', ['UnsupportedGrantType']);
  });

  it('in the release namespace gets nothing at all', async () => {
    await install.start();
    const { namespace } = install.installation;
    await install.apply(namespace, 'inside');
    await install.whenCondition(namespace, 'inside', 'Accepted', 'NamespaceReserved');
    expect(await install.secret(namespace, 'inside-oauth')).toBeUndefined();
  });

  it('is the one too many of its namespace, until there is room', async () => {
    const own = await ClientInstall.make(cluster);
    const namespace = await cluster.namespace();
    const { className } = own.installation;
    const matchLabels = { 'kubernetes.io/metadata.name': namespace };
    const spec = { className, namespaceSelector: { matchLabels }, limits: { maxClientsPerNamespace: 2 } };
    await cluster.apply({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name: className },
      spec,
    });
    await own.start();
    for (const name of ['one', 'two']) await own.apply(namespace, name);
    for (const name of ['one', 'two']) await own.whenReady(namespace, name);
    await nextSecond();
    await own.apply(namespace, 'three');
    await own.whenCondition(namespace, 'three', 'Accepted', 'ClientLimitExceeded');
    expect(await own.secret(namespace, 'three-oauth')).toBeUndefined();
    await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients/one`);
    await own.whenReady(namespace, 'three');
  });

  it('has an id that another one has, until that one is gone → Ready, one Warning ClientIdAcquired', async () => {
    const own = await ClientInstall.make(cluster);
    const [here, there] = [await cluster.namespace(), await cluster.namespace()];
    const { className } = own.installation;
    const namespaceSelector = {
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: [here, there] }],
    };
    const allow = { clientIds: ['shared'], scopes: ['**'] };
    const policy = { className, namespaceSelector, allow };
    await cluster.apply({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ClientPolicy',
      metadata: { name: className },
      spec: policy,
    });
    const controller = await own.start();
    await own.apply(here, 'first', { clientId: 'shared' });
    await own.whenReady(here, 'first');
    await nextSecond();
    await own.apply(there, 'second', { clientId: 'shared' });
    const { status } = await own.whenCondition(there, 'second', 'Accepted', 'ClientIdConflict');
    expect(JSON.stringify(status)).not.toContain(here);
    await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${here}/oauthclients/first`);
    await own.whenReady(there, 'second');
    await controller.expectEventsOf('second', ['ClientIdConflict', 'SecretCreated', 'ClientIdAcquired', 'Ready']);
    expect(controller.notes().join()).not.toContain(here);
  });

  it('asks for an annotation that no policy permits any more → keeps its Secret, the condition says why and the remedy, and works again once permitted', async () => {
    const own = await ClientInstall.make(cluster);
    const namespace = await cluster.namespace();
    const { className } = own.installation;
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
    const permit = (...secretMetadata: readonly string[]) =>
      cluster.apply({
        apiVersion: 'grantry.dev/v1alpha1',
        kind: 'ClientPolicy',
        metadata: { name: className },
        spec: { className, namespaceSelector, allow: { secretMetadata } },
      });
    await permit('reloader.stakater.com/*');
    const controller = await own.start();
    const secretTemplate = { annotations: { 'reloader.stakater.com/match': 'true' } };
    await own.apply(namespace, 'reloaded', { auth: { clientSecret: { secretTemplate } } });
    await own.whenReady(namespace, 'reloaded');
    const before = await own.secret(namespace, 'reloaded-oauth');
    expect(before?.metadata.annotations).toMatchObject(secretTemplate.annotations);
    await permit();
    const { metadata, status } = await own.whenCondition(namespace, 'reloaded', 'Accepted', 'PolicyViolation');
    const { message } = status.conditions.find(({ type }: { type: string }) => type === 'Accepted');
    expect(message).toMatch(/secretTemplate\.annotations\["reloader\.stakater\.com\/match"\].*allow\.secretMetadata/);
    await controller.whenAtRest(namespace, 'reloaded');
    expect(await own.secret(namespace, 'reloaded-oauth')).toEqual(before);
    await permit('reloader.stakater.com/match');
    await own.whenReady(namespace, 'reloaded');
    expect(await own.secret(namespace, 'reloaded-oauth')).toEqual(before);
    expect(await own.accepts(metadata.uid, before?.data['client-secret'])).toBe(true);
  });

  it('for a while only, has its old secret when it is accepted again', async () => {
    await install.start();
    await install.apply(team, 'paused');
    await install.whenReady(team, 'paused');
    const before = await install.secret(team, 'paused-oauth');
    await install.apply(team, 'paused', { suspended: true });
    await install.whenCondition(team, 'paused', 'Accepted', 'Suspended');
    await install.apply(team, 'paused', { suspended: false });
    await install.whenReady(team, 'paused');
    expect((await install.secret(team, 'paused-oauth'))?.data).toEqual(before?.data);
  });
});

describe('what replicas report of a client', () => {
  it('is in its status: the day of its last use, and what it was denied', async () => {
    const own = await ClientInstall.make(cluster);
    const report = { lastUsed: {}, denied: {} };
    const replica = await startReplica((path, question) => {
      if (path.endsWith('/report')) return { body: { cursor: '1', alerts: [], ...report } };
      const { uids } = question as { uids: string[] };
      const served = uids.map((uid) => [uid, { generation: 1, secretRevision: 1 }]);
      return { body: { clients: Object.fromEntries(served), keyIds: [] } };
    });
    const first = await own.start({ replicas: [replica] });
    await own.apply(team, 'used');
    const { metadata } = await own.whenReady(team, 'used');
    await first.stop();
    const lastTime = new Date(own.clock.now()).toISOString();
    const today = lastTime.slice(0, 10);
    report.lastUsed = { [metadata.uid]: today };
    report.denied = { [metadata.uid]: [{ reason: 'unauthorized_client', generation: 1, count: 1, lastTime }] };
    // A leader asks for reports when it begins, and later every five seconds.
    await own.start({ replicas: [replica] });
    const { status } = await own.whenCondition(team, 'used', 'Denied', 'UnauthorizedClient');
    expect(status.lastUsedTime).toBe(`${today}T00:00:00Z`);
    expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
  });
});

describe('the verifiers of a client', () => {
  const DAMAGES = [
    ['were deleted', undefined],
    ['came back from a backup without their labels', { labels: null }],
    ['cannot be read any more', { data: { verifiers: Buffer.from('[').toString('base64') } }],
  ] as const;

  it.each(DAMAGES)('that %s are made again by a leader that sees it, and its secret stays', async (how, damage) => {
    const name = `seen-${how.length}`;
    const controller = await install.start();
    await install.apply(team, name);
    const { metadata } = await install.whenReady(team, name);
    const secret = (await install.secret(team, `${name}-oauth`))?.data['client-secret'];
    // It reconciles again after its own write, and would see the damage then.
    await controller.whenAtRest(team, name);
    const path = `/api/v1/namespaces/${install.installation.namespace}/secrets/grantry-client-${metadata.uid}`;
    if (damage === undefined) await cluster.call('DELETE', path);
    else await install.patch(path, 'labels' in damage ? { metadata: damage } : damage);
    const labels = async () => (await cluster.call('GET', path)).body.metadata?.labels ?? {};
    await until('they are there', async () => {
      const isLabelled = (await labels())['grantry.dev/part'] === 'verifier';
      return isLabelled && (await install.accepts(metadata.uid, secret));
    });
    expect((await install.secret(team, `${name}-oauth`))?.data['client-secret']).toBe(secret);
  });

  it.each(DAMAGES)('that %s while no controller led are made again, and its secret stays', async (how, damage) => {
    const name = `verified-${how.length}`;
    const own = await ClientInstall.make(cluster);
    const first = await own.start();
    await own.apply(team, name);
    const { metadata } = await own.whenReady(team, name);
    const secret = (await own.secret(team, `${name}-oauth`))?.data['client-secret'];
    await first.stop();
    const path = `/api/v1/namespaces/${own.installation.namespace}/secrets/grantry-client-${metadata.uid}`;
    if (damage === undefined) await cluster.call('DELETE', path);
    else await own.patch(path, 'labels' in damage ? { metadata: damage } : damage);
    await own.start();
    const isLabelled = async () =>
      (await cluster.call('GET', path)).body.metadata?.labels?.['grantry.dev/part'] === 'verifier';
    await until('they are there', async () => (await own.accepts(metadata.uid, secret)) && (await isLabelled()));
    expect((await own.secret(team, `${name}-oauth`))?.data['client-secret']).toBe(secret);
  });
});

describe('a client that is gone', () => {
  it('leaves no verifier behind, also when no controller was there to see it go', async () => {
    const first = await install.start();
    for (const name of ['gone-seen', 'gone-unseen']) await install.apply(team, name);
    const seen = (await install.whenReady(team, 'gone-seen')).metadata.uid;
    const unseen = (await install.whenReady(team, 'gone-unseen')).metadata.uid;
    const path = `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients`;
    await cluster.call('DELETE', `${path}/gone-seen`);
    await until('its verifier is gone', async () => (await install.verifiers(seen)) === undefined);
    await first.stop();
    await cluster.call('DELETE', `${path}/gone-unseen`);
    expect(await install.verifiers(unseen)).toBeDefined();
    await install.start();
    await until('its verifier is gone', async () => (await install.verifiers(unseen)) === undefined);
  });

  it('leaves its verifier where its namespace is watched no longer, and no call asks there, until it is again', async () => {
    const own = await ClientInstall.make(cluster);
    const [watched, other] = [await cluster.namespace(), await cluster.namespace()];
    const first = await own.start();
    const uids: Record<string, string> = {};
    for (const [namespace, name] of [
      [watched, 'seen'],
      [other, 'unseen'],
      [other, 'living'],
    ] as const) {
      await own.apply(namespace, name);
      uids[name] = (await own.whenReady(namespace, name)).metadata.uid;
    }
    const secret = await own.secret(other, 'living-oauth');
    await first.stop();
    const path = (namespace: string) => `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`;
    await cluster.call('DELETE', `${path(watched)}/seen`);
    await cluster.call('DELETE', `${path(other)}/unseen`);
    const verifiers = (name: string) => own.verifiers(uids[name] ?? '');
    const proxy = await FaultProxy.start(cluster.address);
    try {
      const narrow = await own.start({ url: proxy.url, watchNamespaces: [watched] });
      await until('the verifier of one that is watched is gone', async () => (await verifiers('seen')) === undefined);
      await narrow.stop();
      expect([await verifiers('unseen'), await verifiers('living')]).toEqual([expect.anything(), expect.anything()]);
      expect(proxy.requests.filter((seen) => seen.path.includes(`/namespaces/${other}/`))).toEqual([]);
      expect(narrow.writes.map(({ verb, name }) => `${verb} ${name}`)).toEqual([`delete grantry-client-${uids.seen}`]);
    } finally {
      await proxy.stop();
    }
    const wide = await own.start();
    await until('the verifier of the other is gone', async () => (await verifiers('unseen')) === undefined);
    await own.apply(other, 'living', { displayName: 'watched again' });
    await own.whenReady(other, 'living');
    expect(await own.secret(other, 'living-oauth')).toEqual(secret);
    expect(await own.accepts(uids.living ?? '', secret?.data['client-secret'])).toBe(true);
    expect(wide.eventsOf('living')).toEqual([]);
  });

  it('and created again gets a new secret, and what it had before counts for nothing', async () => {
    await install.start();
    await install.apply(team, 'anew');
    const before = (await install.whenReady(team, 'anew')).metadata.uid;
    const old = (await install.secret(team, 'anew-oauth'))?.data['client-secret'];
    await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients/anew`);
    await cluster.call('DELETE', `/api/v1/namespaces/${team}/secrets/anew-oauth`);
    await install.apply(team, 'anew');
    const { metadata } = await install.whenReady(team, 'anew');
    expect(metadata.uid).not.toBe(before);
    expect(await install.accepts(metadata.uid, old)).toBe(false);
    expect((await install.secret(team, 'anew-oauth'))?.metadata.labels['grantry.dev/client-uid']).toBe(metadata.uid);
  });

  it('and created again before the watch event of either gets no status of the one before', async () => {
    const own = await ClientInstall.make(cluster);
    const proxy = await FaultProxy.start(cluster.address);
    const secret = `/api/v1/namespaces/${team}/secrets/unheard-oauth`;
    try {
      const controller = await own.start({ url: proxy.url });
      await own.apply(team, 'unheard');
      await own.whenReady(team, 'unheard');
      await controller.whenAtRest(team, 'unheard');
      proxy.stall(watchOf('oauthclients'));
      await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients/unheard`);
      await own.apply(team, 'unheard');
      const isStatus = ({ method, path }: SeenRequest) => method === 'PATCH' && path.endsWith('/unheard/status');
      const before = proxy.count(isStatus);
      await cluster.call('DELETE', secret);
      // A write that is refused is retried.
      await until('it is tried again', () => proxy.count(isStatus) > before + 1).catch(() => {});
      expect((await own.client(team, 'unheard')).status.observedGeneration).toBeUndefined();
      proxy.clear();
      const { metadata } = await own.whenReady(team, 'unheard');
      const labels = (await own.secret(team, 'unheard-oauth'))?.metadata.labels;
      expect(labels['grantry.dev/client-uid']).toBe(metadata.uid);
    } finally {
      await proxy.stop();
    }
  });

  it('and created again during a reconcile gets no status of the one before', async () => {
    const own = await ClientInstall.make(cluster);
    let swapping: Promise<void> | undefined;
    let sources: ControllerSources | undefined;
    const beforeLeading = async (known: ControllerSources) => {
      sources = known;
    };
    const swap = async () => {
      await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients/swapped`);
      await own.apply(team, 'swapped');
      const { uid } = (await own.client(team, 'swapped')).metadata;
      await until('the watch has it', () => sources?.clients.get(`${team}/swapped`)?.metadata.uid === uid);
    };
    const replica = await startReplica(async (path, question) => {
      if (path.endsWith('/report')) return { body: { cursor: '1', lastUsed: {}, denied: {}, alerts: [] } };
      swapping ??= swap();
      await swapping;
      const { uids } = question as { uids: string[] };
      const served = uids.map((uid) => [uid, { generation: 1, secretRevision: 1 }]);
      return { body: { clients: Object.fromEntries(served), keyIds: [] } };
    });
    const told: boolean[] = [];
    const before = async ({ kind, name }: { kind: string; name: string }) => {
      if (swapping === undefined || kind !== 'OAuthClient' || name !== 'swapped') return;
      const { uid } = (await own.client(team, 'swapped')).metadata;
      told.push((await own.verifiers(uid)) !== undefined);
    };
    await own.start({ replicas: [replica], before, beforeLeading });
    await own.apply(team, 'swapped');
    await until('it is created again', () => swapping !== undefined);
    await swapping;
    await own.whenReady(team, 'swapped');
    expect([told.length > 0, told.every(Boolean)]).toEqual([true, true]);
  });

  it('with its namespace is not followed there, and nothing is tried twice', async () => {
    const own = await ClientInstall.make(cluster);
    const namespace = await cluster.namespace();
    const controller = await own.start();
    await own.apply(namespace, 'ending');
    await own.whenReady(namespace, 'ending');
    await cluster.call('DELETE', `/api/v1/namespaces/${namespace}`);
    await cluster.call('DELETE', `/api/v1/namespaces/${namespace}/secrets/ending-oauth`);
    const tries = () => controller.writes.filter(({ verb, name }) => verb === 'create' && name === 'ending-oauth');
    await until('it was tried once', () => tries().length === 2);
    // A client that is reconciled after it.
    await own.apply(team, 'after-ending');
    await own.whenReady(team, 'after-ending');
    expect(tries()).toHaveLength(2);
    expect(await own.secret(namespace, 'ending-oauth')).toBeUndefined();
    expect(controller.eventsOf('ending')).toEqual(['SecretCreated']);
  });
});
