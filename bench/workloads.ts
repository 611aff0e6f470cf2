// What is measured under load: the kinds of requests, and who answers them. Servers start when the first workload needs
// them; each has to show, before it is measured, that it really does the work.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { manifestFolder, startGrantry } from './grantry-server.ts';
import { inBatches } from './grantry-state.ts';
import {
  type Agreement,
  answerOf,
  assertedBodies,
  basicCredentials,
  CLIENT_CREDENTIALS,
  type CodeOrder,
  FORM_HEADERS,
  HEADERS,
  type Headers,
  PERSON,
  proofs,
  redemption,
  requestSignIn,
  requestTokens,
  type Tokens,
} from './load/load-client.ts';
import type { Bodies } from './load/load-generator.ts';
import { clientNumber } from './load/load-manifests.ts';
import {
  BOTH_CORES,
  LOAD_CORE,
  type PinnedServer,
  runPinned,
  SERVER_CORE,
  startServer,
} from './load/pinned-process.ts';
import { startProvider } from './people/openid-provider.ts';
import { type RedisServer, startRedis } from './redis-server.ts';

/** One kind of request. */
export interface Workload {
  /** Each gets a load of its own, all at the same time; the CPU time of all their servers counts. */
  readonly targets: readonly Target[];
  /** Where the load comes from. */
  readonly loadCores: string;
  /** Where the state is, unless it is in memory. */
  readonly redis?: RedisServer;
}

/** Where one load goes. */
export interface Target {
  readonly server: PinnedServer;
  readonly url: string;
  /** Default: those of the client with a secret. */
  readonly headers?: Headers;
  /**
   * What the next load sends; made outside the measured time.
   * @param seconds how long it should last
   * @param expected how many requests that is, by what was seen before
   */
  bodies(seconds: number, expected: number): Promise<Bodies>;
}

/** A token endpoint and its way to codes. */
interface TokenService {
  readonly server: PinnedServer;
  readonly redis: RedisServer;
  readonly codes: (count: number, agreement: Agreement) => Promise<readonly string[]>;
}

/** A server and its Redis, and what it can be asked for. */
interface GrowingService extends Pick<TokenService, 'server' | 'redis'> {
  readonly workloads: Readonly<Record<string, Workload>>;
}

/** How often a service of many clients is tried, a second apart: on a busy machine its start goes on after the first answer. */
const TRIES = 20;
const GRANTRY_CODES = 'bench/grantry-codes.ts';
/** Families that one load refreshes in turn, each of another person. */
const FAMILIES = 1000;

/**
 * How every workload is started, by its name.
 * @param otherTree another copy of the sources, with its packages; its workloads can be started where it is given
 */
export function workloads(otherTree?: string): Readonly<Record<string, () => Promise<Workload>>> {
  const grantry = once(() => startGrantry({ folder: manifestFolder() }));
  const peer = once(() => startPeer());
  const redis = once(() => startRedis(LOAD_CORE, { appendOnly: true }));
  const grantryOnRedis = once(async () =>
    startGrantryService(await redis(), { folder: manifestFolder(), cores: SERVER_CORE }),
  );
  const peerOnRedis = once(async () => startPeerService(await redis()));
  const replicas = once(() => startReplicas());
  const signInsOnRedis = once(async () =>
    startGrantryService(await startRedis(LOAD_CORE, { appendOnly: true }), {
      folder: manifestFolder({ idTokens: 'ES256' }),
      cores: SERVER_CORE,
    }),
  );
  const peopleOnRedis = once(async () => startPeopleService(await redis()));
  const other = once(() => startGrantry({ folder: manifestFolder(), ...(otherTree && { tree: otherTree }) }));
  const otherOnRedis = once(async () =>
    startGrantryService(await startRedis(LOAD_CORE, { appendOnly: true }), {
      folder: manifestFolder(),
      cores: SERVER_CORE,
      ...(otherTree && { tree: otherTree }),
    }),
  );
  return {
    'client credentials': async () => clientCredentials(await grantry()),
    'client credentials of the other tree': async () => clientCredentials(await other()),
    'redeem of the other tree': async () => redeem(await otherOnRedis(), FOR_API),
    'refresh of the other tree': async () => refresh([await otherOnRedis()], { loadCores: LOAD_CORE, flow: FOR_API }),
    'client credentials of the peer': async () => clientCredentials(await peer()),
    private_key_jwt: async () => asserted(await grantryOnRedis()),
    'private_key_jwt of the peer': async () => asserted(await peerOnRedis()),
    DPoP: async () => proved(await grantryOnRedis()),
    'DPoP of the peer': async () => proved(await peerOnRedis()),
    introspection: async () => introspection(await grantry()),
    'empty POST': async () => emptyPost(),
    redeem: async () => redeem(await grantryOnRedis(), FOR_API),
    'redeem of the peer': async () => redeem(await peerOnRedis(), FOR_API),
    'sign-in': async () => redeem(await signInsOnRedis(), SIGN_IN),
    'sign-in of the peer': async () => redeem(await peerOnRedis(), SIGN_IN),
    refresh: async () => refresh([await grantryOnRedis()], { loadCores: LOAD_CORE, flow: FOR_API }),
    'refresh of a local person': async () => refresh([(await peopleOnRedis()).local], LOCAL_LOAD),
    'refresh of a person of a provider': async () => refresh([(await peopleOnRedis()).ofProvider], LOCAL_LOAD),
    'refresh of the peer': async () => refresh([await peerOnRedis()], { loadCores: LOAD_CORE, flow: FOR_API }),
    'renewed sign-in': async () => refresh([await signInsOnRedis()], { loadCores: LOAD_CORE, flow: SIGN_IN }),
    'renewed sign-in of the peer': async () => refresh([await peerOnRedis()], { loadCores: LOAD_CORE, flow: SIGN_IN }),
    userinfo: async () => userinfo(await signInsOnRedis(), 'userinfo'),
    'userinfo of the peer': async () => userinfo(await peerOnRedis(), 'me'),
    'refresh by one replica': async () =>
      refresh((await replicas()).slice(0, 1), { loadCores: BOTH_CORES, flow: FOR_API }),
    'refresh by two replicas': async () => refresh(await replicas(), { loadCores: BOTH_CORES, flow: FOR_API }),
  };
}

/** One server of many clients with its state in Redis, and the kinds of requests that the growth is measured by. */
export async function startGrowing(clients: number): Promise<GrowingService> {
  const redis = await startRedis(LOAD_CORE, { appendOnly: true });
  const folder = manifestFolder({ idTokens: 'ES256', clients });
  const service = await startGrantryService(redis, { folder, cores: SERVER_CORE });
  const { server } = service;
  const url = `${server.origin}/token`;
  const credentials = Array.from({ length: clients }, (_, number) => basicCredentials(clientNumber(number)));
  const last = credentials.at(-1) ?? '';
  await requestTokens(url, CLIENT_CREDENTIALS, { ...FORM_HEADERS, authorization: last });
  const bodies = async (seconds: number): Promise<Bodies> => ({
    kind: 'clients',
    body: CLIENT_CREDENTIALS,
    credentials,
    seconds,
  });
  const workloads = {
    'client credentials': { targets: [{ server, url, headers: FORM_HEADERS, bodies }], loadCores: LOAD_CORE, redis },
    redeem: await afterStart(() => redeem(service, FOR_API)),
    refresh: refresh([service], LOCAL_LOAD),
    userinfo: await userinfo(service, 'userinfo'),
  };
  return { server, redis, workloads };
}

/** Repeats what fails. @throws Error of the last try */
async function afterStart<Started>(work: () => Promise<Started>): Promise<Started> {
  for (let failed = 1; ; failed += 1) {
    try {
      return await work();
    } catch (error) {
      if (failed === TRIES) throw error;
      await sleep(1000);
    }
  }
}

async function clientCredentials(server: PinnedServer): Promise<Workload> {
  const url = `${server.origin}/token`;
  await requestTokens(url, CLIENT_CREDENTIALS);
  return { targets: [repeating(server, url, CLIENT_CREDENTIALS)], loadCores: LOAD_CORE };
}

async function asserted({ server, redis }: TokenService): Promise<Workload> {
  const url = `${server.origin}/token`;
  const issuer = await issuerOf(server);
  const [first = ''] = assertedBodies(issuer, 1);
  await requestTokens(url, first, FORM_HEADERS);
  await refused(`${url} accepts an assertion twice`, () => requestTokens(url, first, FORM_HEADERS));
  const bodies = async (_seconds: number, expected: number): Promise<Bodies> => ({
    kind: 'single',
    bodies: assertedBodies(issuer, expected),
  });
  return { targets: [{ server, url, headers: FORM_HEADERS, bodies }], loadCores: LOAD_CORE, redis };
}

/** Client credentials by the secret, beside a proof: the token is bound to its key. */
async function proved({ server, redis }: TokenService): Promise<Workload> {
  const url = `${server.origin}/token`;
  const htu = `${await issuerOf(server)}/token`;
  const [first = ''] = proofs(htu, 1);
  const headers = { ...HEADERS, dpop: first };
  const { token_type: type } = await answerOf(url, CLIENT_CREDENTIALS, headers);
  if (type !== 'DPoP') throw new Error(`${url} binds nothing to a proof`);
  await refused(`${url} accepts a proof twice`, () => requestTokens(url, CLIENT_CREDENTIALS, headers));
  const bodies = async (_seconds: number, expected: number): Promise<Bodies> => ({
    kind: 'proved',
    body: CLIENT_CREDENTIALS,
    proofs: proofs(htu, expected),
  });
  return { targets: [{ server, url, bodies }], loadCores: LOAD_CORE, redis };
}

/** @throws Error with this text unless the attempt fails */
async function refused(otherwise: string, attempt: () => Promise<unknown>): Promise<void> {
  const isUsed = await attempt().then(
    () => false,
    () => true,
  );
  if (!isUsed) throw new Error(otherwise);
}

/** Of grantry by RFC 8414; the peer has the document of OpenID Connect alone. */
async function issuerOf({ origin }: PinnedServer): Promise<string> {
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    const response = await fetch(`${origin}/.well-known/${name}`);
    if (response.ok) return ((await response.json()) as { readonly issuer: string }).issuer;
  }
  throw new Error(`${origin} has no metadata`);
}

async function introspection(server: PinnedServer): Promise<Workload> {
  const url = `${server.origin}/introspect`;
  const bodies = async (seconds: number): Promise<Bodies> => {
    // A token of its own for each load: a whole run outlives one, and the answer about an expired one is shorter.
    const { access_token: token } = await requestTokens(`${server.origin}/token`, CLIENT_CREDENTIALS);
    const body = new URLSearchParams({ token }).toString();
    if ((await answerOf(url, body)).active !== true) throw new Error('the token under test is not active');
    return { kind: 'repeated', body, seconds };
  };
  return { targets: [{ server, url, bodies }], loadCores: LOAD_CORE };
}

async function emptyPost(): Promise<Workload> {
  const server = await startServer({ args: (port) => ['bench/load/empty-post-server.ts', String(port)], probe: '/' });
  return { targets: [repeating(server, server.origin, CLIENT_CREDENTIALS)], loadCores: LOAD_CORE };
}

function repeating(server: PinnedServer, url: string, body: string): Target {
  return { server, url, bodies: async (seconds) => ({ kind: 'repeated', body, seconds }) };
}

/** What people agree to, and the request that shows that they get it. */
interface Flow {
  readonly agreement: Agreement;
  readonly request: (url: string, body: string) => Promise<Tokens>;
}

const FOR_API: Flow = { agreement: 'api', request: requestTokens };
const LOCAL_LOAD = { loadCores: LOAD_CORE, flow: FOR_API };
const SIGN_IN: Flow = { agreement: 'api and sign-in', request: requestSignIn };

async function redeem({ server, redis, codes }: TokenService, { agreement, request }: Flow): Promise<Workload> {
  const url = `${server.origin}/token`;
  const bodies = async (_seconds: number, expected: number): Promise<Bodies> => ({
    kind: 'single',
    bodies: (await codes(expected, agreement)).map(redemption),
  });
  const [code = ''] = await codes(1, agreement);
  await request(url, redemption(code));
  return { targets: [{ server, url, bodies }], loadCores: LOAD_CORE, redis };
}

function refresh(
  services: readonly TokenService[],
  { loadCores, flow: { agreement, request } }: { readonly loadCores: string; readonly flow: Flow },
): Workload {
  const targets = services.map(({ server, codes }) => {
    const url = `${server.origin}/token`;
    const bodies = async (seconds: number): Promise<Bodies> => {
      // Outside the measured time a single answer may be late on a machine that is not quite idle.
      const answers = await inBatches(await codes(FAMILIES, agreement), (code) =>
        request(url, redemption(code)).catch(String),
      );
      const tokens = answers.flatMap((answer) => (isText(answer) ? [] : (answer.refresh_token ?? [])));
      if (tokens.length < FAMILIES / 2) throw new Error(`too few families: ${answers.find(isText)}`);
      return { kind: 'refreshes', tokens, seconds };
    };
    return { server, url, bodies };
  });
  const [redis] = services.map((service) => service.redis);
  return { targets, loadCores, ...(redis && { redis }) };
}

/** By the tokens of as many people as there are families. @param path of the endpoint */
async function userinfo({ server, redis, codes }: TokenService, path: string): Promise<Workload> {
  const url = `${server.origin}/${path}`;
  const bodies = async (seconds: number): Promise<Bodies> => {
    const answers = await inBatches(await codes(FAMILIES, 'sign-in'), (code) =>
      answerOf(`${server.origin}/token`, redemption(code)),
    );
    const tokens = answers.map(({ access_token: token }) => String(token));
    const response = await fetch(url, { headers: { authorization: `Bearer ${tokens[0]}` } });
    const { email } = (await response.json()) as Record<string, unknown>;
    if (email !== PERSON.email) throw new Error(`${url} answered ${response.status} without the address`);
    return { kind: 'bearers', tokens, seconds };
  };
  return { targets: [{ server, url, headers: {}, bodies }], loadCores: LOAD_CORE, redis };
}

function isText(answer: unknown): answer is string {
  return typeof answer === 'string';
}

async function startGrantryService(
  redis: RedisServer,
  options: { readonly folder: string; readonly cores: string; readonly tree?: string },
): Promise<TokenService> {
  const server = await startGrantry({ redisUrl: redis.url, ...options });
  const file = join(options.tree ?? '.', GRANTRY_CODES);
  return { server, redis, codes: codesMadeBy(file, { server, redis }) };
}

/** One server, with codes of its local users and codes of people of its identity provider. */
async function startPeopleService(redis: RedisServer): Promise<Readonly<Record<'local' | 'ofProvider', TokenService>>> {
  const { origin: provider } = await startProvider();
  const local = await startGrantryService(redis, { folder: manifestFolder({ provider }), cores: SERVER_CORE });
  const { server } = local;
  return { local, ofProvider: { server, redis, codes: codesMadeBy(GRANTRY_CODES, { server, redis, provider }) } };
}

/** Two processes of one server, a core each; Redis is where there is room. */
async function startReplicas(): Promise<readonly TokenService[]> {
  const redis = await startRedis(BOTH_CORES, { appendOnly: true });
  const folder = manifestFolder();
  const first = await startGrantryService(redis, { folder, cores: SERVER_CORE });
  return [first, await startGrantryService(redis, { folder, cores: LOAD_CORE })];
}

async function startPeer(...redisUrl: readonly string[]): Promise<PinnedServer> {
  const args = (port: number) => ['bench/peer/peer-server.ts', String(port), ...redisUrl];
  return await startServer({ args, probe: '/jwks' });
}

async function startPeerService(redis: RedisServer): Promise<TokenService> {
  const server = await startPeer(redis.url);
  return { server, redis, codes: codesMadeBy('bench/peer/peer-codes.ts', { server, redis }) };
}

/** @param of.provider whose people they are; default: local users */
function codesMadeBy(
  file: string,
  {
    server: { origin: issuer },
    redis: { url: redisUrl },
    provider,
  }: { readonly server: PinnedServer; readonly redis: RedisServer; readonly provider?: string },
) {
  return async (count: number, agreement: Agreement): Promise<readonly string[]> => {
    const order: CodeOrder = { redisUrl, issuer, count, agreement, ...(provider !== undefined && { provider }) };
    return (await runPinned(LOAD_CORE, file, order)) as readonly string[];
  };
}

/** Starts at the first call; every other one gets the same. */
function once<Started>(start: () => Promise<Started>): () => Promise<Started> {
  let started: Promise<Started> | undefined;
  return () => {
    started ??= start();
    return started;
  };
}
