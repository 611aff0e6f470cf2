// The Secret that a client had under another name, or from before it went without: it goes, and nothing else does, whatever
// it is labelled.

import { beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ClientInstall, type Write } from '../setup/client-controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();
let install: ClientInstall;
let team: string;
beforeAll(async () => {
  install = await ClientInstall.make(cluster);
  team = await cluster.namespace();
});

const named = (secretName: string) => ({ auth: { clientSecret: { secretName } } });

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
    await isGone('changing-oauth');
    await install.whenReady(team, 'changing');
    expect(await data()).toEqual(before);
    expect(controller.eventsOf('changing')).toEqual(['SecretCreated']);
  });

  it('stays when the Secret of the client moves to another name, which takes its own value there', async () => {
    const first = await install.start();
    await install.apply(team, 'moving');
    const { data, before } = await labelled('moving');
    // The next leader gets the copy first, by the order of their names.
    await first.stop();
    await install.start();
    await install.patch(`/api/v1/namespaces/${team}/secrets/moving-copy`, { stringData: { 'client-secret': 'old' } });
    const value = (await install.secret(team, 'moving-oauth'))?.data;
    await install.apply(team, 'moving', named('moving-new'));
    await isGone('moving-oauth');
    await install.whenReady(team, 'moving');
    expect((await install.secret(team, 'moving-new'))?.data).toEqual(value);
    expect(await data()).toEqual([{ ...before[0], 'client-secret': 'old' }, before[1]]);
  });

  it('stays when another controller leads', async () => {
    const first = await install.start();
    await install.apply(team, 'led');
    const { data, before } = await labelled('led');
    await first.stop();
    await install.start();
    await install.apply(team, 'led', named('led-new'));
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
    const removals = () =>
      controller.writes.filter((write) => write.verb === 'delete' && write.name === `${name}-oauth`);
    await until('it was tried so often', () => removals().length === tries);
    if (tries > 1) await isGone(`${name}-oauth`);
    await install.whenReady(team, name);
    expect((await install.secret(team, `${name}-oauth`)) === undefined).toBe(tries > 1);
    expect(removals()).toHaveLength(tries);
  });
});
