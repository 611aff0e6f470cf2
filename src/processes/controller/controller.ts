// `grantry controller`: one of several processes leads and writes status, Secrets and Events for the objects of a
// cluster. All of them watch, so that another can take over at once. The admin port listens first and reports what
// start-up waits for.

import { hostname } from 'node:os';
import {
  CONTROLLER_SECRET,
  PEPPER_SECRET,
  REDIS_SECRET,
  type SingleSecret,
  WEBHOOK_SECRET,
} from '../../admission/references/secret-parts.ts';
import { ClientController } from '../../controller/clients/client-controller.ts';
import { ProviderController } from '../../controller/identity-providers/provider-controller.ts';
import { InitialUser, type InitialUserOptions } from '../../controller/install/initial-user.ts';
import { InstallSecrets } from '../../controller/install/install-secrets.ts';
import { LostSecrets } from '../../controller/install/lost-secrets.ts';
import { LeaderApi } from '../../controller/leadership/leader-api.ts';
import { LEADER_CALL_MILLISECONDS, type Leadership, LeaseElector } from '../../controller/leadership/lease.ts';
import { RbacDenials } from '../../controller/leadership/rbac-denials.ts';
import { PolicyController } from '../../controller/policies/policy-controller.ts';
import { type EventFacts, EventRecorder } from '../../controller/reconciling/events.ts';
import type { KindController } from '../../controller/reconciling/kind-controller.ts';
import { PolledReplicas } from '../../controller/replicas/observed-replicas.ts';
import { type FindReplicas, Replicas, replicasAt, replicasIn } from '../../controller/replicas/replicas.ts';
import { ResourceController } from '../../controller/resources/resource-controller.ts';
import { KeyController } from '../../controller/signing-keys/key-controller.ts';
import { adminEndpoints, type ReadinessCheck } from '../../http/admin/admin.ts';
import { ControllerMetrics } from '../../http/metrics/controller-metrics.ts';
import { TrustedProxies } from '../../http/server/client-address.ts';
import { RequestLog } from '../../http/server/request-log.ts';
import { createHttpServer } from '../../http/server/server.ts';
import { HTTP_TIMEOUTS } from '../../http/server/strict-fastify.ts';
import type { ApiClient } from '../../kubernetes/api/api-client.ts';
import { textOfSingle } from '../../kubernetes/objects/release-parts.ts';
import { objectKey } from '../../kubernetes/objects/resources.ts';
import { availableMethods } from '../../oauth/client-auth/index.ts';
import { randomId } from '../../oauth/values/random-id.ts';
import { readSettings, type Settings } from '../config/config.ts';
import { connectCluster } from '../lifecycle/cluster-connection.ts';
import { listenOn } from '../lifecycle/listen-on.ts';
import { systemClock, systemRandom } from '../lifecycle/machine.ts';
import { runProcess } from '../lifecycle/run-process.ts';
import { codeOf, Draining, endOnSignals } from '../lifecycle/shutdown.ts';
import { openLog, type ProcessLog } from '../log/log.ts';
import { ControllerSources } from './controller-sources.ts';

export interface ControllerOptions {
  readonly stderr: NodeJS.WritableStream;
}

/**
 * Runs until a signal ends it.
 * @returns 0; 1 when its port is taken or on an internal error; 2 for invalid configuration
 */
export async function controller({ stderr }: ControllerOptions): Promise<number> {
  return await runProcess({ command: 'grantry controller', stderr }, async () => {
    const settings = readSettings({
      defaults: { GRANTRY_HOST: '0.0.0.0' },
      required: ['GRANTRY_ISSUER', 'GRANTRY_NAMESPACE'],
      hasSecrets: true,
    });
    const processLog = await openLog({ level: settings.logLevel, format: settings.logFormat });
    const api = await connectCluster(settings.cluster, { callLimit: LEADER_CALL_MILLISECONDS });
    const controller = new ControllerProcess({ settings, processLog, api });
    return await codeOf(() => controller.run(), processLog.log);
  });
}

/** One per namespace, whatever the class: keys, pepper and webhook secret belong to the namespace. */
const LEASE_NAME = 'grantry-controller';

interface ControllerParts {
  readonly settings: Settings;
  readonly processLog: ProcessLog;
  readonly api: ApiClient;
}

class ControllerProcess {
  readonly #settings: Settings;
  readonly #processLog: ProcessLog;
  readonly #api: ApiClient;
  readonly #sources: ControllerSources;
  readonly #lostSecrets: LostSecrets;
  readonly #metrics: ControllerMetrics;
  readonly #identity: string;
  readonly #elector: LeaseElector;
  readonly #draining = new Draining();
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<number>();
  /** What runs while this process leads. */
  #components: readonly KindController[] = [];
  #events: EventRecorder | undefined;
  #rights: RbacDenials | undefined;
  /** Starts and stops of leading, one after the other. */
  #transitions: Promise<void> = Promise.resolve();

  constructor({ settings, processLog, api }: ControllerParts) {
    this.#settings = settings;
    this.#processLog = processLog;
    this.#api = api;
    const { log } = processLog;
    const [clock, random] = [systemClock, systemRandom];
    this.#metrics = new ControllerMetrics({
      isLeading: () => this.#elector.isLeading,
      queued: () => this.#components.reduce((sum, { queued }) => sum + queued, 0),
      followed: {
        now: () => clock.now(),
        lastProgress: () => this.#sources.lastProgress,
        signingKey: () => undefined,
      },
    });
    this.#sources = new ControllerSources({
      api: this.#api,
      clock,
      random,
      log,
      metrics: this.#metrics.watches,
      className: settings.className,
      releaseNamespace: settings.namespace,
      watchNamespaces: namespacesOf(settings),
      serverService: settings.serverService,
      needsUsers: initialUserOf(settings) !== undefined,
    });
    this.#lostSecrets = new LostSecrets(this.#sources.releaseSecrets);
    this.#identity = `${hostname()}_${randomId(random, 6)}`;
    this.#elector = new LeaseElector({
      api: this.#api,
      namespace: settings.namespace,
      name: LEASE_NAME,
      identity: this.#identity,
      clock,
      random,
      log,
      onStartedLeading: (leadership) => this.#enqueueTransition(() => this.#lead(leadership)),
      onStoppedLeading: () => this.#enqueueTransition(() => this.#stopLeading()),
    });
  }

  /** Runs until the process ends. @throws StartError when it cannot listen */
  async run(): Promise<number> {
    const { host, adminPort } = this.#settings;
    const admin = this.#adminServer();
    endOnSignals({
      // No requests are routed here: there is no drain to wait for.
      draining: this.#draining,
      drainDelaySeconds: 0,
      servers: [admin],
      log: this.#processLog.log,
      afterwards: () => this.#stop(),
      flush: this.#processLog.flush,
      exit: (code) => this.#ended.resolve(code),
    });
    await listenOn(admin, { host, port: adminPort, variable: 'GRANTRY_ADMIN_PORT' });
    this.#sources.start();
    this.#elector.start();
    return await this.#ended.promise;
  }

  async #lead(leadership: Leadership): Promise<void> {
    // Nothing is validated, and least of all removed, before every watch has completed its first list.
    const end = AbortSignal.any([leadership.signal, this.#stopping.signal]);
    await Promise.race([this.#sources.whenSynced(), aborted(end)]);
    if (end.aborted) return;
    const { issuer, className, namespace, defaultPolicy } = this.#settings;
    const replicas = this.#replicas();
    const { log } = this.#processLog;
    const rights = new RbacDenials({ namespaces: this.#sources.namespaces, clock: systemClock, log });
    const api = new LeaderApi({ api: this.#api, leadership, rights });
    const watchNamespaces = namespacesOf(this.#settings);
    const events = new EventRecorder({
      api,
      instance: this.#identity,
      clock: systemClock,
      log,
      namespaces: watchNamespaces && [...watchNamespaces, namespace],
    });
    [this.#rights, this.#events] = [rights, events];
    const shared = {
      api,
      reader: this.#api,
      sources: this.#sources,
      observed: new PolledReplicas(replicas),
      className,
      releaseNamespace: namespace,
      record: (event: EventFacts) => events.record(event),
      clock: systemClock,
      random: systemRandom,
      log,
      metrics: this.#metrics,
    };
    const install = { issuer, className, releaseNamespace: namespace, defaultPolicy };
    const secrets = new InstallSecrets({ ...shared, wanted: this.#wantedSecrets(), lost: this.#lostSecrets });
    this.#components = [secrets];
    secrets.start();
    await Promise.race([secrets.whenTried(), aborted(end)]);
    if (end.aborted) return;
    const resources: ResourceController = new ResourceController({
      ...shared,
      install,
      onGrantsChanged: (keys) => clients.grantsChanged(keys),
    });
    const clients: ClientController = new ClientController({
      ...shared,
      replicas,
      grantsOf: (client, spec) => resources.conditionFor(client, spec),
      ownerOf: resources.ownerOf,
      install: {
        ...install,
        watchNamespaces,
        supportedAuthMethods: [...availableMethods({ mutualTls: this.#settings.mtls !== undefined }).keys()],
      },
    });
    // What is granted is computed before the first client reports it.
    const providers = new ProviderController({ ...shared, install, reported: clients.reportedProviders });
    const initialUser = this.#initialUser(shared);
    const others = [
      new KeyController(shared),
      new PolicyController(shared),
      providers,
      resources,
      clients,
      ...initialUser,
    ];
    this.#components = [secrets, ...others];
    for (const each of others) each.start();
  }

  /** The Secrets that the controller generates: a secret that is configured as a file is not among them. */
  #wantedSecrets(): readonly SingleSecret[] {
    const { pepperFile, alertWebhook, generateRedisPassword } = this.#settings;
    return [
      CONTROLLER_SECRET,
      ...(pepperFile === undefined ? [PEPPER_SECRET] : []),
      ...(alertWebhook?.secretFile === undefined ? [WEBHOOK_SECRET] : []),
      ...(generateRedisPassword ? [REDIS_SECRET] : []),
    ];
  }

  #initialUser(shared: Pick<InitialUserOptions, 'api' | 'reader' | 'releaseNamespace' | 'random' | 'log' | 'metrics'>) {
    const { usersSecrets } = this.#sources;
    const username = initialUserOf(this.#settings);
    if (usersSecrets === undefined || username === undefined) return [];
    const hashPassword = async (password: string) =>
      // Its native code is loaded once in the life of an install.
      (await import('../../login/local/password.ts')).hashPassword(password);
    return [new InitialUser({ ...shared, username, sources: { usersSecrets }, hashPassword })];
  }

  async #stopLeading(): Promise<void> {
    const components = this.#components;
    this.#components = [];
    await Promise.all(components.map((each) => each.stop()));
    this.#events?.stop();
    this.#rights?.stop();
    [this.#events, this.#rights] = [undefined, undefined];
  }

  /** Everything that writes stops before the lease is released. */
  async #stop(): Promise<void> {
    this.#stopping.abort();
    this.#enqueueTransition(() => this.#stopLeading());
    await this.#transitions;
    await this.#elector.stop();
    await this.#transitions;
    await this.#sources.stop();
    this.#api.close();
  }

  /** A leader that fails to start or stop exits: as long as it holds the lease, no other process leads. */
  #enqueueTransition(task: () => Promise<void>): void {
    this.#transitions = this.#transitions.then(task).catch(async (error: unknown) => {
      this.#processLog.log.fatal({ err: error }, 'leading failed');
      await this.#processLog.flush();
      this.#ended.resolve(1);
    });
  }

  #replicas(): Replicas {
    const { releaseSecrets } = this.#sources;
    const secret = objectKey({ namespace: this.#settings.namespace, name: CONTROLLER_SECRET.name });
    return new Replicas({
      find: this.#findReplicas(),
      key: () => textOfSingle(releaseSecrets.get(secret), CONTROLLER_SECRET),
      clock: systemClock,
      log: this.#processLog.log,
    });
  }

  #findReplicas(): FindReplicas {
    const { serverAdminUrls, serverService } = this.#settings;
    const { endpointSlices } = this.#sources;
    if (endpointSlices !== undefined) return () => replicasIn(endpointSlices.objects());
    if (serverService === undefined && serverAdminUrls.length === 0) return () => undefined;
    const replicas = replicasAt(serverAdminUrls);
    return () => replicas;
  }

  #adminServer() {
    const { issuer, logOneTokenIn: oneTokenIn } = this.#settings;
    const { log } = this.#processLog;
    let requests = 0;
    return createHttpServer({
      issuer,
      log,
      metrics: this.#metrics,
      timeouts: HTTP_TIMEOUTS,
      proxies: new TrustedProxies([]),
      requestLog: new RequestLog({ log, oneTokenIn }),
      corsOrigins: () => new Set(),
      newRequestId: () => (requests++).toString(36),
      endpoints: adminEndpoints({ checks: this.#checks(), metrics: this.#metrics }),
    });
  }

  #checks(): readonly ReadinessCheck[] {
    return [
      { name: 'serving', fault: () => (this.#draining.begun ? 'draining' : undefined) },
      { name: 'watches', fault: () => this.#sources.startFault },
      // Ready as long as a leader is known, whichever process it is.
      {
        name: 'lease',
        fault: () => (this.#elector.holder === undefined ? (this.#elector.fault ?? 'not known yet') : undefined),
      },
      { name: 'kubernetes', fault: () => this.#sources.fault ?? this.#elector.fault, required: false },
      // Not required for readiness: a denied kind of call does not stop the others.
      { name: 'rights', fault: () => this.#rights?.fault, required: false },
    ];
  }
}

/** Undefined: all. */
function namespacesOf({ watchNamespaces }: Settings): readonly string[] | undefined {
  return watchNamespaces.length === 0 ? undefined : watchNamespaces;
}

/** The user to create where there are none; undefined where none is configured, or a file has all users. */
function initialUserOf({ initialUser, usersFile }: Settings): string | undefined {
  return usersFile === undefined ? initialUser : undefined;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
