// Names of one tenant that no name server answers, or knows, while the rest of a token server works: the first fetches of others, a
// sign-in by a provider, and a connection to Redis.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type AddressLookup, nameLookup } from '../../../src/outbound/name-lookup.ts';
import { idTokenKey } from '../../http/sign-in/openid-world.ts';
import { answerOf } from '../../http/sign-in/sign-in-browser.ts';
import { aWorld, type World } from '../../http/sign-in/sign-in-world.ts';
import { CLIENT, providerOfAda, signInBy } from '../../http/sign-in/upstream/held.ts';
import { anOidcProvider } from '../../login/upstream/providers.ts';
import type { ScriptedProvider } from '../../login/upstream/scripted-provider.ts';
import { aClient } from '../../oauth/a-client.ts';
import { asserted, assertedBy, assertionOf } from '../../oauth/client-auth/client-assertions.ts';
import { aKey } from '../../oauth/values/signed-tokens.ts';
import { json, type KeyHost, startKeyHost } from '../../outbound/key-host.ts';
import { countGetaddrinfo, type NameServer, NO_SUCH_NAME, startNameServer } from '../../outbound/name-server.ts';
import { connectTo, portOf } from '../../redis/setup/connect.ts';
import { describeRedis, startRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';

const KEY = aKey('ES256');
const TENANTS = 10;
const UNKNOWN = 20;
const SILENT = 100;

const folder = mkdtempSync(join(tmpdir(), 'grantry-silent-'));
const caFile = join(folder, 'ca.crt');
let host: KeyHost;
let nameServer: NameServer;
let upstream: ScriptedProvider;

beforeAll(async () => {
  [host, nameServer, upstream] = await Promise.all([startKeyHost(), startNameServer(), providerOfAda()]);
  writeFileSync(caFile, host.authority);
  host.answer = json({ keys: [{ ...KEY.jwk, kid: 'one' }] });
  nameServer.answer = (name, type) => {
    if (name.startsWith('silent-')) return undefined;
    if (!name.endsWith('.keys.test')) return NO_SUCH_NAME;
    return type === 'A' ? [[127, 0, 0, 1]] : [];
  };
  // Its name is looked up as those of an operator are.
  upstream.metadata = { token_endpoint: `${upstream.issuer.replace('127.0.0.1', 'localhost')}/token` };
});
afterAll(() => {
  host.stop();
  nameServer.stop();
  upstream.stop();
  rmSync(folder, { recursive: true });
});

/** A client whose keys are at this host. */
function clientAt(namespace: string, name: string, hostName: string) {
  const jwksUri = `https://${hostName}:${host.port}/jwks.json`;
  const assertion = assertedBy([], { keys: { jwksUri }, algorithms: ['ES256'] });
  const clientId = `${namespace}.${name}`;
  return aClient({ uid: `uid-of-${clientId}`, clientId, namespace, name, authMethod: 'private_key_jwt', assertion });
}

const numbered = <Item>(count: number, make: (index: number) => Item) =>
  Array.from({ length: count }, (_, i) => make(i));
const FIRST = numbered(TENANTS, (index) => `first-${index}`);
const SECOND = numbered(TENANTS, (index) => `second-${index}`);
const HOSTILE = [
  ...numbered(UNKNOWN, (index) => `unknown-${index}`),
  ...numbered(SILENT, (index) => `silent-${index}`),
];

/** The status of a token request, whose keys are fetched for it. */
async function tokenFor(world: World, clientId: string): Promise<number> {
  const assertion = await assertionOf(KEY, { clientId, issuer: world.issuer, now: world.now() }, {}, { kid: 'one' });
  const { status } = await world.post('/token', { grant_type: 'client_credentials', ...asserted(assertion) });
  return status;
}

/** A server of Redis by its name, and what closes its connections and waits until there are others. */
async function reconnectingRedis() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const connection = await connectTo({ url: server.url.replace('127.0.0.1', 'localhost') });
  onTestFinished(() => connection.close());
  const ids = async () => {
    const lines = String(await server.command('CLIENT', 'LIST')).split('\n');
    const others = lines.filter((line) => line !== '' && !line.includes('cmd=client|list'));
    return others.flatMap((line) => /^id=(\d+)/.exec(line)?.[1] ?? []);
  };
  return async () => {
    const before = await ids();
    for (const id of before) await server.command('CLIENT', 'KILL', 'ID', id);
    await until('a new connection', async () => (await ids()).some((id) => !before.includes(id)));
    await until('it is used', async () => (await portOf(connection).catch(() => 0)) === server.port);
  };
}

describeRedis('names of a tenant', () => {
  it('given 100 that are silent, after 20 that do not exist → two at a time are looked up; meanwhile ten tenants, a person and Redis get on as without them', async () => {
    let running = 0;
    let most = 0;
    const names = nameLookup({ nameServers: [nameServer.address], hostsFile: join(folder, 'hosts') });
    const lookup: AddressLookup = async (name, signal) => {
      if (!name.endsWith('.hostile.test')) return await names(name, signal);
      most = Math.max(most, ++running);
      return await names(name, signal).finally(() => {
        running -= 1;
      });
    };
    const reconnect = await reconnectingRedis();
    const tenants = [...FIRST, ...SECOND].map((name) => clientAt(name, 'app', `${name}.keys.test`));
    const hostile = HOSTILE.map((name) => clientAt('hostile', name, `${name}.hostile.test`));
    const clients = [CLIENT, ...tenants, ...hostile];
    const providers = [anOidcProvider({ issuer: upstream.issuer })];
    const keys = [await idTokenKey()];
    const fetch = { networks: ['127.0.0.0/8'], caFile };
    const world = await aWorld({ clients, providers, keys, fetch, lookup, hasNoUsers: true, rateLimits: false });
    const getaddrinfo = countGetaddrinfo();
    onTestFinished(getaddrinfo.end);

    /** What everyone else does. @returns the statuses of first fetches */
    const everyoneElse = async (namespaces: readonly string[]) => {
      const [statuses, page] = await Promise.all([
        Promise.all(namespaces.map((namespace) => tokenFor(world, `${namespace}.app`))),
        signInBy(upstream, world, world.browser()),
        reconnect(),
      ]);
      expect(answerOf(page)).toHaveProperty('code');
      return statuses;
    };
    const alone = await everyoneElse(FIRST);
    expect(alone).toEqual(Array(TENANTS).fill(200));
    const calls = getaddrinfo.calls();
    expect(calls).toBeGreaterThan(0);

    const refused = Promise.all(HOSTILE.map((name) => tokenFor(world, `hostile.${name}`)));
    await until('silent names are asked', () => silentNames().length >= 2);
    expect(await everyoneElse(SECOND)).toEqual(alone);

    expect(new Set(await refused)).toEqual(new Set([503]));
    expect(getaddrinfo.calls() - calls).toBeLessThanOrEqual(calls);
    expect(most).toBe(2);
    const order = nameServer.questions.map((question) => question.split(' ')[0] ?? '');
    const [, , third = ''] = silentNames();
    const lastOfOthers = Math.max(...SECOND.map((name) => order.indexOf(`${name}.keys.test`)));
    expect(lastOfOthers).toBeLessThan(third === '' ? order.length : order.indexOf(third));
    expect(SECOND.map((name) => order.includes(`${name}.keys.test`))).toEqual(Array(TENANTS).fill(true));
  });
});

/** The silent names that were asked, in order. */
function silentNames(): readonly string[] {
  const names = nameServer.questions.map((question) => question.split(' ')[0] ?? '');
  return [...new Set(names.filter((name) => name.startsWith('silent-')))];
}
