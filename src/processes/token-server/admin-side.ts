// Assembles the admin side of a token server: health, metrics, the answers to a controller. It can be assembled first, to
// report what the start is waiting for.

import type { FastifyInstance } from 'fastify';
import { adminEndpoints, type ReadinessCheck } from '../../http/admin/admin.ts';
import { controllerEndpoints } from '../../http/admin/controller-endpoints.ts';
import { Metrics } from '../../http/metrics/metrics.ts';
import { TrustedProxies } from '../../http/server/client-address.ts';
import { RequestLog } from '../../http/server/request-log.ts';
import { createHttpServer } from '../../http/server/server.ts';
import { HTTP_TIMEOUTS } from '../../http/server/strict-fastify.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import { Draining } from '../lifecycle/shutdown.ts';
import type { AdminSideOptions } from './token-server-options.ts';

export interface AdminSide {
  readonly admin: FastifyInstance;
  readonly draining: Draining;
  readonly metrics: Metrics;
}

/** Health, metrics, controller endpoints. @throws Error when a trusted proxy is neither an address nor a CIDR block */
export function assembleAdminSide(options: AdminSideOptions): AdminSide {
  const { registry, replica, usersFile, usersSecrets } = options;
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
    faultyUsersSecrets: usersSecrets && (() => usersSecrets.faults.size),
  });
  const checks: readonly ReadinessCheck[] = [
    { name: 'serving', fault: () => (draining.begun ? 'draining' : undefined) },
    { name: 'signing key', fault: () => (registry.current.keys.signing ? undefined : 'no active key') },
    ...(options.readiness ?? []),
    ...(usersFile === undefined ? [] : [{ name: 'users', fault: () => usersFile.fault, required: false }]),
    ...(usersSecrets === undefined
      ? []
      : [{ name: 'users secrets', fault: () => usersSecrets.fault, required: false }]),
  ];
  const endpoints = [...adminEndpoints({ checks, metrics }), ...(replica ? controllerEndpoints(replica) : [])];
  return { admin: createHttpServer({ ...sharedServerOptions(options, metrics), endpoints }), draining, metrics };
}

/** What the servers of all ports have in common. */
export function sharedServerOptions({ settings, registry, log, random, timeouts }: AdminSideOptions, metrics: Metrics) {
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

/** Request ids that are unique in the logs of all replicas, without a call for randomness each. */
function requestIds(random: Random): () => string {
  const replica = Buffer.from(random.bytes(6)).toString('base64url');
  let count = 0;
  return () => `${replica}-${(count++).toString(36)}`;
}
