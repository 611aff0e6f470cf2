// Assembles the token server: protocol, endpoints, and the public and the admin server. `dev` and `server` differ only
// in the sources of registry, stores and users. No server listens yet on return.

import type { FastifyInstance } from 'fastify';
import type { SessionLogouts } from '../../delivery/session-logouts.ts';
import { TrustedProxies } from '../../http/server/client-address.ts';
import { createHttpServer } from '../../http/server/server.ts';
import type { ProviderClients } from '../../login/upstream/provider-clients.ts';
import { AuditLog } from '../log/audit-log.ts';
import { type AdminSide, assembleAdminSide, sharedServerOptions } from './admin-side.ts';
import { clientPorts } from './client-ports.ts';
import { ProviderDiscovery } from './provider-discovery.ts';
import type { TokenServerOptions } from './token-server-options.ts';

export interface TokenServer extends AdminSide {
  readonly public: FastifyInstance;
  /** The listener that asks for client certificates; undefined without one. */
  readonly mutualTls: FastifyInstance | undefined;
  readonly audit: AuditLog;
  /** To be started, and stopped at the end. */
  readonly logouts: SessionLogouts;
  /** The state of the identity providers. */
  readonly providerClients: ProviderClients;
  /** To be started, and stopped at the end. */
  readonly discovery: ProviderDiscovery;
  /** To be called at each swap of the registry. @param seconds from the change of the manifests until it is served */
  readonly registrySwapped: (seconds: number) => void;
}

/** What passes TLS through adds no header: on the listener for mutual TLS every X-Forwarded-For is of the caller itself. */
const NO_PROXIES = new TrustedProxies([]);

/**
 * Assembles a token server.
 * @param side the admin side, where it was assembled first
 * @throws Error when a trusted proxy is neither an address nor a CIDR block
 * @throws StartError when the authorities of key hosts cannot be used
 */
export function assembleTokenServer(options: TokenServerOptions, side = assembleAdminSide(options)): TokenServer {
  const { settings, log, peppers, usage, brand } = options;
  const { metrics, draining } = side;
  const audit = new AuditLog({
    log,
    metrics,
    subjects: settings.auditSubjects,
    pepper: peppers[0],
    observe: (event) => usage?.note(event),
  });
  const { publicEndpoints, mutualTlsEndpoints, logouts, providerClients } = clientPorts(options, audit, metrics);
  const shared = { ...sharedServerOptions(options, metrics), brand, isDraining: () => draining.begun };
  const tls = options.mutualTls?.listenerTls;
  return {
    ...side,
    audit,
    logouts,
    providerClients,
    discovery: new ProviderDiscovery(providerClients),
    public: createHttpServer({ ...shared, endpoints: publicEndpoints }),
    mutualTls: tls && createHttpServer({ ...shared, endpoints: mutualTlsEndpoints, tls, proxies: NO_PROXIES }),
    registrySwapped: (seconds) => metrics.registrySwap.observe(seconds),
  };
}
