// Whether the replicas serve what is stored of a client: the condition `Programmed`, and the gate before a new secret is
// handed out. What all replicas were once seen to serve is not asked again: they do not lose it, and a new one has it before
// it takes requests.

import type { Programmed } from '../../admission/kinds/conditions.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { CredentialState } from '../client-secrets/credential-state.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';
import { type ObservedReplicas, replicasBehind, type ServedState } from '../replicas/observed-replicas.ts';

/** How long a new secret waits where nobody can be asked: replicas follow within a second. */
const UNOBSERVED_MILLISECONDS = 5000;
const REPLICAS_NAMED = 3;

/** What is to be said of it. */
export interface ProgrammedOutcome {
  readonly programmed: Programmed;
  /** Whether it may be otherwise soon. */
  readonly isPassing: boolean;
}

export class ProgrammedClients {
  readonly #replicas: ObservedReplicas;
  readonly #clock: Clock;
  /** What all replicas serve, by uid. */
  readonly #served = new Map<string, string>();

  constructor(replicas: ObservedReplicas, clock: Clock) {
    this.#replicas = replicas;
    this.#clock = clock;
  }

  /** To be called when a client is gone, or refused: nobody serves it any more. */
  forget(uid: string): void {
    this.#served.delete(uid);
  }

  /**
   * @param state the credentials as they are stored; undefined for a client that has none
   * @param told the client's status: what a leader before this one saw counts until a replica says otherwise
   */
  async of(object: KubernetesObject, state: CredentialState | undefined, told?: unknown): Promise<ProgrammedOutcome> {
    const { uid } = object.metadata;
    const wanted = wantedOf(object, state);
    if (this.#served.get(uid) === wanted) return SERVED;
    const observation = await this.#replicas.observe([uid]);
    if (observation.outcome === 'NotObserved') return NOT_OBSERVED;
    const behind = replicasBehind(observation, (served) => serves(served, object, state));
    if (observation.outcome === 'Observed' && behind.length === 0) {
      this.#served.set(uid, wanted);
      return SERVED;
    }
    // Who says nothing does not say otherwise.
    const silent = replicasBehind(observation, () => true);
    if (behind.length === silent.length && isTold(told, object, state)) return SERVED_BEFORE;
    return behind.length === 0 ? NO_REPLICAS : waitingFor(behind);
  }

  /** Whether a new secret may be handed out. @param since when it was stored, epoch milliseconds */
  async isServed(object: KubernetesObject, state: CredentialState, since: number): Promise<boolean> {
    const { programmed } = await this.of(object, state);
    if (programmed.reason === 'NotObserved') return this.#clock.now() - since >= UNOBSERVED_MILLISECONDS;
    // Who starts now begins with what is stored.
    return programmed.status === 'True' || programmed.reason === 'NoReplicas';
  }
}

function wantedOf({ metadata }: KubernetesObject, state: CredentialState | undefined): string {
  return `${metadata.generation ?? 1}/${state?.revision ?? ''}`;
}

function serves(served: ServedState, { metadata }: KubernetesObject, state: CredentialState | undefined): boolean {
  const client = served.clients.get(metadata.uid);
  if (client?.generation !== (metadata.generation ?? 1)) return false;
  return state === undefined || client.secretRevision === state.revision;
}

/** Whether a status says that all replicas served this generation and the secret that is the newest now. */
function isTold(status: unknown, { metadata }: KubernetesObject, state: CredentialState | undefined): boolean {
  const { status: truth, reason, observedGeneration } = conditionIn(status, 'Programmed') ?? {};
  if (truth !== 'True' || reason !== 'Programmed' || observedGeneration !== (metadata.generation ?? 1)) return false;
  return fieldsOf(fieldsOf(status).secret).revision === state?.verifiers[0]?.revision;
}

/** Also where none takes requests, or one has become silent. */
const SERVED: ProgrammedOutcome = {
  programmed: { status: 'True', reason: 'Programmed', message: 'Every replica serves it before it takes requests.' },
  isPassing: false,
};

/** Nobody saw it in this process. */
const SERVED_BEFORE: ProgrammedOutcome = { ...SERVED, isPassing: true };

const NOT_OBSERVED: ProgrammedOutcome = {
  programmed: { status: 'True', reason: 'NotObserved', message: 'The controller is not told where the replicas are.' },
  isPassing: false,
};

const NO_REPLICAS: ProgrammedOutcome = {
  programmed: { status: 'Unknown', reason: 'NoReplicas', message: 'No replica takes requests.' },
  isPassing: true,
};

function waitingFor(behind: readonly string[]): ProgrammedOutcome {
  const more = behind.length > REPLICAS_NAMED ? ` and ${behind.length - REPLICAS_NAMED} more` : '';
  const message = `Not served yet by ${behind.slice(0, REPLICAS_NAMED).join(', ')}${more}.`;
  return { programmed: { status: 'False', reason: 'Pending', message }, isPassing: true };
}
