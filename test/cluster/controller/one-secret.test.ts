// A client has one secret until it is rotated: whatever becomes of a write of it, and whichever controller leads
// meanwhile. What could once be read in its Secret stays there, and is accepted from that moment on.

import { beforeAll, expect, it, type TestContext } from 'vitest';
import { until } from '../../until.ts';
import { ClientInstall, type Write } from '../setup/client-controllers.ts';
import { FaultProxy, watchOf } from '../setup/fault-proxy.ts';
import { SecretHistory } from '../setup/secret-history.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const HOUR = 3_600_000;
const RESTORED = 'an-example-value-that-comes-back-from-a-backup';
const cluster = sharedCluster();
let team: string;
beforeAll(async () => {
  team = await cluster.namespace();
});

/** A write that waits on its way until it is let go. @param nth of those of this verb and name, from 1 */
function held(verb: Write['verb'], name: string, nth = 1) {
  const [sent, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let seen = 0;
  const onItsWay = async (write: Write) => {
    if (write.verb !== verb || write.name !== name || ++seen !== nth) return;
    sent.resolve();
    await released.promise;
  };
  return { onItsWay, sent: sent.promise, arrives: () => released.resolve() };
}

async function followed(context: TestContext) {
  const install = await ClientInstall.make(cluster, context);
  const history = await SecretHistory.follow(cluster, install.installation, context);
  return { install, history };
}

it.concurrent.for([
  ['of its verifier', 'unanswered-verifier', ({ name }: Write) => name.startsWith('grantry-client-')],
  ['of its Secret', 'unanswered-secret', ({ name }: Write) => name.endsWith('-oauth')],
] as const)(
  'a write %s that happened and was not answered is no reason for another secret',
  async ([, name, isMeant], context) => {
    const { install, history } = await followed(context);
    let left = 1;
    const isUnanswered = (write: Write) => write.verb === 'create' && isMeant(write) && left-- > 0;
    const controller = await install.start({ isUnanswered });
    await install.apply(team, name);
    const { metadata } = await install.whenReady(team, name);
    expect(left).toBeLessThanOrEqual(0);
    const { values, ...told } = (await history.upToNow()).get(metadata.uid) ?? {};
    expect([values?.length, told]).toEqual([1, { made: 1, madeAfterwards: 0, refused: [] }]);
    const verifiers = (await install.verifiers(metadata.uid))?.verifiers;
    expect(verifiers).toMatchObject([{ revision: 1 }]);
    expect(controller.eventsOf(name)).not.toContain('DriftRepaired');
  },
);

it.concurrent('a first secret that arrives when another controller leads and has made one as well is accepted, and gives way to that one', async (context) => {
  const { install, history } = await followed(context);
  const [early, late] = [held('create', 'late-oauth'), held('create', 'late-oauth')];
  const first = await install.start(early);
  await install.apply(team, 'late');
  await early.sent;
  first.losesLease();
  await install.start(late);
  await late.sent;
  early.arrives();
  const secret = async () => (await install.secret(team, 'late-oauth'))?.data['client-secret'];
  await until('it has arrived', async () => (await secret()) !== undefined);
  const arrived = await secret();
  late.arrives();
  const { metadata } = await install.whenReady(team, 'late');
  await until('the other one is there', async () => (await secret()) !== arrived);
  const last = await secret();
  expect([await install.accepts(metadata.uid, last), await install.accepts(metadata.uid, arrived)]).toEqual([
    true,
    true,
  ]);
  const told = (await history.upToNow()).get(metadata.uid);
  expect(told).toEqual({ values: [arrived, last], made: 2, madeAfterwards: 0, refused: [] });
  install.ahead = 25 * HOUR;
  await install.poke(team, 'late');
  await until('it has ended', async () => (await install.verifiers(metadata.uid))?.verifiers.length === 1);
  expect([await secret(), await install.accepts(metadata.uid, last)]).toEqual([last, true]);
});

it.concurrent.for([
  ['before', 'slow-before'],
  ['after', 'slow-after'],
] as const)(
  'the next secret that a former leader publishes %s another one leads is the staged one, and the only one',
  async ([when, name], context) => {
    const { install, history } = await followed(context);
    const publishes = held('apply', `${name}-oauth`, 2);
    const first = await install.start(publishes);
    await install.apply(team, name);
    const { metadata } = await install.whenReady(team, name);
    const data = async () => (await install.secret(team, `${name}-oauth`))?.data ?? {};
    const { 'client-secret': old } = await data();
    await install.apply(team, name, {}, { annotations: { 'grantry.dev/rotate-requested-at': 'once' } });
    // There is no replica to ask: the rotation waits a while.
    await until('it is staged', async () => 'client-secret.next' in (await data()));
    const { 'client-secret.next': staged } = await data();
    install.ahead += 6000;
    await install.poke(team, name);
    await publishes.sent;
    first.losesLease();
    const arrives = async () => {
      publishes.arrives();
      if (when === 'before') await until('it has arrived', async () => (await data())['client-secret'] !== old);
    };
    if (when === 'before') await arrives();
    const second = await install.start();
    await until('the rotation is over', async () => {
      return (await install.verifiers(metadata.uid))?.verifiers[1]?.expiresAt !== undefined;
    });
    await arrives();
    await second.whenAtRest(team, name);
    expect([(await data())['client-secret'], 'client-secret.next' in (await data())]).toEqual([staged, false]);
    expect((await history.upToNow()).get(metadata.uid)).toMatchObject({ values: [old, staged], made: 2, refused: [] });
  },
);

it.concurrent('a Secret that is restored when the verifier of a first secret is stored keeps its value, also after a fail-over', async (context) => {
  const { install } = await followed(context);
  const first = await install.start({ diesBefore: ({ name }) => name === 'restored-late-oauth' });
  await install.apply(team, 'restored-late');
  const { uid } = (await install.client(team, 'restored-late')).metadata;
  await until('it is stored', async () => (await install.verifiers(uid)) !== undefined);
  await first.stop();
  const labels = { 'grantry.dev/client': 'restored-late', 'grantry.dev/client-uid': crypto.randomUUID() };
  const metadata = { namespace: team, name: 'restored-late-oauth', labels };
  await cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { 'client-secret': RESTORED } });
  const second = await install.start();
  await install.whenReady(team, 'restored-late');
  expect((await install.secret(team, 'restored-late-oauth'))?.data['client-secret']).toBe(RESTORED);
  expect(await install.accepts(uid, RESTORED)).toBe(true);
  expect(second.eventsOf('restored-late')).toEqual(['SecretAdopted']);
});

it.concurrent('a Secret that is renamed before its watch event stays for its grace, and no value but the next is made', async (context) => {
  const { install, history } = await followed(context);
  const proxy = await FaultProxy.start(cluster.address);
  try {
    await install.start({ url: proxy.url });
    proxy.stall((seen) => watchOf('secrets')(seen) && seen.path === '/api/v1/secrets');
    await install.apply(team, 'unseen');
    const { metadata } = await install.whenReady(team, 'unseen');
    const value = (await install.secret(team, 'unseen-oauth'))?.data['client-secret'];
    await install.apply(team, 'unseen', { auth: { clientSecret: { secretName: 'seen' } } });
    await until('it has its name', async () => (await install.secret(team, 'seen')) !== undefined);
    const next = (await install.secret(team, 'seen'))?.data['client-secret'];
    expect([await install.accepts(metadata.uid, value), await install.accepts(metadata.uid, next)]).toEqual([
      true,
      true,
    ]);
    expect((await history.upToNow()).get(metadata.uid)).toMatchObject({ values: [value, next], made: 2, refused: [] });
    install.ahead = 25 * HOUR;
    await install.poke(team, 'unseen');
    await until('the old one is gone', async () => (await install.secret(team, 'unseen-oauth')) === undefined);
  } finally {
    await proxy.stop();
  }
});
