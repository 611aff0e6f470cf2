// Assembles the protocol of a token server and its endpoints, for the public port and for the listener that asks for client
// certificates.

import { LogoutDelivery } from '../../delivery/logout-delivery.ts';
import { SessionLogouts } from '../../delivery/session-logouts.ts';
import { accountEndpoints } from '../../http/account/account-endpoints.ts';
import { measuredStores } from '../../http/metrics/measured-stores.ts';
import type { Metrics } from '../../http/metrics/metrics.ts';
import { type CertificateSource, NO_CERTIFICATES, socketCertificates } from '../../http/mtls/certificate-source.ts';
import { AuthenticationLimit, UNLIMITED_AUTHENTICATION } from '../../http/protocol/authentication-limit.ts';
import { introspectEndpoint } from '../../http/protocol/introspect.ts';
import { jwksEndpoint } from '../../http/protocol/jwks.ts';
import { metadataEndpoints } from '../../http/protocol/metadata.ts';
import { resourceMetadataEndpoint } from '../../http/protocol/resource-metadata.ts';
import { revokeEndpoint } from '../../http/protocol/revoke.ts';
import { tokenEndpoint } from '../../http/protocol/token.ts';
import { userinfoEndpoint } from '../../http/protocol/userinfo.ts';
import type { Endpoint } from '../../http/server/endpoint.ts';
import { pageEndpoints } from '../../http/sign-in/page-endpoints.ts';
import { callbackUrl } from '../../http/sign-in/upstream-sign-in.ts';
import { BlockedPeople } from '../../login/blocked-people.ts';
import { Blocks } from '../../login/blocks.ts';
import { Everyone } from '../../login/everyone.ts';
import { ProviderClients } from '../../login/upstream/provider-clients.ts';
import { memoryReplays } from '../../memory/stores.ts';
import type { ErrorSummary } from '../../oauth/client-auth/client-authentication.ts';
import { availableMethods } from '../../oauth/client-auth/index.ts';
import { ReplayMarks } from '../../oauth/client-auth/replay-marks.ts';
import { ProofNonces } from '../../oauth/dpop/nonces.ts';
import { ProofVerifier } from '../../oauth/dpop/proof.ts';
import { AuthorizationEndpoint } from '../../oauth/endpoints/authorization-endpoint.ts';
import { IntrospectionEndpoint } from '../../oauth/endpoints/introspection.ts';
import { authorizationServerMetadata, metadataPaths } from '../../oauth/endpoints/metadata.ts';
import { RevocationEndpoint } from '../../oauth/endpoints/revocation.ts';
import { TokenEndpoint } from '../../oauth/endpoints/token-endpoint.ts';
import { UserinfoEndpoint } from '../../oauth/endpoints/userinfo.ts';
import { GRANT_TYPES } from '../../oauth/grants/index.ts';
import { UseRecorder } from '../../oauth/grants/use-recorder.ts';
import { NamespaceState } from '../../oauth/limits/namespace-state.ts';
import { PersonRate } from '../../oauth/limits/person-rate.ts';
import { UNLIMITED_STATE } from '../../oauth/limits/state-limits.ts';
import type { Audit } from '../../oauth/ports/audit.ts';
import type { People, Stores } from '../../oauth/ports/ports.ts';
import type { Client } from '../../oauth/registry/client.ts';
import type { KeyRing } from '../../oauth/registry/keys.ts';
import type { UpstreamProviders } from '../../oauth/registry/upstream-providers.ts';
import { sealedStores } from '../../oauth/sealed-stores/sealed-stores.ts';
import { Handles } from '../../oauth/tokens/handles.ts';
import { IdTokens } from '../../oauth/tokens/id-tokens.ts';
import { LogoutTokens } from '../../oauth/tokens/logout-tokens.ts';
import { RecordMacs } from '../../oauth/tokens/record-macs.ts';
import { AccessTokens } from '../../oauth/tokens/tokens.ts';
import { issuerPath } from '../../oauth/values/issuer.ts';
import { RecentValues } from '../../oauth/values/recent-values.ts';
import { assembleKeySets, guardedFetch } from './key-sets.ts';
import { assembleSignIn } from './sign-in.ts';
import type { TokenServerOptions } from './token-server-options.ts';

/** The endpoints of the ports for clients, with their absolute paths. */
export interface ClientPorts {
  readonly publicEndpoints: readonly Endpoint[];
  /** Those for programs. A browser would ask each of its people for a certificate. */
  readonly mutualTlsEndpoints: readonly Endpoint[];
  readonly logouts: SessionLogouts;
  readonly providerClients: ProviderClients;
}

/** Everyone who can sign in, and where. @param stores with records that this server has sealed */
function peopleOf(
  { owners: users, blocks = new Blocks(), registry, clock, log, settings, triesCredentials }: TokenServerOptions,
  { persons, sessions, watermarks }: Stores,
  { upstreamDuration, upstreamErrors }: Metrics,
  audit: Audit,
): { readonly owners: People; readonly providers: UpstreamProviders; readonly providerClients: ProviderClients } {
  const providerClients = new ProviderClients({
    providers: () => registry.current.providers,
    clock,
    observe: ({ provider, step, seconds, isFailed }) => {
      upstreamDuration.observe({ provider, step }, seconds);
      if (isFailed) upstreamErrors.inc({ provider, step });
    },
    onDiscovered: (provider, { reach, detail }) => {
      if (detail === undefined) log.info({ provider }, 'the identity provider is reached');
      else log.warn({ provider, reach, detail }, 'people cannot sign in by the identity provider');
    },
    tryCredentials: triesCredentials ? (name) => callbackUrl(settings, name) : undefined,
    onGroupsLeftOut: (provider, count) => log.warn({ provider, count }, 'groups were left out because of their names'),
  });
  const blocked = new BlockedPeople({
    blocks,
    clock,
    async end(subject, before) {
      await watermarks.raise({ kind: 'user', subject }, before);
      if (before !== undefined) return;
      await sessions.endAll(subject);
      audit.record({ type: 'sessions.ended_all', subject, reason: 'person_blocked' });
    },
    onFault: (error) => log.warn({ err: error }, 'what a blocked person holds is not ended: it is tried again'),
  });
  const everyone = new Everyone({ users, persons, providers: providerClients, clock, blocked });
  const providers: UpstreamProviders = {
    list: () => providerClients.list(),
    provider: (name) => providerClients.provider(name),
    upstream: (name) => providerClients.upstream(name),
    faultOf: (name) => providerClients.faultOf(name),
    remember: (person, provider) => everyone.remember(person, provider),
  };
  return { owners: everyone, providers, providerClients };
}

const HOUR = 3_600_000;
/** For so many clients at least it is known when the last line was. */
const CLIENTS_REMEMBERED = 1_000;

/** The reports of ID tokens without groups: a count, a report to the controller, and a log line once an hour and client. */
function omittedGroups({ usage, clock, log }: TokenServerOptions, metrics: Metrics) {
  const lastLines = new RecentValues<number>(CLIENTS_REMEMBERED);
  return (clientId: string, count: number): void => {
    metrics.groupsOmitted.inc();
    usage?.groupsOmitted(clientId);
    const now = clock.now();
    if (now - (lastLines.get(clientId) ?? -HOUR) < HOUR) return;
    lastLines.set(clientId, now);
    log.warn({ clientId, count }, 'the groups of a person are left out of an ID token: they take more than 4 KiB');
  };
}

/** Assembles the protocol and its endpoints. @throws StartError when the authorities of key hosts cannot be used */
export function clientPorts(options: TokenServerOptions, audit: Audit, metrics: Metrics): ClientPorts {
  const { settings, registry, clock, random, peppers, clusterIssuer, mutualTls, brand } = options;
  const { issuer, rateLimits } = settings;
  const stores = sealedStores(measuredStores(options.stores, metrics), {
    macs: new RecordMacs({ issuer, peppers }),
    onForged: (kind, grantId) => audit.record({ type: 'state_forged', reason: kind, grantId }),
  });
  const { owners, providers, providerClients } = peopleOf(options, stores, metrics, audit);
  const handles = new Handles({ issuer, peppers, random });
  const tokens = new AccessTokens({ issuer, clock, random, handles, endOfTick: setImmediate });
  const limiter = rateLimits ? new AuthenticationLimit({ clock }) : UNLIMITED_AUTHENTICATION;
  const limits = rateLimits
    ? { namespaces: new NamespaceState({ clock }), people: new PersonRate({ clock }) }
    : UNLIMITED_STATE;
  const { grants, replays } = stores;
  const marks = new ReplayMarks({ replays, fallback: memoryReplays(clock), limits, audit });
  const keySets = assembleKeySets({
    settings: settings.fetch,
    lookup: options.lookup,
    clock,
    metrics,
    log: options.log,
  });
  const certificates = mutualTls?.verifier;
  const verification = { issuer, tokenEndpoint: `${issuer}/token`, clock, keySets, clusterIssuer, certificates };
  const onRefused = (client: Client, error: ErrorSummary) => options.usage?.refused(client, error);
  const authentication = { registry, limiter, verification, marks, audit, onRefused };
  const protocol = { ...authentication, issuer, stores, owners, clock, random, handles, tokens, limits };
  const { people } = limits;
  const authorization = new AuthorizationEndpoint({ issuer, clock, grants, replays, handles, audit, people });
  const delivery = new LogoutDelivery({
    registry,
    tokens: new LogoutTokens({ issuer, clock, random, endOfTick: setImmediate }),
    fetch: guardedFetch(settings.fetch, options.lookup),
    metrics,
    audit,
    log: options.log,
  });
  const logouts = new SessionLogouts({ stores, delivery, clock, log: options.log });
  const signIn = assembleSignIn({
    issuer,
    brand,
    peppers,
    rateLimits,
    order: settings.signInOrder,
    authorization,
    registry,
    stores,
    owners,
    providers,
    clock,
    random,
    audit,
    metrics,
    onPendingLogouts: (ended) => logouts.enqueue(ended),
    onRedirectMismatch: (clientId) => options.usage?.redirectMismatch(clientId),
  });
  const onGroupsOmitted = omittedGroups(options, metrics);
  const proofs = {
    verifier: new ProofVerifier(),
    nonces: new ProofNonces({ issuer, peppers, rule: settings.dpopNonce }),
  };
  const bases = [issuer, ...(mutualTls === undefined ? [] : [`${mutualTls.settings.url}${issuerPath(issuer)}`])];
  const proofsAt = (path: string) => ({ ...proofs, urls: bases.map((base) => `${base}${path}`) });
  const documentFor = (keys: KeyRing) =>
    authorizationServerMetadata({
      issuer,
      grantTypes: [...GRANT_TYPES.keys()],
      authMethods: availableMethods({ mutualTls: mutualTls !== undefined }),
      idTokenAlgorithms: keys.signingAlgorithms,
      mtlsUrl: mutualTls?.settings.url,
    });
  const idTokens = new IdTokens({ issuer, clock, random, endOfTick: setImmediate });
  const tokenAudit = new UseRecorder({ audit, uses: stores.uses, registry, clock, log: options.log });
  const token = new TokenEndpoint({ ...protocol, audit: tokenAudit, idTokens, proofs: proofsAt('/token') });
  const revocation = new RevocationEndpoint(protocol);
  const introspection = new IntrospectionEndpoint(protocol);
  const userinfo = new UserinfoEndpoint({ ...protocol, proofs: proofsAt('/userinfo') });
  const absolute = (endpoint: Endpoint) => ({ ...endpoint, path: `${issuerPath(issuer)}${endpoint.path}` });
  const forPrograms = (certificates: CertificateSource): readonly Endpoint[] => [
    ...[
      tokenEndpoint({ token, metrics, audit, certificates, onGroupsOmitted }),
      revokeEndpoint({ revocation, metrics, certificates }),
      introspectEndpoint({ introspection, metrics, certificates }),
      userinfoEndpoint({ issuer, userinfo, certificates }),
      jwksEndpoint({ registry }),
      resourceMetadataEndpoint({ issuer, registry }),
    ].map(absolute),
    ...metadataEndpoints({ registry, documentFor, paths: metadataPaths(issuer) }),
  ];
  return {
    publicEndpoints: [
      ...pageEndpoints(signIn).map(absolute),
      ...accountEndpoints({ ...signIn, uses: stores.uses }).map(absolute),
      ...forPrograms(mutualTls?.publicCertificates ?? NO_CERTIFICATES),
    ],
    mutualTlsEndpoints: forPrograms(socketCertificates),
    logouts,
    providerClients,
  };
}
