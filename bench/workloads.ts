// What is measured under load: the kinds of requests, and who answers them. Servers start when the first workload needs
// them; each has to show, before it is measured, that it really does the work.

import { manifestFolder, startGrantry } from './grantry-server.ts';
import { inBatches } from './grantry-state.ts';
import {
  answerOf,
  assertedBodies,
  CLIENT_CREDENTIALS,
  type CodeOrder,
  FORM_HEADERS,
  HEADERS,
  type Headers,
  proofs,
  redemption,
  requestTokens,
} from './load/load-client.ts';
import type { Bodies } from './load/load-generator.ts';
import {
  BOTH_CORES,
  LOAD_CORE,
  type PinnedServer,
  runPinned,
  SERVER_CORE,
  startServer,
} from './load/pinned-process.ts';
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
  readonly codes: (count: number) => Promise<readonly string[]>;
}

/** Families that one load refreshes in turn, each of another person. */
const FAMILIES = 1000;

/** How every workload is started, by its name. */
export function workloads(): Readonly<Record<string, () => Promise<Workload>>> {
  const grantry = once(() => startGrantry({ folder: manifestFolder() }));
  const peer = once(() => startPeer());
  const redis = once(() => startRedis(LOAD_CORE, { appendOnly: true }));
  const grantryOnRedis = once(async () => startGrantryService(await redis(), manifestFolder(), SERVER_CORE));
  const peerOnRedis = once(async () => startPeerService(await redis()));
  const replicas = once(() => startReplicas());
  return {
    'client credentials': async () => clientCredentials(await grantry()),
    'client credentials of the peer': async () => clientCredentials(await peer()),
    private_key_jwt: async () => asserted(await grantryOnRedis()),
    'private_key_jwt of the peer': async () => asserted(await peerOnRedis()),
    DPoP: async () => proved(await grantryOnRedis()),
    'DPoP of the peer': async () => proved(await peerOnRedis()),
    introspection: async () => introspection(await grantry()),
    'empty POST': async () => emptyPost(),
    redeem: async () => redeem(await grantryOnRedis()),
    'redeem of the peer': async () => redeem(await peerOnRedis()),
    refresh: async () => refresh([await grantryOnRedis()], LOAD_CORE),
    'refresh of the peer': async () => refresh([await peerOnRedis()], LOAD_CORE),
    'refresh by one replica': async () => refresh((await replicas()).slice(0, 1), BOTH_CORES),
    'refresh by two replicas': async () => refresh(await replicas(), BOTH_CORES),
  };
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
    // A token of its own for each load: a whole run outlives one, and the answer about a dead one is shorter.
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

function redeem({ server, redis, codes }: TokenService): Workload {
  const url = `${server.origin}/token`;
  const bodies = async (_seconds: number, expected: number): Promise<Bodies> => ({
    kind: 'single',
    bodies: (await codes(expected)).map(redemption),
  });
  return { targets: [{ server, url, bodies }], loadCores: LOAD_CORE, redis };
}

function refresh(services: readonly TokenService[], loadCores: string): Workload {
  const targets = services.map(({ server, codes }) => {
    const url = `${server.origin}/token`;
    const bodies = async (seconds: number): Promise<Bodies> => {
      // Outside the measured time a single answer may be late on a machine that is not quite idle.
      const answers = await inBatches(await codes(FAMILIES), (code) =>
        requestTokens(url, redemption(code)).catch(String),
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

function isText(answer: unknown): answer is string {
  return typeof answer === 'string';
}

async function startGrantryService(redis: RedisServer, folder: string, cores: string): Promise<TokenService> {
  const server = await startGrantry({ folder, redisUrl: redis.url, cores });
  return { server, redis, codes: codesMadeBy('bench/grantry-codes.ts', server, redis) };
}

/** Two processes of one server, a core each; Redis is where there is room. */
async function startReplicas(): Promise<readonly TokenService[]> {
  const redis = await startRedis(BOTH_CORES, { appendOnly: true });
  const folder = manifestFolder();
  const first = await startGrantryService(redis, folder, SERVER_CORE);
  return [first, await startGrantryService(redis, folder, LOAD_CORE)];
}

async function startPeer(...redisUrl: readonly string[]): Promise<PinnedServer> {
  const args = (port: number) => ['bench/peer/peer-server.ts', String(port), ...redisUrl];
  return await startServer({ args, probe: '/jwks' });
}

async function startPeerService(redis: RedisServer): Promise<TokenService> {
  const server = await startPeer(redis.url);
  return { server, redis, codes: codesMadeBy('bench/peer/peer-codes.ts', server, redis) };
}

function codesMadeBy(file: string, { origin: issuer }: PinnedServer, { url: redisUrl }: RedisServer) {
  return async (count: number): Promise<readonly string[]> => {
    const order: CodeOrder = { redisUrl, issuer, count };
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
