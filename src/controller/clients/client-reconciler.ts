// One OAuthClient reconciled: its credentials brought in order (client-secrets.ts), the replicas asked whether they serve
// it (programmed.ts), and all of it told in status and Events (client-status.ts). The verdict is that of the judge which
// the token servers ask as well.

import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import type { Condition, Programmed } from '../../admission/kinds/conditions.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import type { TokenBucket } from '../../kubernetes/api/token-bucket.ts';
import { type KubernetesObject, OAUTH_CLIENTS } from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import { fraction } from '../../oauth/values/backoff.ts';
import type { ClientSecrets } from '../client-secrets/client-secrets.ts';
import { acceptedVerifiers, type CredentialOutcome } from '../client-secrets/credential-subject.ts';
import type { VerifierSecrets } from '../client-secrets/verifier-secrets.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { isTerminating } from '../leadership/refused-calls.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { OwnWrites } from '../reconciling/own-writes.ts';
import { conditionIn, isSameStatus } from '../reconciling/status-conditions.ts';
import type { ReplicaReports } from '../replicas/replica-reports.ts';
import type { JudgedClients } from '../verdicts/judged-clients.ts';
import { clientStatus } from './client-status.ts';
import { untilTold } from './last-used.ts';
import type { ProgrammedClients } from './programmed.ts';

export interface ClientReconcilerOptions {
  readonly api: LeaderApi;
  /** Every OAuthClient there is, with its status. */
  readonly view: ObjectView;
  readonly clients: JudgedClients;
  readonly credentials: ClientSecrets;
  readonly verifiers: VerifierSecrets;
  readonly programmed: ProgrammedClients;
  readonly reports: Pick<ReplicaReports, 'lastUsed' | 'notices'>;
  /** Status writes that tell of nothing but the last use. */
  readonly lastUsedRate: Pick<TokenBucket, 'tryTake'>;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
  readonly random: Random;
}

/** How often it is asked whether replicas serve a change, and for how long that is not worth telling. */
const ASK_MILLISECONDS = 100;
const PATIENCE_MILLISECONDS = 1000;
/** How often they are asked after that: at first, and the longer it takes the less often. */
const SLOW_ASK_MILLISECONDS = 2000;
const SLOWEST_ASK_MILLISECONDS = 30_000;
const LAST_USED_MILLISECONDS = 1000;

export class ClientReconciler {
  readonly #options: ClientReconcilerOptions;
  readonly #written: OwnWrites;
  /** Since when the replicas are behind, by uid. */
  readonly #behindSince = new Map<string, number>();
  /** Clients whose namespace takes nothing any more: it goes, and they with it. */
  readonly #ending = new Set<string>();

  constructor(options: ClientReconcilerOptions) {
    this.#options = options;
    this.#written = new OwnWrites(options.view);
  }

  /** To be called when a client is gone. */
  forget(key: string, uid: string): void {
    this.#written.gone(key, uid);
    this.#behindSince.delete(uid);
    this.#ending.delete(uid);
    this.#options.credentials.forget(uid);
    this.#options.programmed.forget(uid);
  }

  /** Whether a client goes with its namespace: nothing is told of it any more. */
  isEnding(uid: string): boolean {
    return this.#ending.has(uid);
  }

  /**
   * @returns milliseconds until it is looked at again even if nothing happens
   * @throws KubernetesError with reason `Conflict` or `AlreadyExists`, or StaleReadError, when something changed
   * meanwhile: look again
   */
  async reconcile(key: string): Promise<number | undefined> {
    const object = this.#options.clients.get(key);
    if (object === undefined || this.isEnding(object.metadata.uid)) return undefined;
    try {
      const outcome = await this.#options.credentials.reconcileClientSecret(key, object);
      this.#recordOutcome(object, outcome);
      return await this.#tell(key, object, outcome);
    } catch (error) {
      if (isTerminating(error)) {
        this.#ending.add(object.metadata.uid);
        return undefined;
      }
      throw error;
    }
  }

  async #tell(key: string, object: KubernetesObject, outcome: CredentialOutcome): Promise<number | undefined> {
    const { facts, requeueAfter } = outcome;
    const { clients, verifiers, programmed, clock } = this.#options;
    const { uid, generation } = object.metadata;
    // Gone meanwhile, made anew or changed: what was found is not about what is judged now, and its own look comes. The answer
    // to a write may know of a change before the watch does.
    const isOutdated = () =>
      [clients.get(key), this.#written.get(key)].some(
        (now) => now?.metadata.uid !== uid || now.metadata.generation !== generation,
      );
    if (isOutdated()) return undefined;
    const state = verifiers.get(uid);
    const judge = (told: Programmed) =>
      clients.verdict(key, { ...facts, verifiers: acceptedVerifiers(state, clock.now()), programmed: told });
    const alone = judge(UNKNOWN);
    // There is nothing to serve, and what the replicas served is gone.
    if (alone.client === undefined) {
      programmed.forget(uid);
      return earliest(requeueAfter, await this.#write(key, object, alone));
    }
    const served = await programmed.of(object, state, fieldsOf(this.#written.get(key)).status);
    if (isOutdated()) return undefined;
    const verdict = judge(served.programmed);
    if (!served.isPassing) {
      this.#behindSince.delete(uid);
      return earliest(requeueAfter, await this.#write(key, object, verdict));
    }
    const since = this.#behindSince.get(uid) ?? clock.now();
    this.#behindSince.set(uid, since);
    const waited = clock.now() - since;
    if (waited < PATIENCE_MILLISECONDS) return ASK_MILLISECONDS;
    return earliest(this.#untilAsked(waited), earliest(requeueAfter, await this.#write(key, object, verdict)));
  }

  /** Many may wait for the same replica: they do not all ask at once. */
  #untilAsked(waited: number): number {
    const wait = Math.min(SLOWEST_ASK_MILLISECONDS, Math.max(SLOW_ASK_MILLISECONDS, waited / 2));
    return wait * (1 - fraction(this.#options.random) / 4);
  }

  /** To be called when replicas come and go. @returns the uids of clients that waited for them, to be looked at now */
  replicasChanged(): readonly string[] {
    const uids = [...this.#behindSince.keys()];
    this.#behindSince.clear();
    return uids;
  }

  /** @returns milliseconds until there will be something else to write */
  async #write(key: string, object: KubernetesObject, verdict: ClientVerdict): Promise<number | undefined> {
    const { clock, reports, verifiers } = this.#options;
    const { uid, generation = 1 } = object.metadata;
    const now = clock.now();
    const before = fieldsOf(this.#written.get(key)).status;
    const notices = reports.notices(uid, generation, before);
    const report = {
      verdict,
      credentials: verdict.manifest === undefined ? undefined : verifiers.get(uid),
      notices: notices.flatMap(({ condition }) => condition ?? []),
    };
    const told = String(fieldsOf(before).lastUsedTime ?? '').slice(0, 10) || undefined;
    const lastUsed = later(told, reports.lastUsed(uid));
    const times = notices.flatMap(({ again }) => (again === undefined ? [] : Math.max(0, again - now)));
    const again = times.length === 0 ? undefined : Math.min(...times);
    const status = clientStatus({ ...report, lastUsed }, before, now);
    if (isSameStatus(status, before)) return again;
    if (told !== lastUsed && isSameStatus(clientStatus({ ...report, lastUsed: told }, before, now), before)) {
      const wait = untilTold(uid, now);
      if (wait > 0) return earliest(again, wait);
      if (!this.#options.lastUsedRate.tryTake()) return earliest(again, LAST_USED_MILLISECONDS);
    }
    await this.#apply(key, object, status);
    this.#recordFaults(object, verdict.conditions, before);
    return again;
  }

  async #apply(key: string, { metadata }: KubernetesObject, status: object): Promise<void> {
    const { api } = this.#options;
    const { namespace, name, uid } = metadata;
    const { resourceVersion } = this.#written.get(key)?.metadata ?? metadata;
    try {
      const pinned = { name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) };
      const object = { metadata: pinned, status };
      await this.#written.write(key, () => api.apply(OAUTH_CLIENTS, object, { subresource: 'status' }));
    } catch (error) {
      // Gone, or made anew: the watch tells.
      if (!(error instanceof KubernetesError && error.status === 404)) throw error;
    }
  }

  #recordOutcome(object: KubernetesObject, { done }: CredentialOutcome): void {
    const event = CREDENTIAL_EVENTS[done];
    if (event !== undefined) this.#options.record({ regarding: object, type: 'Normal', ...event });
  }

  /** A Warning for everything that is False now and was not so before. */
  #recordFaults(object: KubernetesObject, conditions: readonly Condition[], before: unknown): void {
    for (const { type, status, reason, message } of conditions) {
      const known = conditionIn(before, type);
      if (status !== 'False' || type === 'Ready' || reason === 'Pending') continue;
      if (known?.status === status && known.reason === reason) continue;
      this.#options.record({ regarding: object, type: 'Warning', reason, action: 'Reconcile', note: message });
    }
  }
}

const UNKNOWN: Programmed = { status: 'Unknown', reason: 'Pending', message: '' };

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
    note: 'The client secret was missing or changed; there is a new one.',
  },
  drift_repaired: { reason: 'DriftRepaired', action: 'Repair', note: 'The Secret was put back in order.' },
  expired: {
    reason: 'PreviousSecretExpired',
    action: 'Expire',
    note: 'The client secret before the present one ended.',
  },
};

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}

function later(one: string | undefined, other: string | undefined): string | undefined {
  return one === undefined || (other !== undefined && other > one) ? other : one;
}
