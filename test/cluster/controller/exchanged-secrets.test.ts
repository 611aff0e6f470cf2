// An owner who exchanges a Secret between the controller's read of it and the write that follows: what stands there by
// then is neither overwritten nor removed. The controller may write any Secret of the cluster, and would else be made
// to.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { ClientInstall, type Write } from '../setup/client-controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const THEIRS = { 'client-secret': 'an-example-value-of-somebody-else-altogether' };
const cluster = sharedCluster();
let team: string;
let install: ClientInstall;
const stops: (() => Promise<void>)[] = [];
/** What happens right before the controller writes a Secret, by its name. */
const beforeWriteOf = new Map<string, (write: Write) => Promise<void>>();
beforeAll(async () => {
  team = await cluster.namespace();
  // One controller for all tests, which are concurrent.
  install = await ClientInstall.make(cluster, { onTestFinished: (stop) => stops.push(stop) });
  const before = async (write: Write) => await beforeWriteOf.get(write.name)?.(write);
  await install.start({ before });
});
afterAll(async () => void (await Promise.all(stops.map((stop) => stop()))));

const pathOf = (name: string) => `/api/v1/namespaces/${team}/secrets/${name}`;
const labelsOfAnother = () => ({ 'grantry.dev/client': 'another', 'grantry.dev/client-uid': crypto.randomUUID() });

async function replace(name: string, labels: Record<string, string> = {}): Promise<void> {
  await cluster.call('DELETE', pathOf(name));
  const metadata = { namespace: team, name, labels };
  await cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: THEIRS });
}

const EXCHANGES: readonly (readonly [how: string, exchange: (name: string) => Promise<unknown>])[] = [
  ["another's", (name) => replace(name)],
  ["another's that says so", (name) => replace(name, labelsOfAnother())],
  [
    'the same one in the hands of another',
    (name) => install.patch(pathOf(name), { metadata: { labels: labelsOfAnother() }, stringData: THEIRS }),
  ],
];

/** A write about a client, and what leads to it once the client is Ready. */
interface Moment {
  readonly what: string;
  readonly verb: Write['verb'];
  readonly provoke: (client: string) => Promise<unknown>;
  /** How it ends for the client. */
  readonly ends: readonly [condition: string, reason: string];
}

const NOT_OWNED = ['CredentialsReady', 'SecretNotOwned'] as const;
const READY = ['Ready', 'Ready'] as const;
const KEYS = { auth: { clientSecret: { keys: { clientId: 'ID' } } } };
const MOMENTS: readonly Moment[] = [
  {
    what: 'put back',
    verb: 'apply',
    ends: NOT_OWNED,
    provoke: (client) => install.patch(pathOf(`${client}-oauth`), { stringData: { 'client-id': 'wrong' } }),
  },
  {
    what: 'given a new value',
    verb: 'apply',
    ends: NOT_OWNED,
    provoke: (client) => install.apply(team, client, {}, { annotations: { 'grantry.dev/rotate-now': 'now' } }),
  },
  {
    what: 'rid of a key',
    verb: 'apply',
    ends: NOT_OWNED,
    provoke: (client) => install.apply(team, client, KEYS),
  },
  {
    what: 'half-way rid of a key',
    verb: 'merge',
    ends: NOT_OWNED,
    provoke: (client) => install.apply(team, client, KEYS),
  },
  {
    what: 'removed under its old name',
    verb: 'delete',
    ends: READY,
    provoke: (client) => {
      // Without a grace: it is removed at once.
      const clientSecret = { secretName: `${client}-anew`, rotation: { gracePeriod: '0s' } };
      return install.apply(team, client, { auth: { clientSecret } });
    },
  },
  {
    what: 'removed because it is not needed',
    verb: 'delete',
    ends: READY,
    provoke: (client) =>
      install.apply(team, client, {
        grantTypes: ['authorization_code'],
        redirectUris: ['https://app.example/back'],
        auth: { method: 'none' },
      }),
  },
];

let count = 0;
it.concurrent.each(MOMENTS.flatMap((moment) => EXCHANGES.map(([how, exchange]) => ({ ...moment, how, exchange }))))(
  'a Secret that is to be $what stays as it is when by then it is $how',
  async (row) => {
    const { verb, provoke, ends, exchange } = row;
    const client = `exchanged-${++count}`;
    const name = `${client}-oauth`;
    await install.apply(team, client);
    await install.whenReady(team, client);
    const ours = await install.secret(team, name);
    // biome-ignore lint/suspicious/noExplicitAny: an object of the API server
    let theirs: any;
    beforeWriteOf.set(name, async (write) => {
      if (theirs !== undefined || write.verb !== verb) return;
      await exchange(name);
      theirs = await install.secret(team, name);
    });
    await provoke(client);
    await install.whenCondition(team, client, ...ends);
    expect(theirs.data).toMatchObject(THEIRS);
    expect(theirs.data['client-secret']).not.toBe(ours?.data['client-secret']);
    expect(await install.secret(team, name)).toEqual(theirs);
  },
);

it.concurrent.each(EXCHANGES.slice(0, 2))(
  'a Secret that is to be made stays as it is when by then there is %s',
  async (_, exchange) => {
    const client = `exchanged-${++count}`;
    const name = `${client}-oauth`;
    let isExchanged = false;
    beforeWriteOf.set(name, async (write) => {
      if (isExchanged || write.verb !== 'create') return;
      isExchanged = true;
      await exchange(name);
    });
    await install.apply(team, client);
    await install.whenCondition(team, client, ...NOT_OWNED);
    expect((await install.secret(team, name))?.data).toEqual(THEIRS);
  },
);
