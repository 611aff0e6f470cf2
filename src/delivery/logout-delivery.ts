// Hands notices of ended sessions to clients (OpenID Connect Back-Channel Logout 1.0 §2.5): one POST with a fresh logout
// token for each try. `session-logouts.ts` says when a client is tried.

import type { Logger } from 'pino';
import type { Metrics } from '../http/metrics/metrics.ts';
import type { Audit } from '../oauth/ports/audit.ts';
import type { PendingLogout } from '../oauth/ports/logout-store.ts';
import type { Client } from '../oauth/registry/client.ts';
import type { RegistryRef } from '../oauth/registry/registry.ts';
import type { LogoutTokens } from '../oauth/tokens/logout-tokens.ts';
import { RecentValues } from '../oauth/values/recent-values.ts';
import { faultMembers } from '../outbound/fetch-faults.ts';
import { FetchFailedError, type GuardedFetch } from '../outbound/guarded-fetch.ts';

/** `refused`: the client has answered that it does not want this notice; it would refuse it again. */
export type DeliveryOutcome = 'delivered' | 'refused' | 'failed';

/** The statuses by which a client refuses (§2.8). */
const REFUSED: ReadonlySet<number> = new Set([400, 401, 403]);

export interface LogoutDeliveryParts {
  readonly registry: RegistryRef;
  readonly tokens: LogoutTokens;
  readonly fetch: Pick<GuardedFetch, 'post'>;
  readonly metrics: Pick<Metrics, 'logoutDeliveries'>;
  readonly audit: Audit;
  readonly log: Logger;
}

interface Try {
  readonly outcome: DeliveryOutcome;
  /** Of the audit event. */
  readonly reason?: string;
  /** Of the log line: a slug. */
  readonly fault?: string;
  readonly error?: unknown;
}

/** For so many clients at least the outcome of the last try is known. */
const CLIENTS_REMEMBERED = 1000;

/** Makes tries, counts and records them. */
export class LogoutDelivery {
  readonly #parts: LogoutDeliveryParts;
  /** The outcome of the last try, by uid of the client. */
  readonly #lastOutcomes = new RecentValues<string>(CLIENTS_REMEMBERED);

  constructor(parts: LogoutDeliveryParts) {
    this.#parts = parts;
  }

  /** The client as it is now; undefined where it is gone or has no address for notices. */
  recipient({ clientUid }: PendingLogout): Client | undefined {
    const client = this.#parts.registry.current.findByUid(clientUid);
    return client?.backchannelLogoutUri === undefined ? undefined : client;
  }

  /** One try. Never throws for what the client, its host or its keys do. */
  async deliver(client: Client, { subject, sid }: PendingLogout): Promise<DeliveryOutcome> {
    const { metrics, audit } = this.#parts;
    const made = await this.#try(client, { subject, sid });
    const { outcome, reason } = made;
    this.#logNews(client, made);
    metrics.logoutDeliveries.inc({ outcome });
    if (outcome !== 'failed') {
      audit.record({ type: 'logout.delivered', clientId: client.clientId, subject, reason });
    }
    return outcome;
  }

  /** Records that a client is not tried any more. */
  giveUp({ clientId }: Client, { subject }: PendingLogout): void {
    this.#parts.metrics.logoutDeliveries.inc({ outcome: 'dead_letter' });
    this.#parts.audit.record({ type: 'logout.given_up', clientId, subject });
  }

  /** A line for the first of tries that fail alike. */
  #logNews({ uid, clientId, backchannelLogoutUri }: Client, { outcome, fault = outcome, error }: Try): void {
    const last = this.#lastOutcomes.get(uid);
    this.#lastOutcomes.set(uid, fault);
    if (outcome !== 'failed' || fault === last) return;
    const host = URL.parse(backchannelLogoutUri ?? '')?.host;
    this.#parts.log.warn(
      { clientId, host, outcome: fault, ...faultMembers(error) },
      'a client cannot be notified of the end of a session',
    );
  }

  async #try(client: Client, login: Pick<PendingLogout, 'subject' | 'sid'>): Promise<Try> {
    const { registry, tokens, fetch } = this.#parts;
    const token = await tokens.issue(client, registry.current.keys, login);
    if (token === undefined || client.backchannelLogoutUri === undefined)
      return { outcome: 'failed', fault: 'no_signing_key' };
    try {
      const form = new URLSearchParams({ logout_token: token });
      const status = await fetch.post(client.backchannelLogoutUri, form, client.namespace);
      if (status >= 200 && status < 300) return { outcome: 'delivered' };
      return REFUSED.has(status)
        ? { outcome: 'refused', reason: 'refused' }
        : { outcome: 'failed', fault: 'status_refused' };
    } catch (error) {
      if (error instanceof FetchFailedError) return { outcome: 'failed', fault: error.fault, error };
      throw error;
    }
  }
}
