// Every call that leaves the process over HTTP, as one table: which module opens its connection, what it reads, and how a test makes it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { Replicas } from '../../src/controller/replicas/replicas.ts';
import { Metrics } from '../../src/http/metrics/metrics.ts';
import { ApiClient } from '../../src/kubernetes/api/api-client.ts';
import type { TlsFiles } from '../../src/kubernetes/api/cluster-access.ts';
import { KubernetesError } from '../../src/kubernetes/api/kubernetes-api.ts';
import { CONFIG_MAPS } from '../../src/kubernetes/objects/resources.ts';
import { GitHubProviderClient } from '../../src/login/upstream/github.ts';
import { OidcProviderClient } from '../../src/login/upstream/oidc.ts';
import { OAuthError } from '../../src/oauth/ports/error.ts';
import { FetchFailedError } from '../../src/outbound/guarded-fetch.ts';
import { createLog } from '../../src/processes/log/log.ts';
import { assembleKeySets, guardedFetch } from '../../src/processes/token-server/key-sets.ts';
import { AccessDenied, createVerifier, type VerifierOptions } from '../../src/resource-server/index.ts';
import { createTestIssuer } from '../../src/resource-server/testing.ts';
import { Webhook } from '../../src/webhook/webhook.ts';
import { CertificateMaker } from '../client-certificates.ts';
import { TestClock } from '../grantry.ts';
import { aGitHubProvider, anOidcProvider, SIGN_IN_REQUEST } from '../login/upstream/providers.ts';
import { ScriptedProvider } from '../login/upstream/scripted-provider.ts';
import { publicJwk } from './key-host.ts';

/** The body for a path. */
export type Answer = (path: string, method: string) => Promise<string> | string;

/** A call as it is made, with what it needs. */
interface MadeCall {
  /** Makes it once. @returns `answered`, or a word for the fault */
  readonly call: () => Promise<string>;
  readonly end?: () => void;
  /** A body that it accepts at its path, where that is not the one of the table. */
  readonly body?: string;
  /** How often its metric has counted this outcome. */
  readonly counted?: (outcome: string) => Promise<number>;
}

export interface OutgoingCall {
  readonly name: string;
  /** The modules of `src/` that open its connection, or choose what does. */
  readonly modules: readonly string[];
  readonly isOverTls: boolean;
  /** Whether it needs the body of an answer. */
  readonly reads: 'head' | 'body';
  /** The path that a fault is at. */
  readonly path: string;
  /** A body that it accepts. */
  readonly body: string;
  /** Whether undici goes on to connect for calls that are over: by one connection after the other. */
  readonly goesOnToConnect?: true;
  /** How many tests make at once: as many as have places, where these are bounded. */
  readonly atOnce: number;
  /** The words for its faults; the first one is that of its time limit. */
  readonly words: readonly [string, ...string[]];
  /** @param serve sets what is answered at other paths; until then that is the body of the table */
  make(url: string, serve: (others: Answer) => void): MadeCall | Promise<MadeCall>;
}

const maker = new CertificateMaker();
const authority = maker.authority();
export const certificate = maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] });
maker.remove();

const NETWORKS = ['127.0.0.0/8', '::1'];
const OWNER = { uid: 'uid-of-a', namespace: 'shop' };
const KEYS = JSON.stringify({ keys: [publicJwk('one')] });
const FETCH_WORDS = [
  'timeout',
  'busy',
  'connection_failed',
  'tls_failed',
  'status_refused',
  'not_json',
  'body_too_large',
] as const;

function fetchSettings() {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-authorities-'));
  const caFile = join(folder, 'ca.crt');
  writeFileSync(caFile, authority.certificate);
  return { settings: { networks: NETWORKS, caFile }, remove: () => rmSync(folder, { recursive: true }) };
}

const KEY_SETS: OutgoingCall = {
  name: 'the key set of a client',
  modules: ['outbound/guarded-fetch.ts'],
  isOverTls: true,
  reads: 'body',
  path: '/',
  body: KEYS,
  atOnce: 3,
  words: FETCH_WORDS,
  make(url) {
    const { settings, remove } = fetchSettings();
    const metrics = new Metrics({ clients: () => 0, logDropped: () => 0, processMetrics: false });
    const log = createLog('error', { write: () => {} });
    const keySets = assembleKeySets({ settings, clock: new TestClock(), metrics, log });
    let calls = 0;
    return {
      async call() {
        try {
          await keySets.keysAt(OWNER, `${url}/${++calls}`, 'one');
          return 'answered';
        } catch (error) {
          return error instanceof OAuthError ? String(error.detail) : String(error);
        }
      },
      async counted(outcome) {
        const label = `outcome="${outcome === 'answered' ? 'fetched' : outcome}"`;
        return Number(new RegExp(`${label}} (\\d+)`).exec(await metrics.text())?.[1] ?? 0);
      },
      end: remove,
    };
  },
};

const logoutNotice = (isOverTls: boolean): OutgoingCall => ({
  name: `a logout notice${isOverTls ? '' : ' to loopback'}`,
  modules: ['outbound/guarded-fetch.ts'],
  isOverTls,
  reads: 'head',
  path: '/',
  body: '{}',
  atOnce: 3,
  words: [...FETCH_WORDS, 'status 302', 'status 429', 'status 503'],
  make(url) {
    const { settings, remove } = fetchSettings();
    const fetch = guardedFetch(settings);
    return {
      async call() {
        try {
          const status = await fetch.post(url, new URLSearchParams({ logout_token: 'a.b.c' }), 'a tenant');
          return status === 200 ? 'answered' : `status ${status}`;
        } catch (error) {
          return error instanceof FetchFailedError ? error.fault : String(error);
        }
      },
      end: remove,
    };
  },
});

const WEBHOOK: OutgoingCall = {
  name: 'an alert to the webhook',
  modules: ['webhook/webhook.ts'],
  isOverTls: false,
  reads: 'head',
  path: '/',
  body: '{}',
  atOnce: 3,
  words: ['timeout', 'another fault'],
  make(url) {
    const webhook = new Webhook({ url, secrets: () => ['a secret of 32 characters or more'], clock: new TestClock() });
    return {
      async call() {
        const answer = await webhook.post('{}');
        if (answer.accepted) return 'answered';
        return answer.fault === 'timeout' ? 'timeout' : 'another fault';
      },
    };
  },
};

const PLACES_OF_A_PROVIDER = 32;

function metadataAt(url: string): Record<string, string> {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    userinfo_endpoint: `${url}/userinfo`,
    jwks_uri: `${url}/keys`,
  };
}

const openidProvider = (step: string, path: string): OutgoingCall => ({
  name: `an OpenID provider: ${step}`,
  modules: ['login/upstream/upstream-fetch.ts', 'login/upstream/oidc.ts'],
  isOverTls: false,
  reads: 'body',
  path,
  body: '',
  atOnce: PLACES_OF_A_PROVIDER,
  words: step === 'discovery' ? ['DiscoveryFailed'] : ['unavailable', 'invalid'],
  async make(url, serve) {
    const provider = await ScriptedProvider.start();
    // The provider answers behind the faulty server.
    const others = async (at: string, method: string) =>
      await (await fetch(`${provider.issuer}${at}`, { method })).text();
    serve(others);
    provider.metadata = metadataAt(url);
    provider.claims = { iss: url };
    provider.userinfo = { sub: 'ada-1', preferred_username: 'ada' };
    const settings = anOidcProvider({ issuer: url });
    const { credentials } = settings;
    if (credentials === undefined) throw new Error('a provider of these tests has credentials');
    const client = new OidcProviderClient(settings, { credentials, isClaimedElsewhere: () => false });
    const end = () => {
      client.close();
      provider.stop();
    };
    if (step === 'discovery') {
      const discover = async () => ((await client.discover()).reach === 'Reachable' ? 'answered' : 'DiscoveryFailed');
      return { call: discover, body: await others(path, 'GET'), end };
    }
    await client.discover();
    const pending = await client.begin(SIGN_IN_REQUEST);
    if (pending === 'unavailable') throw new Error('the provider is discovered');
    provider.nonce = pending.nonce;
    const parameters = new URLSearchParams({ state: pending.state, code: 'c1' });
    return {
      async call() {
        const { outcome } = await client.finish({ pending, callbackUrl: SIGN_IN_REQUEST.callbackUrl, parameters });
        return outcome === 'asserted' ? 'answered' : outcome;
      },
      body: await others(path, path === '/token' ? 'POST' : 'GET'),
      end,
    };
  },
});

const GITHUB: Readonly<Record<string, unknown>> = {
  '/login/oauth/access_token': { access_token: 'gho_1', token_type: 'bearer' },
  '/api/v3/user': { id: 17, login: 'ada' },
};

const gitHub = (step: string, path: string): OutgoingCall => ({
  name: `GitHub: ${step}`,
  goesOnToConnect: true,
  modules: ['login/upstream/upstream-fetch.ts', 'login/upstream/github.ts'],
  isOverTls: true,
  reads: 'body',
  path,
  body: JSON.stringify(GITHUB[path] ?? []),
  atOnce: PLACES_OF_A_PROVIDER,
  words: ['unavailable', 'invalid'],
  async make(url, serve) {
    serve((asked) => JSON.stringify(GITHUB[asked.split('?')[0] ?? ''] ?? []));
    const credentials = { clientId: 'grantry', clientSecret: 's', authorities: authority.certificate };
    const settings = aGitHubProvider({ host: new URL(url).host, credentials });
    const client = new GitHubProviderClient(settings, { credentials, isClaimedElsewhere: () => false });
    await client.discover();
    const pending = await client.begin(SIGN_IN_REQUEST);
    if (pending === 'unavailable') throw new Error('its endpoints are known');
    const parameters = new URLSearchParams({ state: pending.state, code: 'c1' });
    return {
      async call() {
        const { outcome } = await client.finish({ pending, callbackUrl: SIGN_IN_REQUEST.callbackUrl, parameters });
        return outcome === 'asserted' ? 'answered' : outcome;
      },
      end: () => client.close(),
    };
  },
});

const PLACE = { namespace: 'n', name: 'a' };
const OBJECT = { metadata: { ...PLACE, uid: 'u', resourceVersion: '1' } };
const apiServer = (
  verb: string,
  options: { readonly isOverTls: boolean; readonly reads: 'head' | 'body'; readonly body: unknown },
  use: (api: ApiClient) => Promise<unknown>,
): OutgoingCall => ({
  name: `the API server: ${verb}`,
  modules: ['kubernetes/api/connection.ts'],
  path: '/',
  atOnce: 32,
  words: ['Timeout', 'NoAnswer', 'Refused', 'ServiceUnavailable', 'TooManyRequests', 'UnreadableAnswer'],
  ...options,
  body: JSON.stringify(options.body),
  make(url) {
    const tls: TlsFiles = options.isOverTls ? { ca: Buffer.from(authority.certificate) } : {};
    const credentials = async () => ({ headers: { authorization: 'Bearer t' }, tls, user: 'some-user' });
    const api = new ApiClient({ access: { server: url, credentials, renew: () => {} }, userAgent: 'grantry/test' });
    return {
      async call() {
        try {
          await use(api);
          return 'answered';
        } catch (error) {
          return error instanceof KubernetesError ? error.reason : String(error);
        }
      },
      end: () => api.close(),
    };
  },
});

const ISSUER = createTestIssuer({ audience: 'urn:a' });

const library = (asked: string, path: string, options: object): OutgoingCall => ({
  name: `the library asks the issuer ${asked}`,
  modules: ['resource-server/issuer-calls.ts', 'resource-server/options.ts'],
  isOverTls: false,
  reads: 'body',
  path,
  body: '',
  atOnce: 3,
  words: ['introspection' in options ? 'introspection_unavailable' : 'keys_unavailable'],
  async make(url) {
    const token = ISSUER.token({ claims: { iss: url } });
    const verify = async () => {
      const verifier = createVerifier(Object.assign({ issuer: url, audience: 'urn:a' }, options) as VerifierOptions);
      const headers = { authorization: `Bearer ${token}` };
      try {
        await verifier.verify(new Request('https://api.example/', { headers }));
        return 'answered';
      } catch (error) {
        return error instanceof AccessDenied ? error.reason : String(error);
      }
    };
    const body = await (await ISSUER.fetch(`${url}${path}`, { body: new URLSearchParams({ token }) })).text();
    return { call: verify, body };
  },
});

const REPLICA: OutgoingCall = {
  name: 'the controller asks a replica',
  modules: ['controller/replicas/replicas.ts'],
  isOverTls: false,
  reads: 'body',
  path: '/',
  body: '{}',
  atOnce: 3,
  words: ['no answer'],
  make(url) {
    const log = createLog('silent', { write: () => {} });
    const replicas = new Replicas({ find: () => [], key: () => 'k'.repeat(32), clock: new TestClock(), log });
    return {
      async call() {
        const answer = await replicas.ask({ name: 'a', url }, '/x', {}, z.object({}));
        return answer === undefined ? 'no answer' : 'answered';
      },
    };
  },
};

export const OUTGOING_CALLS: readonly OutgoingCall[] = [
  KEY_SETS,
  logoutNotice(true),
  logoutNotice(false),
  WEBHOOK,
  openidProvider('discovery', '/.well-known/openid-configuration'),
  openidProvider('token', '/token'),
  openidProvider('keys', '/keys'),
  openidProvider('userinfo', '/userinfo'),
  gitHub('token', '/login/oauth/access_token'),
  gitHub('API', '/api/v3/user'),
  apiServer('get', { isOverTls: true, reads: 'body', body: OBJECT }, (api) => api.get(CONFIG_MAPS, PLACE)),
  apiServer('list', { isOverTls: false, reads: 'body', body: { metadata: { resourceVersion: '1' } } }, (api) =>
    api.list(CONFIG_MAPS, {}),
  ),
  apiServer('apply', { isOverTls: false, reads: 'body', body: OBJECT }, (api) => api.apply(CONFIG_MAPS, OBJECT)),
  apiServer('document', { isOverTls: false, reads: 'body', body: {} }, (api) => api.document('/openid/v1/jwks')),
  apiServer('watch', { isOverTls: true, reads: 'head', body: {} }, async (api) => {
    const ended = new AbortController();
    await api.watch(CONFIG_MAPS, { resourceVersion: '1', timeoutSeconds: 60, signal: ended.signal });
    ended.abort();
  }),
  library('for its keys', '/.well-known/jwks.json', { mode: 'local' }),
  library('about a token', '/introspect', {
    mode: 'introspection',
    introspection: { clientId: 'api', clientSecret: 'secret' },
  }),
  REPLICA,
];

/** The modules that open connections of another kind, with the tests of their faults. */
export const OTHER_MODULES: Readonly<Record<string, string>> = {
  'outbound/name-lookup.ts': 'test/outbound/name-lookup.test.ts',
  'redis/link/connector.ts': 'test/chaos',
  'redis/topology/connection-maker.ts': 'test/chaos',
};
