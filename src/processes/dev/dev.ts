// `grantry dev`: everything in one process on one machine. It serves the manifests of a folder and follows their
// changes; keys and secrets outlive a restart in `.grantry/` beside the manifests. State is in memory, or in Redis:
// then several of these processes on the same folder are replicas of one server.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AlertDelivery } from '../../delivery/alert-delivery.ts';
import { ManifestRegistry } from '../../folder-registry/manifest-registry.ts';
import { DevAccountIssuer } from '../../local-state/account-issuer.ts';
import { type CertificateFiles, provideCertificates } from '../../local-state/local-certificates.ts';
import { LocalKeys } from '../../local-state/local-keys.ts';
import { LocalRevokedTokens } from '../../local-state/local-revoked-tokens.ts';
import { LocalSecrets } from '../../local-state/local-secrets.ts';
import { STATE_FOLDER, StateFiles } from '../../local-state/state-files.ts';
import { type LocalUser, LocalUsers } from '../../login/local/local-users.ts';
import { FolderWatch } from '../../manifests/folder-watch.ts';
import { ManifestFolder } from '../../manifests/manifest-folder.ts';
import { memoryStores } from '../../memory/stores.ts';
import { availableMethods } from '../../oauth/client-auth/index.ts';
import type { Stores } from '../../oauth/ports/ports.ts';
import { systemLookup } from '../../outbound/name-lookup.ts';
import { alertDelivery } from '../alerts/alerts.ts';
import { readSettings, type Settings, type VariableTexts } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { systemClock, systemRandom } from '../lifecycle/machine.ts';
import { parsePeppers } from '../lifecycle/pepper.ts';
import { runProcess } from '../lifecycle/run-process.ts';
import { endOnSignals } from '../lifecycle/shutdown.ts';
import { openLog, type ProcessLog } from '../log/log.ts';
import { MutualTls } from '../mutual-tls/mutual-tls.ts';
import { openRedisState, type RedisState } from '../redis/redis-state.ts';
import { openBrand } from '../token-server/brand-file.ts';
import { addressOf, freePort, isLoopback, listen } from '../token-server/listening.ts';
import { assembleTokenServer, type TokenServer } from '../token-server/token-server.ts';
import { assembleUserChanges } from '../token-server/user-changes.ts';
import { changeHandler, recordChanges, type Served } from './dev-changes.ts';
import { DevPeople, userOf } from './dev-people.ts';
import { startReport } from './dev-report.ts';
import { Follower } from './follower.ts';
import { requireFolder } from './required-folder.ts';

export interface DevOptions {
  readonly directory: string;
  readonly port?: number;
  readonly host?: string;
  readonly adminPort?: number;
  /** Of a listener for mutual TLS with certificates made for it; without it only the environment configures one. */
  readonly mtlsPort?: number;
  readonly issuer?: string;
  /** `name:password` each. */
  readonly user?: readonly string[];
  /** The address of a Redis; without it state is in memory. */
  readonly redis?: string;
  readonly strictRedis?: boolean;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** Serves until a signal. @returns 0; 1 when a port is in use or requests were aborted; 2 for wrong usage */
export async function dev(options: DevOptions): Promise<number> {
  return await runProcess({ command: 'grantry dev', stderr: options.stderr }, () => serve(options));
}

async function serve(options: DevOptions): Promise<number> {
  const { directory } = options;
  const configured = await settingsOf(options);
  await requireFolder(directory);
  const given = await Promise.all((options.user ?? []).map(userOf));
  const processLog = await openLog({ level: configured.logLevel, format: configured.logFormat });
  const redis = await redisOf(configured, processLog);
  try {
    const settings = { ...configured, issuer: redis?.issuer ?? configured.issuer };
    return await serveWith(options, { settings, given, processLog, redis });
  } finally {
    await redis?.close();
  }
}

/** The inputs that are ready before the folder is read. */
interface Groundwork {
  readonly settings: Settings;
  readonly given: readonly LocalUser[];
  readonly processLog: ProcessLog;
  readonly redis: RedisState | undefined;
}

async function serveWith(options: DevOptions, groundwork: Groundwork): Promise<number> {
  const { directory, stdout } = options;
  const { settings, given, processLog, redis } = groundwork;
  const brand = await openBrand(settings.brand);
  const parts = await partsOf(directory, settings);
  const { registry, state, follower, watch } = parts;
  const certificates = options.mtlsPort === undefined ? undefined : await certificatesOf(settings, state);
  const isLocal = isLoopback(settings.host) && isLoopback(new URL(settings.issuer).hostname);
  const people = new DevPeople(new LocalUsers({ users: [], clock: systemClock }), given, isLocal);
  const begin = performance.now();
  await parts.stateWatch.start();
  const contents = await watch.start();
  const verdicts = await registry.rebuild(await parts.folder.update(contents));
  const seconds = (performance.now() - begin) / 1000;
  await people.replace(verdicts);
  const stores = redis?.stores ?? (await storesOf(state));
  const mutualTls = await mutualTlsOf(settings, processLog);
  const server = assembleTokenServer({
    settings,
    registry,
    refusedClients: () => registry.refusedClients,
    stores,
    owners: people.users,
    blocks: people.blocks,
    clock: systemClock,
    random: systemRandom,
    peppers: await peppersOf(settings, state),
    lookup: systemLookup,
    clusterIssuer: await DevAccountIssuer.open(state),
    log: processLog.log,
    logDropped: processLog.dropped,
    processMetrics: true,
    brand,
    mutualTls,
    triesCredentials: true,
    ...(redis !== undefined && { store: redis.probe, readiness: [redis.readiness] }),
  });
  const alerts = redis && alertDelivery({ redis, server, settings, log: processLog.log });
  const adminPort = await listen(server, settings);
  mutualTls?.start(server.mutualTls);
  alerts?.start();
  server.logouts.start();
  server.discovery.start();
  // Before the report is printed: a process that reads it may send a signal, or delete the state, at once.
  const ended = signalled({ server, settings, processLog, watches: [watch, parts.stateWatch], alerts });
  await parts.stateWatch.scan();
  server.registrySwapped(seconds);
  const served: Served = { verdicts, signingKeyId: registry.current.keys.signing?.kid };
  stdout.write(
    startReport({
      issuer: settings.issuer,
      listening: addressOf(settings.host, settings.port),
      redis: redis?.place,
      directory,
      verdicts,
      adminAddress: addressOf(settings.host, adminPort),
      usernames: people.names,
      demo: people.hasDemo,
      memoryReason: state.memoryReason,
      secretFileOf: (verdict) => parts.secrets.fileOf(verdict),
      mtls: settings.mtls && { url: settings.mtls.url, certificates },
    }),
  );
  recordChanges(server.audit, undefined, served);
  assembleUserChanges({
    ...server,
    users: people.users,
    stores,
    clock: systemClock,
    log: processLog.log,
    lag: 0,
  }).start();
  follower.follow(changeHandler({ ...parts, people, server, stdout, served }), contents, verdicts.dueAt);
  return await ended;
}

/** The parts that exist before the server is assembled. */
async function partsOf(directory: string, { issuer, mtls, namespace, defaultPolicy }: Settings) {
  const state = await StateFiles.open(directory);
  const secrets = new LocalSecrets({ state, clock: systemClock, random: systemRandom, issuer });
  const keys = new LocalKeys({ state, clock: systemClock, releaseNamespace: namespace });
  const follower = new Follower(systemClock);
  return {
    state,
    secrets,
    follower,
    registry: new ManifestRegistry({
      secrets,
      keys,
      issuer,
      clock: systemClock,
      supportedAuthMethods: [...availableMethods({ mutualTls: mtls !== undefined }).keys()],
      releaseNamespace: namespace,
      defaultPolicy,
    }),
    folder: new ManifestFolder(),
    watch: new FolderWatch({ root: directory, onChange: (contents) => follower.take(contents) }),
    // A secret that is deleted is made again, and what another process on this folder rotates is served.
    stateWatch: new FolderWatch({
      root: state.path,
      read: () => state.scan(),
      onChange: () => follower.again(),
    }),
  };
}

async function storesOf(state: StateFiles): Promise<Stores> {
  const stores = memoryStores({ clock: systemClock });
  const store = stores.revokedTokens;
  return { ...stores, revokedTokens: await LocalRevokedTokens.open({ store, state, clock: systemClock }) };
}

function signalled({
  server,
  settings,
  processLog,
  watches,
  alerts,
}: {
  readonly server: TokenServer;
  readonly settings: Settings;
  readonly processLog: ProcessLog;
  readonly watches: readonly FolderWatch[];
  readonly alerts: AlertDelivery | undefined;
}): Promise<number> {
  return new Promise((resolve) => {
    endOnSignals({
      draining: server.draining,
      drainDelaySeconds: settings.drainDelaySeconds,
      servers: [server.public, server.mutualTls ?? [], server.admin].flat(),
      log: processLog.log,
      afterwards: async () => {
        await server.logouts.stop();
        server.discovery.stop();
        await alerts?.stop();
      },
      flush: processLog.flush,
      exit: (code) => {
        for (const watch of watches) void watch.close();
        resolve(code);
      },
    });
  });
}

async function settingsOf(options: DevOptions): Promise<Settings> {
  const flags: VariableTexts = {
    ...(options.host !== undefined && { GRANTRY_HOST: options.host }),
    ...(options.port !== undefined && { GRANTRY_PORT: String(options.port) }),
    ...(options.adminPort !== undefined && { GRANTRY_ADMIN_PORT: String(options.adminPort) }),
    ...(options.issuer !== undefined && { GRANTRY_ISSUER: options.issuer }),
    ...(options.mtlsPort !== undefined && mtlsVariables(options.directory, options.mtlsPort)),
    ...(options.redis !== undefined && { GRANTRY_REDIS_URL: options.redis }),
    ...(options.strictRedis === true && { GRANTRY_REDIS_STRICT: 'on' }),
  };
  // No drain delay, as there is no load balancer; admin port 0 means the first free one; key hosts are on this machine.
  const defaults: VariableTexts = {
    GRANTRY_DRAIN_DELAY: '0s',
    GRANTRY_ADMIN_PORT: '0',
    GRANTRY_FETCH_NETWORKS: '127.0.0.0/8,::1',
  };
  const settings = readSettings({ flags, defaults });
  // The issuer contains the port and the metadata that for mutual TLS: both must be known before the server listens.
  const port = settings.port === 0 && { GRANTRY_PORT: String(await freePort(settings.host)) };
  const mtls = options.mtlsPort === 0 && mtlsVariables(options.directory, await freePort(settings.host));
  return port || mtls ? readSettings({ flags: { ...flags, ...port, ...mtls }, defaults }) : settings;
}

/** The settings of a listener with the certificates that are kept beside the manifests. */
function mtlsVariables(directory: string, port: number): VariableTexts {
  const file = (name: string) => join(directory, STATE_FOLDER, 'mtls', name);
  return {
    GRANTRY_MTLS_URL: `https://localhost:${port}`,
    GRANTRY_MTLS_PORT: String(port),
    GRANTRY_MTLS_CERT_FILE: file('server.crt'),
    GRANTRY_MTLS_KEY_FILE: file('server.key'),
    GRANTRY_CLIENT_CA_FILE: file('ca.crt'),
  };
}

function certificatesOf({ host }: Settings, state: StateFiles): Promise<CertificateFiles> {
  return provideCertificates({ state, host, clock: systemClock, random: systemRandom });
}

async function mutualTlsOf({ mtls }: Settings, { log }: ProcessLog): Promise<MutualTls | undefined> {
  return mtls && (await MutualTls.open({ settings: mtls, clock: systemClock, log }));
}

/** The state in Redis, where one is configured. */
async function redisOf(settings: Settings, { log }: ProcessLog): Promise<RedisState | undefined> {
  const { redis, issuer, issuerGiven } = settings;
  if (redis === undefined) return undefined;
  return await openRedisState({
    redis,
    log,
    issuer: { explicit: issuerGiven ? issuer : undefined, fallback: issuer },
  });
}

async function peppersOf({ pepperFile, redis }: Settings, state: StateFiles) {
  if (redis !== undefined && pepperFile === undefined && state.memoryReason !== undefined) {
    const reason = `${state.path} cannot be written (${state.memoryReason})`;
    throw new StartError(`${reason}, and replicas on one Redis need the same pepper: set GRANTRY_PEPPER_FILE`, 1);
  }
  const make = () => Buffer.from(systemRandom.bytes(32)).toString('base64url');
  try {
    return parsePeppers(
      pepperFile === undefined ? await state.keep('pepper', make) : await readFile(pepperFile, 'utf8'),
    );
  } catch (error) {
    const where = pepperFile ?? state.fileOf('pepper') ?? 'the pepper';
    throw new StartError(`${where}: ${error instanceof Error ? error.message : String(error)}`, 2);
  }
}
