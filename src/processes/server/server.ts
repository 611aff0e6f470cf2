// `grantry server`: one replica of the token server in a cluster. It watches its clients and keys in the API server and
// keeps its state in Redis; it has no state of its own. The admin port listens first and reports what the start is
// waiting for. The phases of the start are in start-phases.ts.

import { LocalUsers } from '../../login/local/local-users.ts';
import { UserLists } from '../../login/local/user-lists.ts';
import { readSettings } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { connectCluster } from '../lifecycle/cluster-connection.ts';
import { listenOn } from '../lifecycle/listen-on.ts';
import { systemClock } from '../lifecycle/machine.ts';
import { runProcess } from '../lifecycle/run-process.ts';
import { codeOf, endOnSignals } from '../lifecycle/shutdown.ts';
import { openLog } from '../log/log.ts';
import { MutualTls } from '../mutual-tls/mutual-tls.ts';
import type { AdminSide } from '../token-server/admin-side.ts';
import { openBrand } from '../token-server/brand-file.ts';
import type { TokenServer } from '../token-server/token-server.ts';
import { RegistryAudit } from './registry-audit.ts';
import {
  awaitPrerequisites,
  createAdminSide,
  createServing,
  createSources,
  type Progress,
  type ServerParts,
  type Sources,
} from './start-phases.ts';
import { UsersFile } from './users-file.ts';

export interface ServerOptions {
  readonly stderr: NodeJS.WritableStream;
}

/**
 * Serves until a signal ends it.
 * @returns 0; 1 when a port is taken, requests were cut off, or after an internal error; 2 for an invalid configuration
 */
export async function server({ stderr }: ServerOptions): Promise<number> {
  return await runProcess({ command: 'grantry server', stderr }, async () => {
    const settings = readSettings({
      defaults: { GRANTRY_HOST: '0.0.0.0' },
      required: ['GRANTRY_ISSUER', 'GRANTRY_NAMESPACE', 'GRANTRY_REDIS_URL'],
      hasSecrets: true,
    });
    if (settings.redis === undefined) throw new StartError('GRANTRY_REDIS_URL is not set', 2);
    const processLog = await openLog({ level: settings.logLevel, format: settings.logFormat });
    const lists = new UserLists({ users: new LocalUsers({ users: [], clock: systemClock }) });
    const parts: ServerParts = {
      settings: { ...settings, redis: settings.redis },
      processLog,
      api: await connectCluster(settings.cluster),
      lists,
      usersFile: await UsersFile.open({ file: settings.usersFile, lists, log: processLog.log }),
      brand: await openBrand(settings.brand),
      mutualTls:
        settings.mtls && (await MutualTls.open({ settings: settings.mtls, clock: systemClock, log: processLog.log })),
    };
    return await codeOf(() => run(parts), processLog.log);
  });
}

/** Runs until the end. @throws StartError when it cannot listen, or when no retry can make Redis usable */
async function run(parts: ServerParts): Promise<number> {
  const { host, adminPort } = parts.settings;
  const ended = Promise.withResolvers<number>();
  const progress: Progress = {};
  const sources = createSources(parts);
  const admin = createAdminSide(parts, sources, progress);
  endWithProcess(parts, { admin, progress, exit: ended.resolve });
  try {
    await listenOn(admin.admin, { host, port: adminPort, variable: 'GRANTRY_ADMIN_PORT' });
    const failed = serve(parts, { sources, admin, progress, exit: ended.resolve }).then(() => ended.promise);
    return await Promise.race([ended.promise, failed]);
  } finally {
    await close(parts, sources, progress);
  }
}

/** What the phases after the admin side need: the two sides so far, what they reach, and the end of the process. */
interface Start {
  readonly sources: Sources;
  readonly admin: AdminSide;
  readonly progress: Progress;
  readonly exit: (code: number) => void;
}

/** Watches the cluster, waits for the prerequisites, and listens on the public port. */
async function serve(parts: ServerParts, { sources, admin, progress, exit }: Start): Promise<void> {
  const { settings, usersFile, processLog } = parts;
  const { registry, pepper, usersSecrets } = sources;
  const { log } = processLog;
  const registryAudit = new RegistryAudit(registry);
  registry.start({
    onSwap: (swap) => {
      admin.metrics.registrySwap.observe(swap.seconds);
      if (swap.isFirst) {
        const clients = registry.current.size;
        log.info({ clients, refused: registry.refusedClients, seconds: swap.seconds }, 'the cluster is known');
      }
      registryAudit.swapped(swap);
    },
    onSecret: () => void pepper.refresh(),
    onUsers: () => void usersSecrets.refresh(),
  });
  const onFatal = (error: StartError) => {
    log.fatal(`redis: ${error.message}`);
    exit(error.code);
  };
  const prerequisites = await awaitPrerequisites(parts, sources, { admin, progress, onFatal });
  if (prerequisites === undefined) return;
  const serving = createServing(parts, sources, admin, prerequisites);
  progress.serving = serving;
  registryAudit.start(serving.tokens.audit);
  usersFile.start();
  serving.userChanges.start();
  await listenOn(serving.tokens.public, { host: settings.host, port: settings.port, variable: 'GRANTRY_PORT' });
  await listenForCertificates(parts, serving.tokens);
  serving.alerts.start();
  serving.tokens.logouts.start();
  serving.tokens.discovery.start();
  registryAudit.recordSigningKey();
  log.info({ issuer: settings.issuer, clients: registry.current.size }, 'serving');
}

/** Listens on the port for mutual TLS, where there is one, and follows the files of its certificates. */
async function listenForCertificates(
  { settings: { host, mtls }, mutualTls }: ServerParts,
  { mutualTls: server }: TokenServer,
): Promise<void> {
  if (server !== undefined && mtls?.listener !== undefined) {
    await listenOn(server, { host, port: mtls.listener.port, variable: 'GRANTRY_MTLS_PORT' });
  }
  mutualTls?.start(server);
}

function endWithProcess(
  { settings, processLog }: ServerParts,
  { admin, progress, exit }: Omit<Start, 'sources'>,
): void {
  endOnSignals({
    draining: admin.draining,
    // Before the public port listens no load balancer sends requests to this replica.
    get drainDelaySeconds() {
      return progress.serving === undefined ? 0 : settings.drainDelaySeconds;
    },
    get servers() {
      const { tokens } = progress.serving ?? {};
      return [tokens?.public ?? [], tokens?.mutualTls ?? [], admin.admin].flat();
    },
    log: processLog.log,
    afterwards: async () => {
      await progress.serving?.tokens.logouts.stop();
      progress.serving?.tokens.discovery.stop();
      await progress.serving?.alerts.stop();
    },
    flush: processLog.flush,
    exit,
  });
}

async function close(
  { usersFile, api, processLog, mutualTls }: ServerParts,
  { registry }: Sources,
  { redis, serving }: Progress,
): Promise<void> {
  usersFile.stop();
  mutualTls?.stop();
  serving?.userChanges.stop();
  await registry.stop();
  api.close();
  await redis?.close();
  await processLog.flush();
}
