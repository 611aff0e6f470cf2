// Text of a tenant that cannot be seen, or that YAML does not take as it is: the controller reports on every client that
// the API server takes, and prints nothing of it raw.

import { beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { FIELDS, secretTemplate, UNSEEN } from '../setup/unseen-text.ts';

const cluster = sharedCluster();
/** A verdict comes within this time. Milliseconds. */
const VERDICT = 2000;

let install: ClientInstall;
let team: string;

beforeAll(async () => {
  install = await ClientInstall.make(cluster);
  team = await cluster.namespace();
});

/** What the controller reports of a client; undefined while this generation has no verdict. */
async function verdictOn(name: string): Promise<object | undefined> {
  const { metadata, status } = await install.client(team, name);
  return status?.observedGeneration === metadata.generation ? status : undefined;
}

it.each(Object.entries(FIELDS))(
  'a client with a character in its %s that cannot be seen → a verdict within 2 s, in printable ASCII',
  async (field, withText) => {
    const controller = await install.start();
    const names = Object.keys(UNSEEN).map((character) => `${field}-${character}`);
    const path = `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients`;
    const made = Object.entries(UNSEEN).map(async ([character, odd]) => {
      const { spec = {}, metadata = {} } = withText(`a${odd}b`);
      const body = install.manifest(team, `${field}-${character}`, spec, metadata);
      return (await cluster.call('POST', path, { body })).status;
    });
    expect(new Set(await Promise.all(made))).toEqual(new Set([201]));
    const haveVerdicts = async () => (await Promise.all(names.map(verdictOn))).every((status) => status !== undefined);
    await until('each of them has a verdict', haveVerdicts, VERDICT).catch(() => {});
    const raw = await Promise.all(names.map(async (name) => [name, await verdictOn(name)] as const));
    expect(raw.filter(([, status]) => status === undefined).map(([name]) => name)).toEqual([]);
    expect(raw.filter(([, status]) => !/^[\x20-\x7e]*$/.test(JSON.stringify(status)))).toEqual([]);
    expect(controller.notes().filter((note) => !/^[\x20-\x7e]*$/.test(note))).toEqual([]);
  },
);

it('a request to cut a secret with a character that cannot be seen → a new secret, and the annotation as it was asked for', async () => {
  await install.start();
  const odd = Object.values(UNSEEN).join('');
  // The API server keeps no half of a pair.
  const kept = odd.toWellFormed();
  const path = `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients`;
  await cluster.call('POST', path, {
    body: install.manifest(team, 'cut', secretTemplate({ annotations: { note: kept } })),
  });
  await install.whenReady(team, 'cut');
  const before = await install.secret(team, 'cut-oauth');
  await install.patch(`${path}/cut`, { metadata: { annotations: { 'grantry.dev/rotate-now': odd } } });
  const secret = () => install.secret(team, 'cut-oauth');
  const isCut = async () => (await secret())?.data['client-secret'] !== before?.data['client-secret'];
  await until('there is a new secret', isCut, VERDICT);
  expect((await secret())?.metadata.annotations.note).toBe(kept);
});
