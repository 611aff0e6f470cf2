// Notices that a client's host does not take, over HTTP and by a clock that only the test moves: when each try comes, when its
// token expires, and what is recorded at the end (OpenID Connect Back-Channel Logout 1.0 §2.4, §2.8).

import { createLocalJWKSet, errors, jwtVerify } from 'jose';
import { expect, it, onTestFinished } from 'vitest';
import { hintFor, idTokenKey, OPENID, openidPath, signedIn } from '../../http/sign-in/openid-world.ts';
import { aWorld, type World } from '../../http/sign-in/sign-in-world.ts';
import { until } from '../../until.ts';
import { type Receiver, startReceiver } from '../../webhook/receiver.ts';

const SECOND = 1000;
/** The pauses after each failed try: 5 s, twice that each time, at most 10 min. */
const PAUSES = [5, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600].map((seconds) => seconds * SECOND);
const key = await idTokenKey();

/** A client whose host answers so, or not at all, and a person who has signed in to it and out again. */
async function signedOut(
  status: number | undefined,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly world: World; readonly host: Receiver }> {
  const host = await startReceiver();
  onTestFinished(() => host.stop());
  host.answer = status === undefined ? undefined : { status, headers };
  const client = { ...OPENID, backchannelLogoutUri: host.url };
  const world = await aWorld({ clients: [client], keys: [key], fetch: { networks: ['127.0.0.0/8'] } });
  const browser = await signedIn(world);
  expect((await browser.get(openidPath(world))).status).toBe(302);
  const hint = await hintFor(world, 'alice', key);
  expect((await browser.get(`/logout?${new URLSearchParams({ id_token_hint: hint })}`)).status).toBe(200);
  return { world, host };
}

async function countsOf(world: World): Promise<Readonly<Record<string, number>>> {
  const lines = (await world.metrics()).matchAll(/^grantry_logout_deliveries_total\{outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]));
}

const ended = (world: World, outcome: string, count: number) =>
  until(`${count} tries are counted as ${outcome}`, async () => (await countsOf(world))[outcome] === count);

function audited(world: World): readonly unknown[] {
  const events = world.logs().filter(({ stream, event }) => stream === 'audit' && String(event).startsWith('logout.'));
  return events.map(({ event, clientId, subject, reason }) => ({ event, clientId, subject, reason }));
}

/** The claims of the last notice, as its client verifies it at this time. */
async function verified(world: World, { received }: Receiver, at: number) {
  const token = new URLSearchParams(received.at(-1)?.body).get('logout_token') ?? '';
  const keys = createLocalJWKSet({ keys: [key.publicJwk] });
  const { issuer } = world;
  const expected = { issuer, audience: OPENID.clientId, typ: 'logout+jwt', currentDate: new Date(at) };
  return (await jwtVerify(token, keys, expected)).payload;
}

it('given a host that fails → a try after 5 s, twice that, up to 10 min, each with a new token; after an hour given up', async () => {
  const { world, host } = await signedOut(500);
  await ended(world, 'failed', 1);
  const names = new Set<unknown>();
  for (const [index, pause] of PAUSES.entries()) {
    names.add((await verified(world, host, world.now())).jti);
    world.advance(pause - 1);
    await world.sweepLogouts();
    expect(host.received).toHaveLength(index + 1);
    world.advance(1);
    await world.sweepLogouts();
    await ended(world, 'failed', index + 2);
    expect((await verified(world, host, world.now())).iat).toBe(Math.floor(world.now() / SECOND));
  }
  await ended(world, 'dead_letter', 1);
  expect(names.size).toBe(PAUSES.length);
  expect(await countsOf(world)).toMatchObject({ failed: PAUSES.length + 1, dead_letter: 1 });
  const given = { clientId: OPENID.clientId, subject: world.subject('alice') };
  expect(audited(world)).toEqual([{ event: 'logout.given_up', ...given, reason: undefined }]);
  world.advance(3600 * SECOND);
  await world.sweepLogouts();
  expect(host.received).toHaveLength(PAUSES.length + 1);
});

it('given a host that works again → delivered at the next try, and not once more', async () => {
  const { world, host } = await signedOut(503);
  await ended(world, 'failed', 1);
  host.answer = { status: 204 };
  world.advance(5 * SECOND);
  await world.sweepLogouts();
  await ended(world, 'delivered', 1);
  world.advance(3600 * SECOND);
  await world.sweepLogouts();
  expect(await countsOf(world)).toMatchObject({ failed: 1, delivered: 1 });
  expect(host.received).toHaveLength(2);
  expect(audited(world)).toMatchObject([{ event: 'logout.delivered', reason: undefined }]);
});

it('given a host that changes the protocol → failed, and delivered at the next try', async () => {
  const { world, host } = await signedOut(101, { connection: 'upgrade', upgrade: 'websocket' });
  await ended(world, 'failed', 1);
  host.answer = { status: 204 };
  world.advance(5 * SECOND);
  await world.sweepLogouts();
  await ended(world, 'delivered', 1);
});

it('given a host that refuses → done, and the audit line says so', async () => {
  const { world, host } = await signedOut(403);
  await ended(world, 'refused', 1);
  world.advance(3600 * SECOND);
  await world.sweepLogouts();
  expect(host.received).toHaveLength(1);
  expect(audited(world)).toMatchObject([{ event: 'logout.delivered', reason: 'refused' }]);
});

it('given a host that does not answer → the browser is answered, and waits for no notice', async () => {
  const { world, host } = await signedOut(undefined);
  expect(await countsOf(world)).toEqual({ dead_letter: 0 });
  await until('the host is asked', () => host.received.length === 1);
  host.answer = { status: 200 };
  host.answerWaiting();
  await ended(world, 'delivered', 1);
});

it('the token of a notice → good until 120 s after it was made, and not at that second', async () => {
  const { world, host } = await signedOut(204);
  await ended(world, 'delivered', 1);
  const { exp = 0, iat } = await verified(world, host, world.now());
  expect(exp).toBe(Number(iat) + 120);
  expect(await verified(world, host, exp * SECOND - 1)).toHaveProperty('events');
  await expect(verified(world, host, exp * SECOND)).rejects.toThrow(errors.JWTExpired);
});
