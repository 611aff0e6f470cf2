// Reconciles one OAuthClient: its credentials (client-secrets.ts), whether the replicas serve it (programmed.ts), and
// its status and Events (client-status.ts). The verdict comes from the ClientSet that the token servers use as well.

import { hash } from 'node:crypto';
import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import type { ClientSet } from '../../admission/clients/client-set.ts';
import type { Condition, Programmed } from '../../admission/kinds/conditions.ts';
import { fieldsOf, type SourceObject } from '../../admission/kinds/manifest.ts';
import type { OAuthClientSpec } from '../../admission/kinds/oauth-client.ts';
import type { TokenBucket } from '../../kubernetes/api/token-bucket.ts';
import { type KubernetesObject, OAUTH_CLIENTS } from '../../kubernetes/objects/resources.ts';
import type { ClusterSource } from '../../kubernetes/objects/source-object.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { ClientSecrets } from '../client-secrets/client-secrets.ts';
import { type CredentialOutcome, type StoredOutcome, storedFacts } from '../client-secrets/credential-subject.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { isTerminating } from '../leadership/refused-calls.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { isSameStatus } from '../reconciling/status-conditions.ts';
import { StatusReport } from '../reconciling/status-report.ts';
import type { ProgrammedObjects } from '../replicas/programmed.ts';
import type { ReplicaReports } from '../replicas/replica-reports.ts';
import { AwaitedIds } from './awaited-ids.ts';
import { clientStatus } from './client-status.ts';
import { storedClient } from './programmed.ts';

export interface ClientReconcilerOptions {
  readonly api: LeaderApi;
  readonly clients: ClientSet<ClusterSource>;
  readonly credentials: ClientSecrets;
  readonly programmed: ProgrammedObjects;
  readonly reports: Pick<ReplicaReports, 'lastUsed' | 'notices'>;
  /** `ResourcesGranted` of a client; undefined for one that refers to no resource. */
  readonly grantsOf: (client: SourceObject, spec: OAuthClientSpec) => Condition | undefined;
  /** Limits the status writes that change only the last use. */
  readonly lastUsedRate: Pick<TokenBucket, 'tryTake'>;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
}

const LAST_USED_RETRY_MILLISECONDS = 1000;
const DAY_MILLISECONDS = 86_400_000;

export class ClientReconciler {
  readonly #options: ClientReconcilerOptions;
  readonly #statuses: StatusReport;
  readonly #awaitedIds = new AwaitedIds();
  /** Clients whose namespace is terminating, by uid. */
  readonly #terminating = new Set<string>();

  constructor(options: ClientReconcilerOptions) {
    this.#options = options;
    this.#statuses = new StatusReport(options, OAUTH_CLIENTS);
  }

  /** To be called when a client was deleted. */
  forget(uid: string): void {
    this.#terminating.delete(uid);
    this.#awaitedIds.forget(uid);
    this.#options.credentials.forget(uid);
    this.#options.programmed.forget(uid);
  }

  /** Whether the namespace of a client is terminating: the client is not reconciled any more. */
  isNamespaceTerminating(uid: string): boolean {
    return this.#terminating.has(uid);
  }

  /**
   * @returns milliseconds until the key is requeued without a change; undefined: never
   * @throws KubernetesError with reason `Conflict` or `AlreadyExists`, or StaleReadError, when something changed
   * meanwhile: requeue
   */
  async reconcile(key: string): Promise<number | undefined> {
    const object = this.#options.clients.get(key)?.manifest;
    if (object === undefined || this.isNamespaceTerminating(object.metadata.uid)) return undefined;
    try {
      const outcome = await this.#options.credentials.reconcileClientSecret(key, object);
      this.#recordOutcome(object, outcome);
      return await this.#report(key, object, outcome);
    } catch (error) {
      if (isTerminating(error)) {
        this.#terminating.add(object.metadata.uid);
        return undefined;
      }
      throw error;
    }
  }

  async #report(key: string, object: KubernetesObject, outcome: StoredOutcome): Promise<number | undefined> {
    const { facts, requeueAfter, state } = outcome;
    const { clients, programmed, clock } = this.#options;
    const { uid, generation } = object.metadata;
    // Deleted, recreated or changed since it was read: the outcome is not about the present object, which is queued by
    // its change.
    const present = () => {
      const now = clients.get(key)?.manifest;
      return now?.metadata.uid === uid && now.metadata.generation === generation ? now : undefined;
    };
    const before = present();
    if (before === undefined) return undefined;
    const verdictWith = (condition: Programmed) =>
      clients.verdict(key, { ...facts, ...storedFacts(state, clock.now()), programmed: condition });
    const unserved = verdictWith(UNKNOWN);
    // A refused client is served by no replica: the earlier observation is void.
    if (unserved.client === undefined) {
      programmed.forget(uid);
      return earliest(requeueAfter, await this.#write(before, unserved, state));
    }
    const served = await programmed.report(storedClient(object, state, before.status));
    const now = present();
    if (now === undefined) return undefined;
    if (!served.isDue) return served.requeueAfter;
    const untilChange = await this.#write(now, verdictWith(served.programmed), state);
    return earliest(served.requeueAfter, earliest(requeueAfter, untilChange));
  }

  /** @returns milliseconds until the status is due to change; undefined: never */
  async #write(
    object: KubernetesObject,
    verdict: ClientVerdict,
    state: StoredOutcome['state'],
  ): Promise<number | undefined> {
    const { clock, reports, grantsOf } = this.#options;
    const { status: before } = object;
    const { uid, generation = 1 } = object.metadata;
    const now = clock.now();
    const notices = reports.notices(uid, generation, before);
    const report = {
      verdict,
      credentials: verdict.manifest === undefined ? undefined : state,
      notices: notices.flatMap(({ condition }) => condition ?? []),
      grants: verdict.manifest && grantsOf(verdict.object, verdict.manifest.spec),
    };
    const reported = String(fieldsOf(before).lastUsedTime ?? '').slice(0, 10) || undefined;
    const lastUsed = later(reported, reports.lastUsed(uid));
    const times = notices.flatMap(({ requeueAt }) => (requeueAt === undefined ? [] : Math.max(0, requeueAt - now)));
    const untilRevoked = untilTime(verdict.manifest?.spec.revokeTokensBefore, now);
    const requeueAfter = earliest(times.length === 0 ? undefined : Math.min(...times), untilRevoked);
    const status = clientStatus({ ...report, lastUsed }, before, now);
    if (reported !== lastUsed && isSameStatus(clientStatus({ ...report, lastUsed: reported }, before, now), before)) {
      const wait = untilLastUsedReport(uid, now);
      if (wait > 0) return earliest(requeueAfter, wait);
      if (!this.#options.lastUsedRate.tryTake()) return earliest(requeueAfter, LAST_USED_RETRY_MILLISECONDS);
    }
    const conditions = [...verdict.conditions, ...(report.grants ? [report.grants] : [])];
    await this.#statuses.report(object, status, conditions, () => this.#recordAcquiredId(object, verdict));
    return requeueAfter;
  }

  #recordAcquiredId(object: KubernetesObject, verdict: ClientVerdict): void {
    if (!this.#awaitedIds.isAcquired(verdict, object.status)) return;
    this.#options.record({ regarding: object, type: 'Warning', ...ID_ACQUIRED, isAlert: true });
  }

  #recordOutcome(object: KubernetesObject, { done }: CredentialOutcome): void {
    const event = CREDENTIAL_EVENTS[done];
    if (event !== undefined) this.#options.record({ regarding: object, type: 'Normal', ...event });
  }
}

const UNKNOWN: Programmed = { status: 'Unknown', reason: 'Pending', message: '' };

// Names nothing of the client before, which may be of another tenant.
const ID_ACQUIRED = {
  reason: 'ClientIdAcquired',
  action: 'Accept',
  note: 'Another client had this client id until now. Resource servers cannot distinguish the tokens of the two clients; verify that the reassignment is intended.',
};

const CREDENTIAL_EVENTS: Partial<
  Readonly<Record<CredentialOutcome['done'], Pick<EventFacts, 'reason' | 'action' | 'note'>>>
> = {
  created: { reason: 'SecretCreated', action: 'Create', note: 'A client secret was made.' },
  adopted: { reason: 'SecretAdopted', action: 'Adopt', note: 'The Secret of this name and its value are used on.' },
  rotated: {
    reason: 'SecretRotated',
    action: 'Rotate',
    note: 'There is a new client secret; the one before works until its grace is over.',
  },
  cut: {
    reason: 'SecretRotated',
    action: 'Rotate',
    note: 'There is a new client secret; none before it works any more.',
  },
  repaired: {
    reason: 'DriftRepaired',
    action: 'Repair',
    note: 'The client secret was missing, changed or under another name; there is a new one.',
  },
  drift_repaired: { reason: 'DriftRepaired', action: 'Repair', note: 'The Secret was put back in order.' },
  expired: {
    reason: 'PreviousSecretExpired',
    action: 'Expire',
    note: 'The client secret before the present one ended.',
  },
};

/** Milliseconds until a time is over, at most a day: a timer takes no more than 24 days. Undefined when it is over. */
function untilTime(time: number | undefined, now: number): number | undefined {
  return time === undefined || time < now ? undefined : Math.min(time - now + 1, DAY_MILLISECONDS);
}

/**
 * Milliseconds until the last use of this client is written; 0 once the time has come today. Each client has a time of day of
 * its own, so that many statuses do not all change at midnight.
 * @param now epoch milliseconds
 */
export function untilLastUsedReport(uid: string, now: number): number {
  const share = hash('sha256', uid, 'buffer').readUInt32BE(0) / 2 ** 32;
  return Math.max(0, Math.ceil(share * DAY_MILLISECONDS) - (now % DAY_MILLISECONDS));
}

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}

function later(one: string | undefined, other: string | undefined): string | undefined {
  return one === undefined || (other !== undefined && other > one) ? other : one;
}
