// The answers of a token server to the controller, and to no other caller: the clients and keys that it serves, their
// usage, refusals and alerts.

import { proofFault } from '../../admission/references/controller-proof.ts';
import { CONTROLLER_SECRET } from '../../admission/references/secret-parts.ts';
import type { RegistrySync } from '../../cluster-registry/registry-sync.ts';
import type { ClientUsage } from '../../http/admin/client-usage.ts';
import type {
  ControllerRequest,
  ObservedAnswer,
  ObservedClient,
  ObservedRequest,
  ProviderReport,
  ReplicaApi,
  ReportAnswer,
  ReportRequest,
  UsersReport,
} from '../../http/admin/controller-endpoints.ts';
import type { ProviderClients } from '../../login/upstream/provider-clients.ts';
import type { Clock } from '../../oauth/ports/ports.ts';

export interface ReplicaOptions {
  readonly registry: Pick<RegistrySync, 'current' | 'servedState' | 'servedResource' | 'servedProviders' | 'textOf'>;
  readonly usage: ClientUsage;
  /** Undefined until the token server is assembled. */
  readonly providerClients: () => Pick<ProviderClients, 'reports'> | undefined;
  /** By uid, the Secrets with users that do not count as a whole. */
  readonly users: () => ReadonlyMap<string, UsersReport>;
  readonly clock: Clock;
}

export class Replica implements ReplicaApi {
  readonly #options: ReplicaOptions;

  constructor(options: ReplicaOptions) {
    this.#options = options;
  }

  proofFault({ authorization, ...question }: ControllerRequest): string | undefined {
    const { registry, clock } = this.#options;
    return proofFault(question, authorization, registry.textOf(CONTROLLER_SECRET), clock.now());
  }

  observed({ uids }: ObservedRequest): ObservedAnswer {
    const { registry } = this.#options;
    const clients: Record<string, ObservedClient> = {};
    const resources: Record<string, { readonly generation: number }> = {};
    for (const uid of uids) {
      const resource = registry.servedResource(uid);
      if (resource !== undefined) resources[uid] = resource;
      const state = registry.servedState(uid);
      if (state === undefined) continue;
      const { generation, secretRevision } = state;
      clients[uid] = { generation, ...(secretRevision !== undefined && { secretRevision }) };
    }
    return { clients, resources, keyIds: registry.current.keys.jwks.keys.flatMap(({ kid }) => kid ?? []) };
  }

  report({ after }: ReportRequest): ReportAnswer {
    const { registry, usage } = this.#options;
    const reports = this.#options.providerClients()?.reports();
    const providers: Record<string, ProviderReport> = {};
    for (const [uid, { generation }] of registry.servedProviders) {
      const report = reports?.get(uid);
      const current = report?.generation === generation ? report : undefined;
      const reason = current?.reach ?? 'NotObserved';
      const overage = current?.isOverage === true && ({ isOverage: true } as const);
      providers[uid] = { generation, reachable: reason === 'Reachable', reason, ...overage };
    }
    const users = Object.fromEntries(this.#options.users());
    return { ...usage.since(after), providers, users, alerts: [] };
  }
}
