// `grantry server`: one replica of the token server in a cluster. It watches its clients and keys in the API server and
// keeps its state in Redis; it has no state of its own. The admin port listens first and reports what the start is
// waiting for.

import { PEPPER_SECRET, type SingleSecret, WEBHOOK_SECRET } from '../../admission/references/secret-parts.ts';
import { type RegistrySwap, RegistrySync } from '../../cluster-registry/registry-sync.ts';
import type { ReadinessCheck } from '../../http/admin/admin.ts';
import type { ApiClient } from '../../kubernetes/api/api-client.ts';
import { randomId } from '../../oauth/values/random-id.ts';
import { DeliveryLeases } from '../../redis/grants/delivery-leases.ts';
import type { AlertDelivery } from '../alerts/alert-delivery.ts';
import { AlertReports } from '../alerts/alert-reports.ts';
import { alertDelivery } from '../alerts/alerts.ts';
import { ConfigurationError, readSettings, type Settings } from '../config/config.ts';
import type { RedisSettings } from '../config/redis-config.ts';
import { StartError } from '../config/start-error.ts';
import { connectCluster } from '../lifecycle/cluster-connection.ts';
import { listenOn } from '../lifecycle/listen-on.ts';
import { systemClock, systemRandom } from '../lifecycle/machine.ts';
import type { Peppers } from '../lifecycle/pepper.ts';
import { codeOf, endOnSignals } from '../lifecycle/shutdown.ts';
import { openLog, type ProcessLog } from '../log/log.ts';
import { openRedisState, type RedisState } from '../redis/redis-state.ts';
import { ClientUsage } from '../token-server/client-usage.ts';
import {
  type AdminSide,
  assembleAdminSide,
  assembleTokenServer,
  type TokenServer,
} from '../token-server/token-server.ts';
import { PepperSource } from './pepper-source.ts';
import { Replica } from './replica.ts';
import { UsersFile } from './users-file.ts';

export interface ServerOptions {
  readonly stderr: NodeJS.WritableStream;
}

/**
 * Serves until a signal ends it.
 * @returns 0; 1 when a port is taken, requests were cut off, or after an internal error; 2 for an invalid configuration
 */
export async function server({ stderr }: ServerOptions): Promise<number> {
  try {
    const settings = readSettings({
      defaults: { GRANTRY_HOST: '0.0.0.0' },
      required: ['GRANTRY_ISSUER', 'GRANTRY_NAMESPACE', 'GRANTRY_REDIS_URL'],
      hasSecrets: true,
    });
    if (settings.redis === undefined) throw new StartError('GRANTRY_REDIS_URL is not set', 2);
    const processLog = await openLog({ level: settings.logLevel, format: settings.logFormat });
    const server = new ServerProcess({
      settings: { ...settings, redis: settings.redis },
      processLog,
      api: await connectCluster(settings.cluster),
      users: await UsersFile.open({ file: settings.usersFile, log: processLog.log }),
    });
    return await codeOf(() => server.run(), processLog.log);
  } catch (error) {
    if (error instanceof ConfigurationError) {
      for (const fault of error.faults) stderr.write(`grantry server: ${fault}\n`);
      return 2;
    }
    if (!(error instanceof StartError)) throw error;
    stderr.write(`grantry server: ${error.message}\n`);
    return error.code;
  }
}

type ServerSettings = Settings & { readonly redis: RedisSettings };

interface ServerParts {
  readonly settings: ServerSettings;
  readonly processLog: ProcessLog;
  readonly api: ApiClient;
  readonly users: UsersFile;
}

/** One replica, from its start to its end. */
class ServerProcess {
  readonly #settings: ServerSettings;
  readonly #processLog: ProcessLog;
  readonly #api: ApiClient;
  readonly #registry: RegistrySync;
  readonly #usage: ClientUsage;
  readonly #users: UsersFile;
  readonly #pepper: PepperSource;
  readonly #admin: AdminSide;
  readonly #ended = Promise.withResolvers<number>();
  #redis: RedisState | undefined;
  #alertReports: AlertReports | undefined;
  #alerts: AlertDelivery | undefined;
  #tokens: TokenServer | undefined;
  #signingKeyId: string | undefined;

  constructor({ settings, processLog, api, users }: ServerParts) {
    this.#settings = settings;
    this.#processLog = processLog;
    this.#api = api;
    this.#users = users;
    const { log } = processLog;
    const [clock, random] = [systemClock, systemRandom];
    const registry = {
      get current() {
        return sync.current;
      },
      servedState: (uid: string) => sync.servedState(uid),
      textOf: (secret: SingleSecret) => sync.textOf(secret),
    };
    this.#usage = new ClientUsage({
      registry,
      clock,
      instance: randomId(random, 9),
      generationOf: (uid) => sync.servedState(uid)?.generation,
    });
    this.#pepper = new PepperSource({
      file: settings.pepperFile,
      namespace: settings.namespace,
      secretText: () => sync.textOf(PEPPER_SECRET),
    });
    this.#admin = assembleAdminSide({
      settings,
      registry,
      random,
      log,
      store: this.#storeProbe(),
      refusedClients: () => sync.refusedClients,
      logDropped: this.#processLog.dropped,
      readiness: this.#readiness(),
      processMetrics: true,
      followed: {
        now: () => clock.now(),
        lastProgress: () => sync.lastProgress,
        signingKey: () => sync.signingKey,
      },
      replica: new Replica({
        registry,
        usage: this.#usage,
        clock,
        alerts: () => this.#alertReports,
      }),
    });
    const sync = new RegistrySync({
      api: this.#api,
      clock,
      random,
      log,
      metrics: this.#admin.metrics.watches,
      className: settings.className,
      releaseNamespace: settings.namespace,
      defaultPolicy: settings.defaultPolicy,
      watchNamespaces: settings.watchNamespaces,
      onSwap: (swap) => this.#swapped(swap),
      onSecret: () => void this.#pepper.refresh(),
    });
    this.#registry = sync;
  }

  /** Runs until the end. @throws StartError when it cannot listen, or when no retry can make Redis usable */
  async run(): Promise<number> {
    const { host, adminPort } = this.#settings;
    this.#endOnSignals();
    try {
      await listenOn(this.#admin.admin, { host, port: adminPort, variable: 'GRANTRY_ADMIN_PORT' });
      this.#registry.start();
      const failed = this.#serve().then(() => this.#ended.promise);
      return await Promise.race([this.#ended.promise, failed]);
    } finally {
      await this.#close();
    }
  }

  async #serve(): Promise<void> {
    const { host, port } = this.#settings;
    await this.#pepper.refresh();
    const whatIsNeeded = [this.#openRedis(), this.#pepper.whenAvailable(), this.#registry.whenServing()] as const;
    const [redis, peppers] = await Promise.all(whatIsNeeded);
    if (this.#admin.draining.begun) return;
    const tokens = this.#assemble(redis, peppers);
    this.#tokens = tokens;
    this.#users.start();
    await listenOn(tokens.public, { host, port, variable: 'GRANTRY_PORT' });
    this.#alerts?.start();
    this.#noteSigningKey();
    this.#processLog.log.info({ issuer: this.#settings.issuer, clients: this.#registry.current.size }, 'serving');
  }

  #assemble(redis: RedisState, peppers: Peppers): TokenServer {
    const { log } = this.#processLog;
    const tokens = assembleTokenServer(
      {
        settings: this.#settings,
        registry: this.#registry,
        stores: redis.stores,
        owners: this.#users.users,
        clock: systemClock,
        random: systemRandom,
        peppers,
        log,
        usage: this.#usage,
      },
      this.#admin,
    );
    const reports = new AlertReports(new DeliveryLeases({ ...redis, hasController: true }));
    this.#alertReports = reports;
    this.#alerts = alertDelivery({
      redis,
      server: tokens,
      settings: this.#settings,
      log,
      reports,
      webhookSecret: () => this.#registry.textOf(WEBHOOK_SECRET),
    });
    return tokens;
  }

  async #openRedis(): Promise<RedisState> {
    const { redis, issuer } = this.#settings;
    const { log } = this.#processLog;
    this.#redis = await openRedisState({
      redis,
      log,
      issuer: { explicit: issuer, fallback: issuer },
      onFatal: (error) => {
        log.fatal(`redis: ${error.message}`);
        this.#ended.resolve(error.code);
      },
    });
    return this.#redis;
  }

  #readiness(): readonly ReadinessCheck[] {
    return [
      { name: 'registry', fault: () => this.#registry.startFault },
      { name: 'pepper', fault: () => this.#pepper.missing },
      { name: 'public port', fault: () => (this.#tokens?.public.server.listening ? undefined : 'not listening yet') },
      { name: 'kubernetes', fault: () => this.#registry.watchFault && this.#staleness(), required: false },
      { name: 'pepper change', fault: () => this.#pepper.outdated, required: false },
      {
        name: 'redis',
        fault: () => (this.#redis ? this.#redis.readiness.fault() : 'not reached yet'),
        required: false,
      },
    ];
  }

  #staleness(): string {
    const { watchFault, lastProgress } = this.#registry;
    return `no update since ${new Date(lastProgress).toISOString()}, serving the last known state: ${watchFault}`;
  }

  #storeProbe() {
    const redis = () => this.#redis;
    return {
      get isUp() {
        return redis()?.probe.isUp ?? false;
      },
      warnings: () => redis()?.probe.warnings() ?? [],
    };
  }

  #swapped({ isFirst, seconds, changes }: RegistrySwap): void {
    this.#admin.metrics.registrySwap.observe(seconds);
    const { log } = this.#processLog;
    if (isFirst) {
      const { size } = this.#registry.current;
      log.info({ clients: size, refused: this.#registry.refusedClients, seconds }, 'the cluster is known');
      return;
    }
    // The first swap records no audit events: every replica would repeat all of them at each start.
    for (const { kind, clientId, reason } of changes) {
      this.#tokens?.audit.record({ type: `client.${kind}`, clientId, reason });
    }
    this.#noteSigningKey();
  }

  #noteSigningKey(): void {
    const keyId = this.#registry.current.keys.signing?.kid;
    if (keyId === undefined || keyId === this.#signingKeyId || this.#tokens === undefined) return;
    this.#signingKeyId = keyId;
    this.#tokens.audit.record({ type: 'key.activated', keyId });
  }

  #endOnSignals(): void {
    const parts = () => ({ settings: this.#settings, tokens: this.#tokens, admin: this.#admin.admin });
    endOnSignals({
      draining: this.#admin.draining,
      // Before the public port listens no load balancer sends requests to this replica.
      get drainDelaySeconds() {
        return parts().tokens === undefined ? 0 : parts().settings.drainDelaySeconds;
      },
      get servers() {
        return [parts().tokens?.public ?? [], parts().admin].flat();
      },
      log: this.#processLog.log,
      afterwards: async () => await this.#alerts?.stop(),
      flush: this.#processLog.flush,
      exit: (code) => this.#ended.resolve(code),
    });
  }

  async #close(): Promise<void> {
    this.#users.stop();
    await this.#registry.stop();
    this.#api.close();
    await this.#redis?.close();
    await this.#processLog.flush();
  }
}
