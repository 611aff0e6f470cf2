// The metrics of a process, prefix `grantry_`. Labels come from closed sets: routes, methods, slugs. A client id, a
// subject or text from a request is never one.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { Durations } from './durations.ts';
import { RequestDurations } from './request-durations.ts';
import { type Followed, registerStaleness, WatchCounters } from './watch-metrics.ts';

/** A store outside the process, as metrics and readiness see it. */
export interface StoreProbe {
  readonly isUp: boolean;
  /** Slugs of the store checks that failed. */
  warnings(): readonly string[];
}

export interface MetricSources {
  readonly clients: () => number;
  /** Undefined where the process validates no manifests. */
  readonly refusedClients?: (() => number) | undefined;
  readonly logDropped: () => number;
  readonly processMetrics: boolean;
  /** Undefined where state is in the memory of the process. */
  readonly store?: StoreProbe | undefined;
  /** Undefined where the process watches no cluster. */
  readonly followed?: Followed | undefined;
  /** The counters of the watches; undefined where the process watches no cluster. */
  readonly watches?: WatchCounters | undefined;
  /** Reads of the issuer of ServiceAccount tokens, by outcome; undefined where the process reads none. */
  readonly clusterIssuerReads?: (() => ReadonlyMap<string, number>) | undefined;
  /** Whether the users file applies as a whole as it is now; undefined where there is none. */
  readonly usersReloaded?: (() => boolean) | undefined;
  /** How many Secrets with users have a fault; undefined without a cluster. */
  readonly faultyUsersSecrets?: (() => number) | undefined;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new RequestDurations(this.#registry);

  readonly tokensIssued = this.#counter('tokens_issued_total', 'Access tokens issued.', ['grant', 'format']);
  readonly tokenErrors = this.#counter(
    'token_errors_total',
    'Refused requests of authorization, token, revocation and introspection.',
    ['endpoint', 'error', 'reason'],
  );
  readonly clientAuthentications = this.#counter('client_authentication_total', 'Client authentications.', [
    'method',
    'outcome',
  ]);
  readonly refreshReuse = this.#counter('refresh_reuse_detected_total', 'Rotated refresh tokens presented again.', []);
  readonly codeReplays = this.#counter('code_replayed_total', 'Redeemed authorization codes presented again.', []);
  readonly assertionReplays = this.#counter(
    'client_assertion_replayed_total',
    'Client assertions presented again.',
    [],
  );
  readonly proofReplays = this.#counter('dpop_proof_replayed_total', 'DPoP proofs presented again.', []);
  readonly refreshRetries = this.#counter('refresh_retried_total', 'Refreshes answered again within the grace.', []);
  readonly refreshRetriesElsewhere = this.#counter(
    'refresh_retried_elsewhere_total',
    'Grants whose refreshes were repeated from other networks, three generations in a row.',
    [],
  );
  readonly statesLost = this.#counter('state_lost_total', 'Refresh tokens newer than what the store knows.', []);
  readonly statesForged = this.#counter('state_forged_total', 'Records in the store without a right MAC.', []);
  readonly groupsOmitted = this.#counter(
    'groups_omitted_total',
    'ID tokens without the groups of their person, which were too many.',
    [],
  );
  readonly rateLimited = this.#counter('rate_limited_total', 'Requests answered 429.', ['limit']);
  readonly alertDeliveries = this.#counter('alert_deliveries_total', 'Tries to hand an alert to the webhook.', [
    'outcome',
  ]);
  readonly logoutDeliveries = this.#counter(
    'logout_deliveries_total',
    'Tries to notify a client of a session that ended.',
    ['outcome'],
  );
  readonly signIns = this.#counter('sign_ins_total', 'Tries to sign in.', ['provider', 'method', 'outcome']);
  readonly upstreamErrors = this.#counter(
    'upstream_errors_total',
    'Calls of identity providers without an answer of use.',
    ['provider', 'step'],
  );
  readonly upstreamDuration = new Histogram({
    name: 'grantry_upstream_duration_seconds',
    help: 'Time of the calls of an identity provider for one step, failed ones too.',
    labelNames: ['provider', 'step'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [this.#registry],
  });
  readonly keySetFetches = this.#counter('key_set_fetches_total', 'Fetches of the key sets of clients.', ['outcome']);
  readonly storeErrors = this.#counter('store_errors_total', 'Store actions that did not succeed.', [
    'operation',
    'reason',
  ]);
  readonly storeDuration = new Durations({
    name: 'grantry_store_duration_seconds',
    help: 'Time of one store action, failed ones too.',
    buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registry: this.#registry,
  });

  /** The validation of all manifests, and building the registry that is served then. */
  readonly registrySwap = new Histogram({
    name: 'grantry_registry_swap_duration_seconds',
    help: 'Time from a change of the manifests to the registry that serves it.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [this.#registry],
  });

  /** @param sources read at each scrape */
  constructor(sources: MetricSources) {
    // A series that began with its first dead letter would have no increase for an alert.
    this.logoutDeliveries.inc({ outcome: 'dead_letter' }, 0);
    (sources.watches ?? new WatchCounters()).registerIn(this.#registry);
    registerStaleness(this.#registry, sources.followed);
    new Gauge({
      name: 'grantry_store_up',
      help: 'Whether the stores take requests now.',
      registers: [this.#registry],
      collect() {
        this.set((sources.store?.isUp ?? true) ? 1 : 0);
      },
    });
    new Gauge({
      name: 'grantry_store_warnings',
      help: 'What is not as it should be at the store.',
      labelNames: ['check'],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const check of sources.store?.warnings() ?? []) this.set({ check }, 1);
      },
    });
    new Gauge({
      name: 'grantry_registry_clients',
      help: 'Clients by state.',
      labelNames: ['state'],
      registers: [this.#registry],
      collect() {
        this.set({ state: 'admitted' }, sources.clients());
        if (sources.refusedClients !== undefined) this.set({ state: 'refused' }, sources.refusedClients());
      },
    });
    new Gauge({
      name: 'grantry_users_last_reload_successful',
      help: 'Whether the users file counts as a whole as it is now.',
      // Without labels a gauge that was never set would report 0.
      labelNames: [],
      registers: [this.#registry],
      collect() {
        if (sources.usersReloaded === undefined) this.remove();
        else this.set(sources.usersReloaded() ? 1 : 0);
      },
    });
    new Gauge({
      name: 'grantry_users_secrets_faulty',
      help: 'Secrets with users that do not count, or not as a whole.',
      labelNames: [],
      registers: [this.#registry],
      collect() {
        if (sources.faultyUsersSecrets === undefined) this.remove();
        else this.set(sources.faultyUsersSecrets());
      },
    });
    new Counter({
      name: 'grantry_audit_dropped_total',
      help: 'Log and audit lines dropped because the output could not keep up.',
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(sources.logDropped());
      },
    });
    new Counter({
      name: 'grantry_cluster_issuer_reads_total',
      help: 'Reads of the issuer of ServiceAccount tokens from the API server.',
      labelNames: ['outcome'],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const [outcome, reads] of sources.clusterIssuerReads?.() ?? []) this.inc({ outcome }, reads);
      },
    });
    if (sources.processMetrics) collectDefaultMetrics({ register: this.#registry, prefix: 'grantry_' });
  }

  requestFinished(route: string, method: string, status: number, seconds: number): void {
    this.#requests.observe(route, method, status, seconds);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Everything in the text form that Prometheus reads. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({ name: `grantry_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] });
  }
}
