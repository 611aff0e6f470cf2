// Notices of ended sessions (OpenID Connect Back-Channel Logout 1.0), from the sign-out of a browser to the host of a client.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { type AddressLookup, UnknownNameError } from '../../../src/outbound/name-lookup.ts';
import { idTokenKey, OPENID, openidPath, signedIn, submitLogin } from '../../http/sign-in/openid-world.ts';
import { hidden, type TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import { aWorld, type World } from '../../http/sign-in/sign-in-world.ts';
import { until } from '../../until.ts';

const LOOPBACK = { networks: ['127.0.0.0/8'] };
/** Between two tries, milliseconds. */
const LONGEST_PAUSE = 600_000;
const key = await idTokenKey();

/** Which hosts may be called, and how their names are looked up. */
interface Reach {
  readonly networks: readonly string[];
  readonly lookup?: AddressLookup;
}

interface Notice {
  readonly request: IncomingMessage;
  readonly body: string;
}

/** The host of a client, which answers as the test says. It ends with the test. */
async function aHost(answer: (response: ServerResponse) => void) {
  const notices: Notice[] = [];
  const server = createServer(async (request, response) => {
    notices.push({ request, body: await text(request) });
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(stop);
  const { port } = server.address() as AddressInfo;
  return { notices, stop, uri: `http://127.0.0.1:${port}/backchannel?a=b` };
}

function answering(status: number, headers: Readonly<Record<string, string>> = {}) {
  return (response: ServerResponse): void => {
    response.writeHead(status, headers).end();
  };
}

function endless(response: ServerResponse): void {
  response.writeHead(200).write('x');
}

/** A world with one client, signed in to by alice. */
async function aNoticeWorld(backchannelLogoutUri: string, { lookup, ...fetch }: Reach = LOOPBACK) {
  const client = { ...OPENID, backchannelLogoutUri };
  const world = await aWorld({ clients: [client], keys: [key], fetch, ...(lookup && { lookup }) });
  const browser = await signedIn(world);
  expect((await browser.get(openidPath(world))).status).toBe(302);
  return { world, browser };
}

/** Answers the question. */
async function signOut(browser: TestBrowser): Promise<void> {
  const csrf = hidden(await browser.get('/logout'), 'csrf');
  expect((await browser.post('/logout/confirm', { csrf })).status).toBe(200);
}

/** How often notices ended so, by the metrics. */
async function countOf(world: World, outcome: string): Promise<number> {
  const [, count = '0'] =
    new RegExp(`logout_deliveries_total\\{outcome="${outcome}"\\} (\\d+)`).exec(await world.metrics()) ?? [];
  return Number(count);
}

/**
 * Waits until one notice has ended so. The clock stands: after a try that fails it goes on beyond the longest pause, for the
 * next one.
 */
async function ended(world: World, outcome: string): Promise<void> {
  let failures = 0;
  await until(`the notice is ${outcome}`, async () => {
    const failed = await countOf(world, 'failed');
    if ((await countOf(world, outcome)) === 1) return true;
    if (failed > failures) {
      failures = failed;
      world.advance(LONGEST_PAUSE);
      await world.sweepLogouts();
    }
    return false;
  });
}

/** The log lines about notices that failed. */
function faultsIn(world: World) {
  return world.logs().filter(({ msg }) => msg === 'a client cannot be notified of the end of a session');
}

describe('the host of a client', () => {
  it('given the end of a session that signed in to it → one POST with a logout token, and an audit line', async () => {
    const { notices, uri } = await aHost((response) => response.end());
    const { world, browser } = await aNoticeWorld(uri);
    const [session] = await world.stores.sessions.list(world.subject('alice'));
    await signOut(browser);
    await ended(world, 'delivered');
    const [{ request, body } = { request: undefined, body: '' }] = notices;
    expect(notices).toHaveLength(1);
    expect([request?.method, request?.url]).toEqual(['POST', '/backchannel?a=b']);
    expect(request?.headers['content-type']).toBe('application/x-www-form-urlencoded');
    const form = new URLSearchParams(body);
    expect([...form.keys()]).toEqual(['logout_token']);
    const keys = createLocalJWKSet({
      keys: [{ ...key.publicKey.export({ format: 'jwk' }), kid: key.kid, alg: 'ES256' }],
    });
    const { payload, protectedHeader } = await jwtVerify(form.get('logout_token') ?? '', keys, {
      issuer: world.issuer,
      audience: OPENID.clientId,
      typ: 'logout+jwt',
      currentDate: new Date(world.now()),
    });
    expect(protectedHeader.kid).toBe(key.kid);
    expect(payload).toMatchObject({ sub: world.subject('alice'), sid: session?.sid });
    expect(payload).not.toHaveProperty('nonce');
    const delivered = world.logs().filter(({ event }) => event === 'logout.delivered');
    expect(delivered).toMatchObject([{ clientId: OPENID.clientId }]);
  });

  it.each([
    ['refused', 'an answer 400', answering(400)],
    ['failed', 'an answer 500', answering(500)],
    ['failed', 'a redirect, which is not followed', answering(307, { location: '/elsewhere' })],
    ['delivered', 'a body without end, which is not read', endless],
  ] as const)('→ counted as %s for %s', async (outcome, _, answer) => {
    const { notices, uri } = await aHost(answer);
    const { world, browser } = await aNoticeWorld(uri);
    await signOut(browser);
    await ended(world, outcome);
    expect(notices).toHaveLength(1);
  });

  it('at an address that may not be reached → is not called, and the person is signed out all the same', async () => {
    const { notices, uri } = await aHost((response) => response.end());
    const { world, browser } = await aNoticeWorld(uri, { networks: [] });
    await signOut(browser);
    await until('the try is counted', async () => (await countOf(world, 'failed')) === 1);
    expect(notices).toEqual([]);
    expect(faultsIn(world)).toMatchObject([
      {
        level: 'warn',
        clientId: OPENID.clientId,
        host: new URL(uri).host,
        outcome: 'address_refused',
        detail: expect.stringContaining('GRANTRY_FETCH_NETWORKS'),
      },
    ]);
    expect(JSON.stringify(faultsIn(world))).not.toContain('backchannel');
  });

  it('by a name that does not exist → the log line names the remedy', async () => {
    const asked: string[] = [];
    const lookup: AddressLookup = async (name) => {
      asked.push(name);
      throw new UnknownNameError();
    };
    const { world, browser } = await aNoticeWorld('https://reports.example/backchannel', { ...LOOPBACK, lookup });
    await signOut(browser);
    await until('the try is counted', async () => (await countOf(world, 'failed')) === 1);
    expect(asked).toEqual(['reports.example']);
    const detail = expect.stringContaining('NAME.NAMESPACE.svc.cluster.local');
    expect(faultsIn(world)).toMatchObject([{ outcome: 'name_unresolved', cause: 'ENOTFOUND', detail }]);
  });

  it('that fails → a log line for the first of tries that fail alike, and for the first after a notice that arrived', async () => {
    let status = 500;
    const { notices, uri } = await aHost((response) => void response.writeHead(status, { location: '/' }).end());
    const { world, browser } = await aNoticeWorld(uri);
    const tryAgain = async (tries: number) => {
      world.advance(LONGEST_PAUSE);
      await world.sweepLogouts();
      await until(`try ${tries}`, async () => (await countOf(world, 'failed')) === tries);
    };
    await signOut(browser);
    await until('the first try', async () => (await countOf(world, 'failed')) === 1);
    status = 307;
    await tryAgain(2);
    expect(faultsIn(world).map(({ outcome }) => outcome)).toEqual(['status_refused']);
    status = 200;
    await ended(world, 'delivered');
    status = 500;
    const another = await signedIn(world);
    await another.get(openidPath(world));
    await signOut(another);
    await until('the try of the second notice', async () => (await countOf(world, 'failed')) === 3);
    expect(faultsIn(world).map(({ outcome }) => outcome)).toEqual(['status_refused', 'status_refused']);
    expect(notices).toHaveLength(4);
  });

  it('given a person who signed in to 200 clients of a hostile tenant as well, none of which answers → its notice comes before any of those calls ends', async () => {
    const silent = await aHost(() => {});
    const { notices, uri } = await aHost((response) => response.end());
    const clientsOf = (namespace: string, count: number, backchannelLogoutUri: string) =>
      Array.from({ length: count }, (_, index) => {
        const name = `${namespace}.app-${index}`;
        return { ...OPENID, uid: `uid-of-${name}`, clientId: name, namespace, backchannelLogoutUri };
      });
    const [before, after] = clientsOf('shop', 2, uri) as [Client, Client];
    const visited = [before, ...clientsOf('hostile', 200, silent.uri), after];
    const world = await aWorld({ clients: visited, keys: [key], fetch: LOOPBACK });
    const browser = await signedIn(world, 'alice', { client_id: before.clientId });
    for (const { clientId } of visited) {
      expect((await browser.get(openidPath(world, { client_id: clientId }))).status).toBe(302);
    }
    await signOut(browser);
    await until('both notices are there', () => notices.length === 2);
    await until('the tenant has its share', () => silent.notices.length === 2);
    expect(await countOf(world, 'failed')).toBe(0);
    silent.stop();
  });

  it('given another person who signs in in the same browser → a notice about the one before', async () => {
    const { notices, uri } = await aHost((response) => response.end());
    const { world, browser } = await aNoticeWorld(uri);
    const page = await browser.get(openidPath(world, { prompt: 'login' }));
    expect((await submitLogin(browser, page, 'bob')).status).toBe(303);
    await ended(world, 'delivered');
    expect(notices).toHaveLength(1);
    const { sub } = decodeJwt(new URLSearchParams(notices[0]?.body).get('logout_token') ?? '');
    expect(sub).toBe(world.subject('alice'));
    expect(await world.stores.sessions.list(world.subject('bob'))).toHaveLength(1);
  });

  it('given the same person who signs in again → no notice', async () => {
    const { notices, uri } = await aHost((response) => response.end());
    const { world, browser } = await aNoticeWorld(uri);
    const page = await browser.get(openidPath(world, { prompt: 'login' }));
    await submitLogin(browser, page);
    await signOut(browser);
    await ended(world, 'delivered');
    expect(notices).toHaveLength(1);
  });
});
