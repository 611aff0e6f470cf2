// The Secret that a client had under another name, or from before it went without: it goes once its value is not accepted
// any more, and nothing else does, whatever it is labelled.

import { beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ClientInstall, type Write } from '../setup/client-controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const HOUR = 3_600_000;
const cluster = sharedCluster();
let install: ClientInstall;
let team: string;
beforeAll(async () => {
  install = await ClientInstall.make(cluster);
  team = await cluster.namespace();
});

const named = (secretName: string) => ({ auth: { clientSecret: { secretName } } });

async function secretIn(name: string): Promise<string | undefined> {
  return (await install.secret(team, name))?.data['client-secret'];
}

async function endGraceOf(client: string): Promise<void> {
  install.ahead += 25 * HOUR;
  await install.poke(team, client);
}

function isGone(secret: string): Promise<void> {
  return until(`${secret} is gone`, async () => (await install.secret(team, secret)) === undefined);
}

async function kubectl(args: readonly string[], input = ''): Promise<string> {
  const { code, output, errors } = await cluster.kubectl([...args, '--namespace', team], { input });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${errors}`);
  return output;
}

describe('a Secret that another writer made and that has the labels of a client', () => {
  /** A copy of a client's Secret under another name, as a person makes one; and a Secret that only got the labels. */
  async function labelled(client: string) {
    const { uid } = (await install.whenReady(team, client)).metadata;
    const manifest = await kubectl(['get', 'secret', `${client}-oauth`, '--output', 'yaml']);
    await kubectl(['apply', '--filename', '-'], manifest.replace(`name: ${client}-oauth`, `name: ${client}-copy`));
    await kubectl(['create', 'secret', 'generic', `${client}-database`, '--from-literal=password=theirs']);
    const labels = [`grantry.dev/client=${client}`, `grantry.dev/client-uid=${uid}`];
    await kubectl(['label', 'secret', `${client}-database`, ...labels]);
    const names = [`${client}-copy`, `${client}-database`];
    const data = () => Promise.all(names.map(async (name) => (await install.secret(team, name))?.data));
    return { data, before: await data() };
  }

  it('stays when the client changes, and no Event is about it', async () => {
    const controller = await install.start();
    await install.apply(team, 'changing');
    const { data, before } = await labelled('changing');
    await install.apply(team, 'changing', { displayName: 'Changed' });
    await install.whenReady(team, 'changing');
    await install.apply(team, 'changing', { displayName: 'Changed again', ...named('changing-new') });
    await install.whenReady(team, 'changing');
    await endGraceOf('changing');
    await isGone('changing-oauth');
    expect(await data()).toEqual(before);
    await controller.expectEventsOf('changing', ['SecretCreated', 'DriftRepaired', 'PreviousSecretExpired']);
  });

  it('stays when the client gives another name, and its value does not become that of the client', async () => {
    const first = await install.start();
    await install.apply(team, 'moving');
    const { data, before } = await labelled('moving');
    // The next leader gets the copy first, by the order of their names.
    await first.stop();
    await install.start();
    await install.patch(`/api/v1/namespaces/${team}/secrets/moving-copy`, { stringData: { 'client-secret': 'old' } });
    await install.apply(team, 'moving', named('moving-new'));
    const { uid } = (await install.whenReady(team, 'moving')).metadata;
    const value = await secretIn('moving-new');
    expect([await install.accepts(uid, value), await install.accepts(uid, 'old')]).toEqual([true, false]);
    await endGraceOf('moving');
    await isGone('moving-oauth');
    expect(await data()).toEqual([{ ...before[0], 'client-secret': 'old' }, before[1]]);
  });

  it('stays when another controller leads', async () => {
    const first = await install.start();
    await install.apply(team, 'led');
    const { data, before } = await labelled('led');
    await first.stop();
    await install.start();
    await install.apply(team, 'led', named('led-new'));
    await install.whenReady(team, 'led');
    await endGraceOf('led');
    await isGone('led-oauth');
    expect(await data()).toEqual(before);
  });
});

describe('a client that goes without a secret', () => {
  const person = { grantTypes: ['authorization_code'], redirectUris: ['https://app.example/back'] };

  it.each([
    ['loses its verifier and its Secret', 'public', {}, true],
    [
      'loses its verifier, and keeps the Secret that is to outlive it',
      'public-kept',
      { deletionPolicy: 'Retain' },
      false,
    ],
  ])('%s', async (_, name, clientSecret, goes) => {
    await install.start();
    await install.apply(team, name, { ...person, auth: { clientSecret } });
    const { uid } = (await install.whenReady(team, name)).metadata;
    const before = await install.secret(team, `${name}-oauth`);
    expect(await install.verifiers(uid)).toBeDefined();
    await install.apply(team, name, { ...person, auth: { method: 'none' } });
    await install.whenReady(team, name);
    const verifier = `/api/v1/namespaces/${install.installation.namespace}/secrets/grantry-client-${uid}`;
    expect((await cluster.call('GET', verifier)).status).toBe(404);
    expect((await install.secret(team, `${name}-oauth`))?.data).toEqual(goes ? undefined : before?.data);
  });
});

describe('the former name of a Secret', () => {
  it('has it with the value from before for the grace, and the Secret of the new name has another one', async () => {
    const controller = await install.start();
    await install.apply(team, 'rolls');
    const { uid } = (await install.whenReady(team, 'rolls')).metadata;
    const former = await install.secret(team, 'rolls-oauth');
    await install.apply(team, 'rolls', named('rolls-new'));
    await until('it has its name', async () => (await install.secret(team, 'rolls-new')) !== undefined);
    await install.whenReady(team, 'rolls');
    await controller.whenAtRest(team, 'rolls');
    const [old, current] = [await secretIn('rolls-oauth'), await secretIn('rolls-new')];
    expect(await install.secret(team, 'rolls-oauth')).toEqual(former);
    expect([old === current, await install.accepts(uid, old), await install.accepts(uid, current)]).toEqual([
      false,
      true,
      true,
    ]);
    await endGraceOf('rolls');
    await isGone('rolls-oauth');
    expect([await install.accepts(uid, old), await install.accepts(uid, await secretIn('rolls-new'))]).toEqual([
      false,
      true,
    ]);
  });

  it('that the client gives again → a rotation of what is under it, whose value is in its grace', async () => {
    await install.start();
    await install.apply(team, 'returns');
    const { uid } = (await install.whenReady(team, 'returns')).metadata;
    const first = await secretIn('returns-oauth');
    await install.apply(team, 'returns', named('returns-new'));
    await until('it has its name', async () => (await secretIn('returns-new')) !== undefined);
    await install.whenReady(team, 'returns');
    const second = await secretIn('returns-new');
    await install.apply(team, 'returns', {});
    await until('it has another value', async () => {
      install.ahead += 1000;
      await install.poke(team, 'returns');
      return (await secretIn('returns-oauth')) !== first;
    });
    await install.whenReady(team, 'returns');
    const values = [await secretIn('returns-oauth'), second, first];
    expect(new Set(values).size).toBe(3);
    expect(await Promise.all(values.map((value) => install.accepts(uid, value)))).toEqual([true, true, true]);
    await endGraceOf('returns');
    await isGone('returns-new');
    expect(await Promise.all(values.map((value) => install.accepts(uid, value)))).toEqual([true, false, false]);
  });

  it('is removed at once where the value under it is cut', async () => {
    await install.start();
    await install.apply(team, 'leaked');
    await install.whenReady(team, 'leaked');
    await install.apply(team, 'leaked', named('leaked-new'), { annotations: { 'grantry.dev/rotate-now': 'now' } });
    await isGone('leaked-oauth');
  });

  it("may be another client's by the time at which it would be removed: what is there stays", async () => {
    let taken: Awaited<ReturnType<ClientInstall['secret']>>;
    const before = async ({ verb, name }: Write) => {
      if (taken !== undefined || verb !== 'create' || name !== 'kept') return;
      await cluster.call('DELETE', `/api/v1/namespaces/${team}/secrets/given`);
      await install.apply(team, 'taker', named('given'));
      await install.whenReady(team, 'taker');
      taken = await install.secret(team, 'given');
    };
    await install.start({ before });
    await install.apply(team, 'giver', named('given'));
    await install.whenReady(team, 'giver');
    await install.apply(team, 'giver', named('kept'));
    await install.whenReady(team, 'giver');
    await endGraceOf('giver');
    await until('the grace is over', async () => {
      const { uid } = (await install.whenReady(team, 'giver')).metadata;
      return (await install.verifiers(uid))?.verifiers.length === 1;
    });
    expect(taken?.metadata.labels['grantry.dev/client']).toBe('taker');
    expect(await install.secret(team, 'given')).toEqual(taken);
  });

  it.each([
    ['is taken away from the client: it stays', 'let-be', { labels: { 'grantry.dev/client-uid': null } }, 1],
    ['is changed otherwise: it goes all the same', 'looked-at', { annotations: { 'example.com/seen': 'yes' } }, 2],
  ])('in the very moment in which it is removed %s', async (_, name, metadata, tries) => {
    let isChanged = false;
    const before = async (write: Write) => {
      if (isChanged || write.verb !== 'delete' || write.name !== `${name}-oauth`) return;
      isChanged = true;
      await install.patch(`/api/v1/namespaces/${team}/secrets/${name}-oauth`, { metadata });
    };
    const controller = await install.start({ before });
    await install.apply(team, name);
    await install.whenReady(team, name);
    await install.apply(team, name, named(`${name}-new`));
    await until('it has its name', async () => (await install.secret(team, `${name}-new`)) !== undefined);
    await install.whenReady(team, name);
    await endGraceOf(name);
    const removals = () =>
      controller.writes.filter((write) => write.verb === 'delete' && write.name === `${name}-oauth`);
    await until('it was tried so often', () => removals().length === tries);
    if (tries > 1) await isGone(`${name}-oauth`);
    await install.whenReady(team, name);
    expect((await install.secret(team, `${name}-oauth`)) === undefined).toBe(tries > 1);
    expect(removals()).toHaveLength(tries);
  });
});
