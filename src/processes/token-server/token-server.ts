// Assembles the token server: protocol, endpoints, and the public and the admin server. `dev` and `server` differ only
// in the sources of registry, stores and users. Neither server listens yet on return. The admin side can be assembled
// first, to report what the start is waiting for.

import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { adminEndpoints, type ReadinessCheck } from '../../http/admin/admin.ts';
import { controllerEndpoints, type ReplicaApi } from '../../http/admin/controller-endpoints.ts';
import { Metrics, type StoreProbe } from '../../http/metrics/metrics.ts';
import type { Followed, WatchCounters } from '../../http/metrics/watch-metrics.ts';
import { type CertificateSource, NO_CERTIFICATES, socketCertificates } from '../../http/mtls/certificate-source.ts';
import { AuthenticationLimit, UNLIMITED_AUTHENTICATION } from '../../http/protocol/authentication-limit.ts';
import { introspectEndpoint } from '../../http/protocol/introspect.ts';
import { jwksEndpoint } from '../../http/protocol/jwks.ts';
import { metadataEndpoints } from '../../http/protocol/metadata.ts';
import { revokeEndpoint } from '../../http/protocol/revoke.ts';
import { tokenEndpoint } from '../../http/protocol/token.ts';
import { TrustedProxies } from '../../http/server/client-address.ts';
import type { Endpoint } from '../../http/server/endpoint.ts';
import { RequestLog } from '../../http/server/request-log.ts';
import { createHttpServer } from '../../http/server/server.ts';
import { HTTP_TIMEOUTS, type HttpTimeouts } from '../../http/server/strict-fastify.ts';
import { pageEndpoints } from '../../http/sign-in/page-endpoints.ts';
import { memoryReplays } from '../../memory/stores.ts';
import type { Refusal } from '../../oauth/client-auth/client-authentication.ts';
import { availableMethods } from '../../oauth/client-auth/index.ts';
import { ReplayMarks } from '../../oauth/client-auth/replay-marks.ts';
import { type NonceRule, ProofNonces } from '../../oauth/dpop/nonces.ts';
import { ProofJudge } from '../../oauth/dpop/proof.ts';
import { AuthorizationEndpoint } from '../../oauth/endpoints/authorization-endpoint.ts';
import { IntrospectionEndpoint } from '../../oauth/endpoints/introspection.ts';
import { authorizationServerMetadata, metadataPaths } from '../../oauth/endpoints/metadata.ts';
import { RevocationEndpoint } from '../../oauth/endpoints/revocation.ts';
import { TokenEndpoint } from '../../oauth/endpoints/token-endpoint.ts';
import { GRANT_TYPES } from '../../oauth/grants/index.ts';
import { NamespaceState } from '../../oauth/limits/namespace-state.ts';
import { PersonRate } from '../../oauth/limits/person-rate.ts';
import { UNLIMITED_STATE } from '../../oauth/limits/state-limits.ts';
import type { ClusterIssuer } from '../../oauth/ports/cluster-issuer.ts';
import type { Clock, Random, ResourceOwners, Stores } from '../../oauth/ports/ports.ts';
import type { Client } from '../../oauth/registry/client.ts';
import type { RegistryRef } from '../../oauth/registry/registry.ts';
import { Handles } from '../../oauth/tokens/handles.ts';
import { RecordMacs } from '../../oauth/tokens/record-macs.ts';
import { AccessTokens } from '../../oauth/tokens/tokens.ts';
import { issuerPath } from '../../oauth/values/issuer.ts';
import type { VerificationKey } from '../../oauth/values/jwk.ts';
import type { FetchSettings } from '../config/fetch-config.ts';
import { Draining } from '../lifecycle/shutdown.ts';
import { AuditLog } from '../log/audit-log.ts';
import type { MutualTls } from '../mutual-tls/mutual-tls.ts';
import { authenticStores } from './authentic-stores.ts';
import type { ClientUsage } from './client-usage.ts';
import { assembleKeySets } from './key-sets.ts';
import { measuredStores } from './measured-stores.ts';
import { assembleSignIn } from './sign-in.ts';

/** The configuration of the token server; `config.ts` reads it. */
export interface TokenServerSettings {
  readonly issuer: string;
  /** Addresses and CIDR blocks whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[];
  /** False turns off every rate limit. */
  readonly rateLimits: boolean;
  /** When DPoP proofs need a nonce. */
  readonly dpopNonce: NonceRule;
  readonly auditSubjects: 'hashed' | 'plain';
  /** N: one of N successful token requests is logged. */
  readonly logOneTokenIn: number;
  /** From where the key sets of clients may be fetched. */
  readonly fetch: FetchSettings;
}

/** The parts of the admin side. */
interface AdminSideOptions {
  readonly settings: TokenServerSettings;
  readonly registry: RegistryRef;
  readonly random: Random;
  readonly log: Logger;
  /** The server behind `stores`; undefined for stores in memory. */
  readonly store?: StoreProbe;
  /** How many clients the latest judgement of the manifests refused. */
  readonly refusedClients?: () => number;
  /** Log lines dropped since the start. */
  readonly logDropped?: () => number;
  /** Readiness checks in addition to the signing key and draining. */
  readonly readiness?: readonly ReadinessCheck[];
  readonly timeouts?: Partial<HttpTimeouts>;
  /** Whether to collect metrics of the process: true for one server in a process. */
  readonly processMetrics?: boolean;
  /** The watches behind the registry; undefined without a cluster. */
  readonly followed?: Followed;
  readonly watches?: WatchCounters;
  /** How often the issuer of ServiceAccount tokens was read, by outcome; undefined without a cluster. */
  readonly clusterIssuerReads?: () => ReadonlyMap<string, number>;
  /** The answers to the controller; undefined without one. */
  readonly replica?: ReplicaApi;
  /** The file that the users come from; undefined where there is none. */
  readonly usersFile?: UsersFileState;
}

/** What the admin port says about a users file. It never makes the process not ready: the users known so far are served. */
export interface UsersFileState {
  /** Why the file as it is now does not count, or not as a whole; undefined while it does. */
  readonly fault: string | undefined;
}

export interface AdminSide {
  readonly admin: FastifyInstance;
  readonly draining: Draining;
  readonly metrics: Metrics;
}

export interface TokenServerOptions extends AdminSideOptions {
  readonly stores: Stores;
  readonly owners: ResourceOwners;
  readonly clock: Clock;
  /** The first one makes handles, all are accepted; at least one. */
  readonly peppers: readonly [Uint8Array, ...Uint8Array[]];
  /** Undefined where mutual TLS is off. */
  readonly mutualTls?: MutualTls | undefined;
  /** The issuer of ServiceAccount tokens. */
  readonly clusterIssuer: ClusterIssuer<VerificationKey>;
  /** Records issued tokens and refusals for the controller; undefined without one. */
  readonly usage?: ClientUsage;
}

export interface TokenServer extends AdminSide {
  readonly public: FastifyInstance;
  /** The listener that asks for client certificates; undefined without one. */
  readonly mutualTls: FastifyInstance | undefined;
  readonly audit: AuditLog;
  /** To be called at each swap of the registry. @param seconds from the change of the manifests until it is served */
  readonly registrySwapped: (seconds: number) => void;
}

/** What passes TLS through adds no header: on the listener for mutual TLS every X-Forwarded-For is of the caller itself. */
const NO_PROXIES = new TrustedProxies([]);

/** Health, metrics, controller endpoints. @throws Error when a trusted proxy is neither an address nor a CIDR block */
export function assembleAdminSide(options: AdminSideOptions): AdminSide {
  const { registry, replica, usersFile } = options;
  const draining = new Draining();
  const metrics = new Metrics({
    clients: () => registry.current.size,
    refusedClients: options.refusedClients,
    logDropped: options.logDropped ?? (() => 0),
    processMetrics: options.processMetrics ?? false,
    store: options.store,
    followed: options.followed,
    watches: options.watches,
    clusterIssuerReads: options.clusterIssuerReads,
    usersReloaded: usersFile && (() => usersFile.fault === undefined),
  });
  const checks: readonly ReadinessCheck[] = [
    { name: 'serving', fault: () => (draining.begun ? 'draining' : undefined) },
    { name: 'signing key', fault: () => (registry.current.keys.signing ? undefined : 'no active key') },
    ...(options.readiness ?? []),
    ...(usersFile === undefined ? [] : [{ name: 'users', fault: () => usersFile.fault, required: false }]),
  ];
  const endpoints = [...adminEndpoints({ checks, metrics }), ...(replica ? controllerEndpoints(replica) : [])];
  return { admin: createHttpServer({ ...sharedServerOptions(options, metrics), endpoints }), draining, metrics };
}

/**
 * Assembles a token server.
 * @param side the admin side, where it was assembled first
 * @throws Error when a trusted proxy is neither an address nor a CIDR block
 * @throws StartError when the authorities of key hosts cannot be used
 */
export function assembleTokenServer(options: TokenServerOptions, side = assembleAdminSide(options)): TokenServer {
  const { settings, log, peppers, usage } = options;
  const { metrics, draining } = side;
  const audit = new AuditLog({
    log,
    metrics,
    subjects: settings.auditSubjects,
    pepper: peppers[0],
    observe: (event) => usage?.note(event),
  });
  const { publicEndpoints, mutualTlsEndpoints } = endpointsOf(options, audit, metrics);
  const shared = { ...sharedServerOptions(options, metrics), isDraining: () => draining.begun };
  const tls = options.mutualTls?.listenerTls;
  return {
    ...side,
    audit,
    public: createHttpServer({ ...shared, endpoints: publicEndpoints }),
    mutualTls: tls && createHttpServer({ ...shared, endpoints: mutualTlsEndpoints, tls, proxies: NO_PROXIES }),
    registrySwapped: (seconds) => metrics.registrySwap.observe(seconds),
  };
}

function sharedServerOptions({ settings, registry, log, random, timeouts }: AdminSideOptions, metrics: Metrics) {
  return {
    issuer: settings.issuer,
    log,
    metrics,
    proxies: new TrustedProxies(settings.trustedProxies),
    timeouts: { ...HTTP_TIMEOUTS, ...timeouts },
    requestLog: new RequestLog({ log, oneTokenIn: settings.logOneTokenIn }),
    corsOrigins: () => registry.current.corsOrigins,
    newRequestId: requestIds(random),
  };
}

/** The endpoints of the ports for clients, with their absolute paths. */
interface ClientPorts {
  readonly publicEndpoints: readonly Endpoint[];
  /** Those for programs. A browser would ask each of its people for a certificate. */
  readonly mutualTlsEndpoints: readonly Endpoint[];
}

function endpointsOf(options: TokenServerOptions, audit: AuditLog, metrics: Metrics): ClientPorts {
  const { settings, registry, owners, clock, random, peppers, clusterIssuer, mutualTls } = options;
  const { issuer, rateLimits } = settings;
  const stores = authenticStores(measuredStores(options.stores, metrics), {
    macs: new RecordMacs({ issuer, peppers }),
    onForged: (kind, grantId) => audit.record({ type: 'state_forged', reason: kind, grantId }),
  });
  const handles = new Handles({ issuer, peppers, random });
  const tokens = new AccessTokens({ issuer, clock, random, handles, endOfTick: setImmediate });
  const limiter = rateLimits ? new AuthenticationLimit({ clock }) : UNLIMITED_AUTHENTICATION;
  const limits = rateLimits
    ? { namespaces: new NamespaceState({ clock }), people: new PersonRate({ clock }) }
    : UNLIMITED_STATE;
  const { grants, replays } = stores;
  const marks = new ReplayMarks({ replays, fallback: memoryReplays(clock), limits, audit });
  const keySets = assembleKeySets({ settings: settings.fetch, clock, metrics, log: options.log });
  const certificates = mutualTls?.judge;
  const verification = { issuer, tokenEndpoint: `${issuer}/token`, clock, keySets, clusterIssuer, certificates };
  const onRefused = (client: Client, refusal: Refusal) => options.usage?.refused(client, refusal);
  const authentication = { registry, limiter, verification, marks, audit, onRefused };
  const protocol = { ...authentication, issuer, stores, owners, clock, random, handles, tokens, limits };
  const { people } = limits;
  const authorization = new AuthorizationEndpoint({ issuer, clock, grants, replays, handles, audit, people });
  const signIn = assembleSignIn({
    issuer,
    peppers,
    rateLimits,
    authorization,
    registry,
    stores,
    owners,
    clock,
    random,
    audit,
    metrics,
    onRedirectMismatch: (clientId) => options.usage?.redirectMismatch(clientId),
  });
  const proofs = {
    judge: new ProofJudge(),
    nonces: new ProofNonces({ issuer, peppers, rule: settings.dpopNonce }),
    urls: [issuer, ...(mutualTls === undefined ? [] : [`${mutualTls.settings.url}${issuerPath(issuer)}`])].map(
      (base) => `${base}/token`,
    ),
  };
  const document = authorizationServerMetadata({
    issuer,
    grantTypes: [...GRANT_TYPES.keys()],
    authMethods: availableMethods({ mutualTls: mutualTls !== undefined }),
    mtlsUrl: mutualTls?.settings.url,
  });
  const token = new TokenEndpoint({ ...protocol, proofs });
  const revocation = new RevocationEndpoint(protocol);
  const introspection = new IntrospectionEndpoint(protocol);
  const absolute = (endpoint: Endpoint) => ({ ...endpoint, path: `${issuerPath(issuer)}${endpoint.path}` });
  const forPrograms = (certificates: CertificateSource): readonly Endpoint[] => [
    ...[
      tokenEndpoint({ token, metrics, audit, certificates }),
      revokeEndpoint({ revocation, metrics, certificates }),
      introspectEndpoint({ introspection, metrics, certificates }),
      jwksEndpoint({ registry }),
    ].map(absolute),
    ...metadataEndpoints({ document, paths: metadataPaths(issuer) }),
  ];
  return {
    publicEndpoints: [
      ...pageEndpoints(signIn).map(absolute),
      ...forPrograms(mutualTls?.publicCertificates ?? NO_CERTIFICATES),
    ],
    mutualTlsEndpoints: forPrograms(socketCertificates),
  };
}

/** Request ids that are unique in the logs of all replicas, without a call for randomness each. */
function requestIds(random: Random): () => string {
  const replica = Buffer.from(random.bytes(6)).toString('base64url');
  let count = 0;
  return () => `${replica}-${(count++).toString(36)}`;
}
