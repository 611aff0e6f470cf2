// grantry as tests see it: the real wiring over real HTTP on free ports, with memory stores, real keys and a clock that only
// moves when a test advances it. Every response and every log line goes past the oracle; what it finds fails the running test.

import { createHash, randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { expect } from 'vitest';
import type { ClientUsage } from '../src/http/admin/client-usage.ts';
import type { ReplicaApi } from '../src/http/admin/controller-endpoints.ts';
import { type Brand, OWN_BRAND } from '../src/http/pages/brand.ts';
import type { SignInOrder } from '../src/http/pages/login-page.ts';
import type { HttpTimeouts } from '../src/http/server/strict-fastify.ts';
import type { Blocks } from '../src/login/blocks.ts';
import { hashPassword, LocalUsers } from '../src/login/local/local-users.ts';
import { memoryStores } from '../src/memory/stores.ts';
import type { NonceRule } from '../src/oauth/dpop/nonces.ts';
import { type ClusterIssuer, clusterIssuerUnavailable } from '../src/oauth/ports/cluster-issuer.ts';
import type { Grant } from '../src/oauth/ports/grant-store.ts';
import type { Clock, People, Stores } from '../src/oauth/ports/ports.ts';
import type { Client, TokenSettings } from '../src/oauth/registry/client.ts';
import { secretVerifier } from '../src/oauth/registry/client-secret.ts';
import type { IdentityProvider } from '../src/oauth/registry/identity-provider.ts';
import { generateSigningKeyPem, importSigningKey, KeyRing, type SigningKey } from '../src/oauth/registry/keys.ts';
import { Registry, type RegistryRef } from '../src/oauth/registry/registry.ts';
import type { Resource } from '../src/oauth/registry/resource.ts';
import { Resources } from '../src/oauth/registry/resources.ts';
import { sealedStores } from '../src/oauth/sealed-stores/sealed-stores.ts';
import { Handles } from '../src/oauth/tokens/handles.ts';
import { RecordMacs } from '../src/oauth/tokens/record-macs.ts';
import type { VerificationKey } from '../src/oauth/values/jwk.ts';
import type { AddressLookup } from '../src/outbound/name-lookup.ts';
import type { FetchSettings } from '../src/processes/config/fetch-config.ts';
import type { MtlsSettings } from '../src/processes/config/mtls-config.ts';
import { createLog } from '../src/processes/log/log.ts';
import { MutualTls } from '../src/processes/mutual-tls/mutual-tls.ts';
import { assembleTokenServer, type TokenServer } from '../src/processes/token-server/token-server.ts';
import type { UsersSecretsState } from '../src/processes/token-server/token-server-options.ts';
import { assembleUserChanges } from '../src/processes/token-server/user-changes.ts';
import { freePort } from './free-port.ts';
import { afterEachFile, afterEachTest, requireFileHooks } from './isolation/file-hooks.ts';
import { Oracle } from './oracle.ts';
import { until } from './until.ts';
import { tapResponses } from './wire-tap.ts';

/** A clock that stands still until it is moved, or runs. */
export class TestClock implements Clock {
  #now = Date.UTC(2026, 0, 1, 12);
  #runs = false;

  now(): number {
    return this.#runs ? Date.now() : this.#now;
  }

  /** From now on it is the clock of the machine: for programs that read that. */
  run(): void {
    this.#runs = true;
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

/** A client of a test; what is left out is that of a confidential client with every grant. */
export type TestClient = Partial<Omit<Client, 'tokens'>> & {
  readonly clientId: string;
  readonly tokens?: Partial<TokenSettings>;
  /** Its accepted secret; absent for public clients. */
  readonly secret?: string;
};

export interface GrantryOptions {
  readonly clients: readonly TestClient[];
  /** The accepted resources. Default: none. */
  readonly resources?: readonly Resource[];
  /** The reason of the condition by client id, of clients that are refused. */
  readonly refused?: Readonly<Record<string, string>>;
  /** Password by user name. */
  readonly users?: Readonly<Record<string, string>>;
  /** Instead of `users`. */
  readonly owners?: People;
  /** The blocks of people of providers. Default: none. */
  readonly blocks?: Blocks;
  /** Default: `http://127.0.0.1:<port>`. An https issuer is still served over plain http, as behind a proxy. */
  readonly issuer?: string;
  /** Of the public listener; the admin port is the next one. Default: free ones. */
  readonly port?: number;
  /** `/…` behind the default issuer. */
  readonly issuerPath?: string;
  /** Default false: tests that fail often on purpose would run into each other. */
  readonly rateLimits?: boolean;
  readonly trustedProxies?: readonly string[];
  /** Default: on-demand. */
  readonly dpopNonce?: NonceRule;
  /** Default: providers-first. */
  readonly signInOrder?: SignInOrder;
  /** From where key sets may be fetched. Default: public addresses. */
  readonly fetch?: Partial<FetchSettings>;
  /** Of the hosts that clients name. Default: as a server. */
  readonly lookup?: AddressLookup;
  /** Default: one that cannot be read. */
  readonly clusterIssuer?: ClusterIssuer<VerificationKey>;
  readonly timeouts?: Partial<HttpTimeouts>;
  readonly keys?: readonly SigningKey[];
  /** Default: one of its own. */
  readonly pepper?: Uint8Array;
  /** Wraps the memory stores, to make them fail. */
  readonly wrapStores?: (stores: Stores) => Stores;
  /** Default: one of its own. */
  readonly clock?: TestClock;
  readonly auditSubjects?: 'hashed' | 'plain';
  /** Default: mutual TLS is off. Its listener is on 127.0.0.1. */
  readonly mutualTls?: MtlsSettings;
  /** Default: that of grantry. */
  readonly brand?: Partial<Brand>;
  /** Answers to a controller. */
  readonly replica?: ReplicaApi;
  /** The state of a users file. Default: none. */
  readonly usersFile?: { readonly fault: string | undefined };
  /** The state of Secrets with users. Default: none. */
  readonly usersSecrets?: UsersSecretsState;
  /** Made over the registry of this grantry. */
  readonly usage?: (registry: RegistryRef, clock: Clock) => ClientUsage;
}

/** A log line, parsed. */
export type LogLine = Readonly<Record<string, unknown>>;

/** One running grantry. */
export interface Grantry {
  readonly issuer: string;
  readonly port: number;
  readonly adminPort: number;
  /** The address of a path below the issuer's own, wherever the issuer claims to be. */
  url(path: string): string;
  adminUrl(path: string): string;
  /** POSTs a form; pairs where a parameter repeats. Redirects are not followed. */
  post(
    path: string,
    form: Record<string, string> | readonly (readonly [string, string])[],
    init?: RequestInit,
  ): Promise<Response>;
  readonly clock: TestClock;
  readonly stores: Stores;
  readonly server: TokenServer;
  /** Undefined where it is off. */
  readonly mutualTls: MutualTls | undefined;
  /** Replaces all clients, as an edited manifest would. */
  setClients(clients: readonly TestClient[]): void;
  /** Replaces all resources likewise. @param withheld default: none */
  setResources(accepted: readonly Resource[], withheld?: readonly Resource[]): void;
  /** Replaces all signing keys, as a rotation would. */
  /** Resolves when each of them has been discovered, or cannot be. */
  setProviders(providers: readonly IdentityProvider[]): Promise<void>;
  setKeys(keys: readonly SigningKey[]): void;
  client(clientId: string): Client;
  /** An authorization code as it is after a person has consented. */
  issueCode(clientId: string, grant?: Partial<Grant>): Promise<string>;
  /** All lines so far. */
  logs(): readonly LogLine[];
  /** The audit lines so far. */
  audits(): readonly LogLine[];
  /** Resolves when what the list of users changes has taken effect. */
  usersRecorded(): Promise<void>;
  /** The next 503 of the token endpoint is about a code that is void. */
  expectVoidedCode(): void;
  stop(): Promise<void>;
}

/** The pair of RFC 7636 appendix B. */
/** That of a client in namespace `shop` whose manifest names none. */
export const DEFAULT_AUDIENCE = 'urn:grantry:ns:shop:default';
export const PKCE = {
  verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
} as const;

/** A person who always exists, has no known password, and is the subject of {@link Grantry.issueCode}. */
const PERSON = {
  username: 'person',
  passwordHash: '$argon2id$v=19$m=19456,t=2,p=1$Z3JhbnRyeS1ub2JvZHktMQ$VVYLuSTgGzfULLjdglR/WQtPZDjO9Wlf3DPJHqetDk4',
} as const;
const PERSON_SUBJECT = `usr_${createHash('sha256').update('local\0person').digest('base64url').slice(0, 22)}`;

/** What a JSON endpoint answered; a member that was not sent is undefined at run time. */
export interface JsonBody {
  readonly error: string;
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
  readonly active: boolean;
}

/** The body of an answer of a JSON endpoint. */
export async function readJson(response: Response): Promise<JsonBody> {
  return (await response.json()) as JsonBody;
}

/** A complete client from what a test cares about. */
function testClient({ secret, ...given }: TestClient): Client {
  const uid = given.uid ?? `uid-of-${given.clientId}`;
  return {
    uid,
    namespace: 'shop',
    name: given.clientId,
    maxState: 64 * 2 ** 20,
    displayName: given.clientId,
    clientUri: undefined,
    policyUri: undefined,
    tosUri: undefined,
    revokeTokensBefore: 0,
    authMethod: secret === undefined ? 'none' : 'client_secret_basic',
    secretVerifiers: secret === undefined ? [] : [secretVerifier(uid, secret)],
    assertion: undefined,
    certificate: undefined,
    serviceAccounts: [],
    senderConstraint: 'None',
    grantTypes: ['authorization_code', 'refresh_token', ...(secret === undefined ? [] : ['client_credentials'])],
    redirectUris: ['https://app.example/cb'],
    postLogoutRedirectUris: [],
    allowedCorsOrigins: [],
    scopes: ['read', 'write'],
    defaultScopes: ['read'],
    groups: ['*'],
    backchannelLogoutUri: undefined,
    audiences: [DEFAULT_AUDIENCE],
    resources: [],
    defaultAudience: undefined,
    resourceServerAudiences: [],
    admittedBy: 'policy',
    consent: 'Required',
    signIn: undefined,
    requireState: false,
    idTokens: { signingAlgorithm: 'RS256', lifetimeSeconds: 3600 },
    ...given,
    tokens: {
      accessTokenFormat: 'jwt',
      accessTokenLifetimeSeconds: 600,
      refreshTokenIdleLifetimeSeconds: 14 * 86_400,
      refreshTokenLifetimeSeconds: 90 * 86_400,
      refreshTokenRotation: 'Always',
      refreshTokenReuseGraceSeconds: 10,
      ...given.tokens,
    },
  };
}

/** The value of an Authorization header, both parts form-encoded (RFC 6749 §2.3.1). */
export function basic(clientId: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams([[text, '']]).toString().slice(0, -1);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(secret)}`).toString('base64')}`;
}

let sharedKey: Promise<SigningKey> | undefined;
const running = new Set<Grantry & { readonly oracle: Oracle; inspectAdmin(): Promise<void> }>();

afterEachTest(async () => {
  for (const grantry of running) {
    await grantry.inspectAdmin();
    expect(grantry.oracle.takeFaults()).toEqual([]);
  }
});

afterEachFile(async () => {
  for (const grantry of running) await grantry.stop();
});

/** Starts grantry; it ends by itself after the tests of the file. */
export async function startGrantry(options: GrantryOptions): Promise<Grantry> {
  requireFileHooks();
  // The issuer holds one of them, so it must be known before the server is made.
  const port = options.port ?? (await freePort(2));
  const adminPort = port + 1;
  const issuer = options.issuer ?? `http://127.0.0.1:${port}${options.issuerPath ?? ''}`;
  const clock = options.clock ?? new TestClock();
  const memory = memoryStores({ clock });
  const stores = options.wrapStores?.(memory) ?? memory;
  sharedKey ??= generateSigningKeyPem('ES256').then((pem) => importSigningKey(pem, 'ES256', 'Active'));
  let keys = new KeyRing(options.keys ?? [await sharedKey]);
  let clients = options.clients;
  const refused = { reasonOf: (clientId: string) => options.refused?.[clientId] };
  let resources = new Resources(options.resources ?? []);
  let providers: readonly IdentityProvider[] = [];
  const registryNow = () =>
    new Registry(clients.map(testClient), keys, { resources, providers, ...(refused !== undefined && { refused }) });
  const registry = { current: registryNow() };
  const oracle = new Oracle(() => issuer);
  const lines: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      lines.push(line);
      oracle.inspectText('log line', line);
      done();
    },
  });
  const pepper = options.pepper ?? randomBytes(32);
  oracle.secret(Buffer.from(pepper).toString('base64url'));
  const users = await Promise.all(
    Object.entries(options.users ?? {}).map(async ([username, password]) => {
      oracle.secret(password);
      return { username, passwordHash: await hashPassword(password) };
    }),
  );
  const random = { bytes: (count: number) => randomBytes(count) };
  const owners = options.owners ?? new LocalUsers({ clock, users: [PERSON, ...users] });
  const log = createLog('debug', stream);
  const mutualTls = options.mutualTls && (await MutualTls.open({ settings: options.mutualTls, clock, log }));
  const server = assembleTokenServer({
    mutualTls,
    brand: { ...OWN_BRAND, ...options.brand },
    settings: {
      issuer,
      trustedProxies: options.trustedProxies ?? [],
      rateLimits: options.rateLimits ?? false,
      dpopNonce: options.dpopNonce ?? 'on-demand',
      signInOrder: options.signInOrder ?? 'providers-first',
      auditSubjects: options.auditSubjects ?? 'hashed',
      logOneTokenIn: 1,
      fetch: { networks: [], caFile: undefined, ...options.fetch },
    },
    registry,
    stores,
    clock,
    random,
    owners,
    ...(options.lookup && { lookup: options.lookup }),
    ...(options.blocks && { blocks: options.blocks }),
    peppers: [pepper],
    clusterIssuer: options.clusterIssuer ?? {
      current: () => Promise.reject(clusterIssuerUnavailable('unreachable')),
    },
    log,
    timeouts: { check: 50, ...options.timeouts },
    ...(options.replica && { replica: options.replica }),
    ...(options.usersFile && { usersFile: options.usersFile }),
    ...(options.usersSecrets && { usersSecrets: options.usersSecrets }),
    ...(options.usage && { usage: options.usage(registry, clock) }),
  });
  const userChanges =
    owners instanceof LocalUsers
      ? assembleUserChanges({ users: owners, stores, clock, audit: server.audit, log, lag: 0 })
      : undefined;
  userChanges?.start();
  for (const side of [server.public, server.mutualTls ?? [], server.admin].flat()) {
    tapResponses(side.server, (response) => oracle.inspect(response));
    learnSecrets(side, oracle);
  }
  await server.public.listen({ host: '127.0.0.1', port });
  await server.admin.listen({ host: '127.0.0.1', port: adminPort });
  await server.mutualTls?.listen({ host: '127.0.0.1', port: options.mutualTls?.listener?.port ?? 0 });
  mutualTls?.start(server.mutualTls);

  const adminUrl = (path: string) => `http://127.0.0.1:${adminPort}${path}`;
  const url = (path: string) => `http://127.0.0.1:${port}${new URL(issuer).pathname.replace(/\/$/, '')}${path}`;
  const handles = new Handles({ issuer, peppers: [pepper], random });
  const authentic = sealedStores(stores, {
    macs: new RecordMacs({ issuer, peppers: [pepper] }),
    onForged: () => {},
  });
  for (const { secret } of options.clients) oracle.secret(secret);
  const grantry = {
    issuer,
    port,
    adminPort,
    url,
    adminUrl,
    clock,
    stores,
    server,
    mutualTls,
    oracle,
    post(path: string, form: Record<string, string> | readonly (readonly [string, string])[], init: RequestInit = {}) {
      const pairs = (Array.isArray(form) ? form : Object.entries(form)) as [string, string][];
      return fetch(url(path), { method: 'POST', redirect: 'manual', body: new URLSearchParams(pairs), ...init });
    },
    setClients(changed: readonly TestClient[]) {
      for (const { secret } of changed) oracle.secret(secret);
      clients = changed;
      registry.current = registryNow();
    },
    setResources(accepted: readonly Resource[], withheld?: readonly Resource[]) {
      resources = new Resources(accepted, withheld);
      registry.current = registryNow();
    },
    async setProviders(changed: readonly IdentityProvider[]) {
      providers = changed;
      registry.current = registryNow();
      server.providerClients.discover();
      await until('the discovery of the providers', () => !server.providerClients.isDiscovering);
    },
    setKeys(changed: readonly SigningKey[]) {
      keys = new KeyRing(changed);
      registry.current = registryNow();
    },
    client(clientId: string): Client {
      const found = registry.current.find(clientId);
      if (found === undefined) throw new Error(`no client ${clientId}`);
      return found;
    },
    async issueCode(clientId: string, grant: Partial<Grant> = {}) {
      const { uid, redirectUris, audiences } = grantry.client(clientId);
      const { code, grantId, secretHash } = handles.newCode(grant.subject ?? PERSON_SUBJECT);
      oracle.secret(code);
      const defaults = {
        grantId,
        clientUid: uid,
        clientId,
        subject: PERSON_SUBJECT,
        sessionId: undefined,
        authTime: clock.now(),
        scope: ['read', 'write'],
        audiences,
        redirectUri: redirectUris[0] ?? '',
        codeChallenge: PKCE.challenge,
      };
      await authentic.grants.issue({ ...defaults, ...grant }, secretHash, 60_000, 90 * 86_400_000);
      return code;
    },
    logs: () => lines.map((line) => JSON.parse(line) as LogLine),
    audits: () => grantry.logs().filter(({ stream }) => stream === 'audit'),
    usersRecorded: async () => await userChanges?.run(),
    expectVoidedCode: () => oracle.expectVoidedCode(),
    async inspectAdmin() {
      oracle.inspectText('metric', await (await fetch(adminUrl('/metrics'))).text());
    },
    async stop() {
      if (!running.delete(grantry)) return;
      userChanges?.stop();
      mutualTls?.stop();
      await Promise.all([server.public.close(), server.mutualTls?.close(), server.admin.close()]);
    },
  };
  running.add(grantry);
  return grantry;
}

/** Secrets of requests; whatever a request calls by one of these names is one. */
const SECRET_PARAMETERS = [
  'client_secret',
  'code',
  'code_verifier',
  'refresh_token',
  'access_token',
  'token',
  'password',
  'state',
  'client_assertion',
];

/** Secrets, too, but the question before a sign-out sends them again. */
const SENT_AGAIN = ['id_token_hint', 'nonce'];

function learnSecrets(server: FastifyInstance, oracle: Oracle): void {
  server.addHook('preHandler', (request, _reply, done) => {
    const [, credentials = ''] = request.headers.authorization?.split(' ') ?? [];
    oracle.secret(credentials);
    if (typeof request.headers.dpop === 'string') oracle.secret(request.headers.dpop);
    oracle.secret(Buffer.from(credentials, 'base64').toString().split(':')[1]);
    for (const cookie of request.headers.cookie?.split('; ') ?? []) oracle.secret(cookie.split('=')[1]);
    const body = request.body instanceof Uint8Array ? Buffer.from(request.body).toString() : '';
    const [path = '', query] = request.url.split('?');
    const sentAgain = /\/logout(\/confirm)?$/.test(path) ? [...SENT_AGAIN, 'state'] : SENT_AGAIN;
    for (const parameters of [new URLSearchParams(body), new URLSearchParams(query)]) {
      for (const name of sentAgain) oracle.secretButInPages(parameters.get(name));
      for (const name of SECRET_PARAMETERS) if (!sentAgain.includes(name)) oracle.secret(parameters.get(name));
    }
    done();
  });
}
