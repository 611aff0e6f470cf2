// Whether the replicas serve the stored state of a client: the condition `Programmed`, and the gate before a new secret
// is published. A state that all replicas were observed to serve is not queried again: they keep it, and a new replica
// has it before it takes requests.

import type { Programmed } from '../../admission/kinds/conditions.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { CredentialState } from '../client-secrets/credential-state.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';
import { type ObservedReplicas, replicasBehind, type ServedState } from '../replicas/observed-replicas.ts';

/** How long a new secret waits where the replicas cannot be observed: they follow within a second. */
const UNOBSERVED_MILLISECONDS = 5000;
const REPLICAS_NAMED = 3;

/** The condition to report. */
export interface ProgrammedOutcome {
  readonly programmed: Programmed;
  /** Whether it may change soon without an event: the client is requeued. */
  readonly isTransient: boolean;
}

export class ProgrammedClients {
  readonly #replicas: ObservedReplicas;
  readonly #clock: Clock;
  /** The state that all replicas serve, by uid. */
  readonly #served = new Map<string, string>();

  constructor(replicas: ObservedReplicas, clock: Clock) {
    this.#replicas = replicas;
    this.#clock = clock;
  }

  /** To be called when a client was deleted or refused: no replica serves it any more. */
  forget(uid: string): void {
    this.#served.delete(uid);
  }

  /**
   * @param state the credentials as they are stored; undefined for a client that has none
   * @param lastStatus the client's status: what a former leader observed counts until a replica reports otherwise
   */
  async of(
    object: KubernetesObject,
    state: CredentialState | undefined,
    lastStatus?: unknown,
  ): Promise<ProgrammedOutcome> {
    const { uid } = object.metadata;
    const desired = desiredOf(object, state);
    if (this.#served.get(uid) === desired) return SERVED;
    const observation = await this.#replicas.observe([uid]);
    if (observation.outcome === 'NotObserved') return NOT_OBSERVED;
    const behind = replicasBehind(observation, (served) => serves(served, object, state));
    if (observation.outcome === 'Observed' && behind.length === 0) {
      this.#served.set(uid, desired);
      return SERVED;
    }
    // An unresponsive replica does not revoke the last status.
    const unresponsive = replicasBehind(observation, () => true);
    if (behind.length === unresponsive.length && isProgrammedIn(lastStatus, object, state)) return SERVED_BEFORE;
    return behind.length === 0 ? NO_REPLICAS : pendingOn(behind);
  }

  /** Whether a new secret may be published. @param since when it was stored, epoch milliseconds */
  async isServed(object: KubernetesObject, state: CredentialState, since: number): Promise<boolean> {
    const { programmed } = await this.of(object, state);
    if (programmed.reason === 'NotObserved') return this.#clock.now() - since >= UNOBSERVED_MILLISECONDS;
    // A replica that starts now reads the stored state first.
    return programmed.status === 'True' || programmed.reason === 'NoReplicas';
  }
}

function desiredOf({ metadata }: KubernetesObject, state: CredentialState | undefined): string {
  return `${metadata.generation ?? 1}/${state?.revision ?? ''}`;
}

function serves(served: ServedState, { metadata }: KubernetesObject, state: CredentialState | undefined): boolean {
  const client = served.clients.get(metadata.uid);
  if (client?.generation !== (metadata.generation ?? 1)) return false;
  return state === undefined || client.secretRevision === state.revision;
}

/** Whether a status reports that all replicas served this generation and the secret that is the newest now. */
function isProgrammedIn(status: unknown, { metadata }: KubernetesObject, state: CredentialState | undefined): boolean {
  const { status: truth, reason, observedGeneration } = conditionIn(status, 'Programmed') ?? {};
  if (truth !== 'True' || reason !== 'Programmed' || observedGeneration !== (metadata.generation ?? 1)) return false;
  return fieldsOf(fieldsOf(status).secret).revision === state?.verifiers[0]?.revision;
}

/** Also where no replica takes requests, or one became unresponsive. */
const SERVED: ProgrammedOutcome = {
  programmed: { status: 'True', reason: 'Programmed', message: 'Every replica serves it before it takes requests.' },
  isTransient: false,
};

/** From the last status: this process has not observed it. */
const SERVED_BEFORE: ProgrammedOutcome = { ...SERVED, isTransient: true };

const NOT_OBSERVED: ProgrammedOutcome = {
  programmed: { status: 'True', reason: 'NotObserved', message: 'No addresses of replicas are configured.' },
  isTransient: false,
};

const NO_REPLICAS: ProgrammedOutcome = {
  programmed: { status: 'Unknown', reason: 'NoReplicas', message: 'No replica takes requests.' },
  isTransient: true,
};

function pendingOn(behind: readonly string[]): ProgrammedOutcome {
  const more = behind.length > REPLICAS_NAMED ? ` and ${behind.length - REPLICAS_NAMED} more` : '';
  const message = `Not served yet by ${behind.slice(0, REPLICAS_NAMED).join(', ')}${more}.`;
  return { programmed: { status: 'False', reason: 'Pending', message }, isTransient: true };
}
