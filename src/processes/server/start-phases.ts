// The start of `grantry server` in four phases. Each is a function of what the phases before it returned: sources, admin
// side, prerequisites, serving side. `Progress` is what the admin port shows of the phases that follow it.

import { PEPPER_SECRET, WEBHOOK_SECRET } from '../../admission/references/secret-parts.ts';
import { RegistrySync } from '../../cluster-registry/registry-sync.ts';
import type { AlertDelivery } from '../../delivery/alert-delivery.ts';
import type { ReadinessCheck } from '../../http/admin/admin.ts';
import { ClientUsage } from '../../http/admin/client-usage.ts';
import type { StoreProbe } from '../../http/metrics/metrics.ts';
import { WatchCounters } from '../../http/metrics/watch-metrics.ts';
import type { Brand } from '../../http/pages/brand.ts';
import type { ApiClient } from '../../kubernetes/api/api-client.ts';
import type { ApiServerIssuer } from '../../kubernetes/api/api-server-issuer.ts';
import type { UserChanges } from '../../login/local/user-changes.ts';
import type { UserLists } from '../../login/local/user-lists.ts';
import { availableMethods } from '../../oauth/client-auth/index.ts';
import { randomId } from '../../oauth/values/random-id.ts';
import { alertDelivery } from '../alerts/alerts.ts';
import type { Settings } from '../config/config.ts';
import type { RedisSettings } from '../config/redis-config.ts';
import type { StartError } from '../config/start-error.ts';
import { systemClock, systemRandom } from '../lifecycle/machine.ts';
import type { Peppers } from '../lifecycle/pepper.ts';
import type { ProcessLog } from '../log/log.ts';
import type { MutualTls } from '../mutual-tls/mutual-tls.ts';
import { openRedisState, type RedisState } from '../redis/redis-state.ts';
import { type AdminSide, assembleAdminSide } from '../token-server/admin-side.ts';
import { assembleTokenServer, type TokenServer } from '../token-server/token-server.ts';
import { assembleUserChanges } from '../token-server/user-changes.ts';
import { assembleClusterIssuer, clusterIssuerCheck } from './cluster-issuer.ts';
import { PepperSource } from './pepper-source.ts';
import { Replica } from './replica.ts';
import type { UsersFile } from './users-file.ts';
import { UsersSecrets } from './users-secrets.ts';

/** How long the kubelet may take to update a mounted file, with some time to spare; milliseconds. Watches are quicker. */
const USERS_FILE_LAG = 120_000;

/** What the command has before the first phase. */
export interface ServerParts {
  readonly settings: Settings & { readonly redis: RedisSettings };
  readonly processLog: ProcessLog;
  readonly api: ApiClient;
  /** The lists of users, merged. */
  readonly lists: UserLists;
  readonly usersFile: UsersFile;
  readonly brand: Brand;
  /** Undefined where mutual TLS is off. */
  readonly mutualTls: MutualTls | undefined;
}

/** Phase 1: what the replica reads from its cluster. Nothing is watched yet. */
export interface Sources {
  readonly registry: RegistrySync;
  /** Counts the watches behind the registry. */
  readonly watches: WatchCounters;
  readonly usage: ClientUsage;
  readonly pepper: PepperSource;
  readonly clusterIssuer: ApiServerIssuer;
  readonly usersSecrets: UsersSecrets;
}

/** What the phases after the admin side have reached; a member is undefined until then. */
export interface Progress {
  redis?: RedisState;
  serving?: Serving;
}

/** Phase 3: what a token server cannot start without. */
export interface Prerequisites {
  readonly redis: RedisState;
  readonly peppers: Peppers;
}

/** Phase 4: everything that serves; it does not listen yet. */
export interface Serving {
  readonly tokens: TokenServer;
  readonly alerts: AlertDelivery;
  readonly userChanges: UserChanges;
}

/** Phase 1. */
export function createSources({ settings, processLog, api, lists }: ServerParts): Sources {
  const [clock, random] = [systemClock, systemRandom];
  const watches = new WatchCounters();
  const registry = new RegistrySync({
    api,
    clock,
    random,
    log: processLog.log,
    metrics: watches,
    issuer: settings.issuer,
    className: settings.className,
    releaseNamespace: settings.namespace,
    defaultPolicy: settings.defaultPolicy,
    supportedAuthMethods: [...availableMethods({ mutualTls: settings.mtls !== undefined }).keys()],
    watchNamespaces: settings.watchNamespaces,
  });
  const usage = new ClientUsage({
    registry,
    clock,
    instance: randomId(random, 9),
    generationOf: (uid) => registry.servedState(uid)?.generation,
  });
  const pepper = new PepperSource({
    file: settings.pepperFile,
    namespace: settings.namespace,
    secretText: () => registry.textOf(PEPPER_SECRET),
  });
  const clusterIssuer = assembleClusterIssuer({ api, log: processLog.log });
  const usersSecrets = new UsersSecrets({ secrets: () => registry.usersSecrets(), lists, log: processLog.log });
  return { registry, watches, usage, pepper, clusterIssuer, usersSecrets };
}

/** Phase 2. @param progress read at each request of the admin port */
export function createAdminSide(
  { settings, processLog, usersFile }: ServerParts,
  { registry, watches, usage, pepper, clusterIssuer, usersSecrets }: Sources,
  progress: Readonly<Progress>,
): AdminSide {
  return assembleAdminSide({
    settings,
    registry,
    random: systemRandom,
    log: processLog.log,
    store: storeProbe(progress),
    refusedClients: () => registry.refusedClients,
    logDropped: processLog.dropped,
    readiness: readinessChecks({ registry, pepper, clusterIssuer }, progress),
    ...(settings.usersFile !== undefined && { usersFile }),
    usersSecrets,
    processMetrics: true,
    watches,
    clusterIssuerReads: () => clusterIssuer.reads,
    followed: {
      now: () => systemClock.now(),
      lastProgress: () => registry.lastProgress,
      signingKey: () => registry.signingKey,
    },
    replica: new Replica({
      registry,
      usage,
      clock: systemClock,
      providerClients: () => progress.serving?.tokens.providerClients,
      users: () => usersSecrets.faults,
    }),
  });
}

/**
 * Phase 3: waits for Redis, a pepper, the first registry and the people. Redis is retried for as long as it takes.
 * @param onFatal called with what no retry can mend
 * @returns undefined when the process began to drain meanwhile
 */
export async function awaitPrerequisites(
  { settings, processLog }: ServerParts,
  { registry, pepper, usersSecrets }: Sources,
  { admin, progress, onFatal }: { admin: AdminSide; progress: Progress; onFatal: (error: StartError) => void },
): Promise<Prerequisites | undefined> {
  await pepper.refresh();
  const opening = openRedisState({
    redis: settings.redis,
    log: processLog.log,
    issuer: { explicit: settings.issuer, fallback: settings.issuer },
    onFatal,
  }).then((redis) => {
    progress.redis = redis;
    return redis;
  });
  // No person signs in before every list is merged: one that is missing may be the one that shuts a person out.
  const listed = registry.whenServing().then(() => usersSecrets.refresh());
  const [redis, peppers] = await Promise.all([opening, pepper.whenAvailable(), listed]);
  return admin.draining.begun ? undefined : { redis, peppers };
}

/** Phase 4. @throws StartError for a webhook secret that cannot be used */
export function createServing(
  { settings, processLog, lists, brand, mutualTls }: ServerParts,
  { registry, usage, clusterIssuer }: Sources,
  admin: AdminSide,
  { redis, peppers }: Prerequisites,
): Serving {
  const { log } = processLog;
  const tokens = assembleTokenServer(
    {
      settings,
      registry,
      stores: redis.stores,
      owners: lists.users,
      blocks: lists.blocks,
      clock: systemClock,
      random: systemRandom,
      peppers,
      clusterIssuer,
      log,
      usage,
      brand,
      mutualTls,
    },
    admin,
  );
  const alerts = alertDelivery({
    redis,
    server: tokens,
    settings,
    log,
    alerted: (alert) => usage.alerted(alert),
    webhookSecret: () => registry.textOf(WEBHOOK_SECRET),
  });
  const userChanges = assembleUserChanges({
    ...tokens,
    ...redis,
    users: lists.users,
    clock: systemClock,
    log,
    lag: USERS_FILE_LAG,
    followedUntil: () => registry.usersFollowedUntil,
  });
  return { tokens, alerts, userChanges };
}

function readinessChecks(
  { registry, pepper, clusterIssuer }: Pick<Sources, 'registry' | 'pepper' | 'clusterIssuer'>,
  progress: Readonly<Progress>,
): readonly ReadinessCheck[] {
  const isListening = () => progress.serving?.tokens.public.server.listening;
  return [
    { name: 'registry', fault: () => registry.startFault },
    { name: 'pepper', fault: () => pepper.missing },
    { name: 'public port', fault: () => (isListening() ? undefined : 'not listening yet') },
    { name: 'kubernetes', fault: () => registry.watchFault && staleness(registry), required: false },
    clusterIssuerCheck(clusterIssuer),
    { name: 'pepper change', fault: () => pepper.outdated, required: false },
    {
      name: 'redis',
      fault: () => (progress.redis ? progress.redis.readiness.fault() : 'not reached yet'),
      required: false,
    },
  ];
}

function staleness({ watchFault, lastProgress }: RegistrySync): string {
  return `no update since ${new Date(lastProgress).toISOString()}, serving the last known state: ${watchFault}`;
}

function storeProbe(progress: Readonly<Progress>): StoreProbe {
  return {
    get isUp() {
      return progress.redis?.probe.isUp ?? false;
    },
    warnings: () => progress.redis?.probe.warnings() ?? [],
  };
}
