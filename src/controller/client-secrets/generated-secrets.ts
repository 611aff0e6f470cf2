// Reconciles the generated secret of one client: its verifier Secret and the Secret of its owner. client-rotation.ts
// and client-secret-object.ts plan the desired state. This file carries the plan out, in an order that leaves the
// client a working secret if the controller stops between two writes.

import { clientSecretName } from '../../admission/client-secrets/client-secret-manifest.ts';
import { secretOfAnother } from '../../admission/clients/credentials.ts';
import type { Fault } from '../../admission/kinds/conditions.ts';
import { type KubernetesObject, OAUTH_CLIENTS, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { isAlreadyExists, writeFault } from '../leadership/refused-calls.ts';
import { type RotationRequests, rotationRequests } from '../reconciling/rotation-requests.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import { isCutDue, type RotationOutcome, type RotationStep, rotationStep } from './client-rotation.ts';
import { type ClientSecretObject, clientSecretObject, hasDrifted, removal } from './client-secret-object.ts';
import { ContestedSecrets, contestFault } from './contested-secrets.ts';
import { cutCredentials, endingCredentials, gracePeriodOf, indexOfSecret } from './credential-changes.ts';
import { type CredentialState, withSecretName } from './credential-state.ts';
import type { CredentialOutcome, CredentialSubject } from './credential-subject.ts';
import type { FormerSecrets } from './former-secrets.ts';
import { deleteSecret, ownershipOf, type SecretOwnership, writeSecret } from './owner-secrets.ts';
import { presentSecret, previousOf, stagedSecret } from './secret-matching.ts';
import type { UnchangedCheck } from './unchanged-check.ts';

export interface GeneratedSecretsOptions {
  readonly api: LeaderApi;
  readonly issuer: string;
  /** Metadata of the Secrets of all watched namespaces. */
  readonly secrets: ObjectView;
  readonly formerSecrets: FormerSecrets;
  readonly unchangedCheck: UnchangedCheck;
  /** Whether an OAuthClient with a uid exists, of any class. */
  readonly clientExists: (uid: string) => boolean;
  /** Whether every replica accepts the verifiers of a client as they are stored. */
  readonly isServed: (object: KubernetesObject, state: CredentialState, since: number) => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
}

/** The delay before the controller retries a write that the API server refused. */
const REFUSED_MILLISECONDS = 60_000;

/** The state of a client's Secret when it is reconciled. */
interface Found {
  readonly name: string;
  readonly present: KubernetesObject | undefined;
  readonly ownership: SecretOwnership | undefined;
  /** The client has no stored state, and the cache no Secret of this name or a deleted one: the controller creates it. */
  readonly isNew: boolean;
}

/** The desired Secret. */
interface DesiredSecret {
  readonly secret: ClientSecretObject;
  /** Whether the Secret is to be written: it is missing, an orphan, or differs from the desired one. */
  readonly isDue: boolean;
}

export class GeneratedSecrets {
  readonly #options: GeneratedSecretsOptions;
  /**
   * Secrets that this process generated and has not written yet, by uid of the client: a write that was refused or not
   * answered is tried again with the same secret. Under another name it may have arrived.
   */
  readonly #unwritten = new Map<string, { readonly name: string; readonly secret: string }>();
  readonly #contested: ContestedSecrets;

  constructor(options: GeneratedSecretsOptions) {
    this.#options = options;
    this.#contested = new ContestedSecrets(options.clock);
  }

  forget(uid: string): void {
    this.#contested.forget(uid);
    this.#unwritten.delete(uid);
  }

  /** Carries out one step of the rotation (client-rotation.ts), or repairs drift. */
  async reconcile(subject: CredentialSubject): Promise<CredentialOutcome> {
    const { client, state, verifiers } = subject;
    const { formerSecrets, unchangedCheck, clientExists } = this.#options;
    const found = await this.#find(subject);
    const { name, present } = found;
    if (found.ownership === 'foreign') return await this.endWithGrace(subject);
    const step = await this.#step(subject, found);
    if (found.ownership === 'orphan' || OF_ANOTHER_SECRET.includes(step.outcome)) await this.#assertCurrent(subject);
    const { secret, isDue } = this.#desired(subject, found, step);
    const isDrift = step.outcome === 'kept' && isDue && unchangedCheck.wasReconciled(subject);
    const isRepair = isDrift || step.isRepair;
    const backoff = isRepair ? this.#contested.backoffUntil(client.uid) : undefined;
    if (backoff !== undefined) return failed(contestFault(name, present, backoff), backoff.until - this.#now);
    if (OF_NEW_SECRETS.includes(step.outcome))
      this.#unwritten.set(client.uid, { name, secret: step.next ?? step.value });
    // Before the Secret is written: a controller that continues from here knows its name.
    const names = withSecretName(verifiers.secretNames, name);
    if (step.store === undefined) await verifiers.writeDown(names);
    else await verifiers.put(step.store, names);
    const before = step.store ?? state;
    let written = present;
    if (!clientExists(client.uid)) throw new StaleReadError(`OAuthClient ${subject.key}`);
    if (isDue) {
      try {
        written = await writeSecret(this.#options.api, secret, present);
      } catch (error) {
        // A Secret of this name exists. The next reconcile inspects it as if nothing had been stored.
        if (found.isNew && isAlreadyExists(error)) await verifiers.remove();
        return failed(writeFault(error, adviceOn({ ...subject, state: before }, present)), REFUSED_MILLISECONDS);
      }
    }
    this.#unwritten.delete(client.uid);
    if (isRepair) this.#contested.recordRepair(client.uid);
    const after = step.storeAfterWrite ?? before;
    if (step.storeAfterWrite !== undefined) await verifiers.put(step.storeAfterWrite);
    await verifiers.writeDown(await formerSecrets.remove({ ...subject, state: after }));
    return {
      facts: { secret: () => written },
      done: isDrift ? 'drift_repaired' : step.outcome,
      requeueAfter: this.#finish({ ...subject, state: after }, step, written),
    };
  }

  /**
   * A Secret that is not the client's has the name of the client's Secret. The owner may have lost the accepted
   * secrets, so they expire with the grace. Nothing expires while the secret in force is in a Secret of a former name, as
   * after a rename to a name that is taken. A cut ends them at once: it needs no Secret to be written.
   */
  async endWithGrace(subject: CredentialSubject): Promise<CredentialOutcome> {
    const { client, manifest, object, state, verifiers } = subject;
    const name = clientSecretName(client.name, manifest.spec);
    if (state === undefined) return failed(secretOfAnother(name), undefined);
    const requests = rotationRequests(object);
    const isCut = isCutDue(requests, state);
    if (isCut) await this.#assertCurrent(subject);
    const isElsewhere = !isCut && (await this.#options.formerSecrets.holdCurrent(subject, name));
    if (isElsewhere) return failed(secretOfAnother(name), undefined);
    const gracePeriodSeconds = gracePeriodOf(manifest);
    const ending = isCut
      ? cutCredentials(state, { now: this.#now, requests })
      : endingCredentials(state, { now: this.#now, gracePeriodSeconds });
    if (ending !== undefined) await verifiers.put(ending);
    const end = Math.max(...(ending ?? state).verifiers.map(({ expiresAt = 0 }) => expiresAt));
    const isOver = end <= this.#now;
    const more = isOver
      ? ' The secret from before is not accepted any more.'
      : ` The secret from before is accepted until ${new Date(end).toISOString()}.`;
    return failed(secretOfAnother(name, more), isOver ? undefined : end - this.#now);
  }

  async #find(subject: CredentialSubject): Promise<Found> {
    const { client, manifest, state } = subject;
    const { api, secrets, clientExists } = this.#options;
    const name = clientSecretName(client.name, manifest.spec);
    // A new client most likely has no Secret yet, as the cache shows; if the cache is stale, the create fails.
    const isNew = state === undefined && secrets.get(`${client.namespace}/${name}`) === undefined;
    const present = isNew ? undefined : await api.get(SECRETS, { namespace: client.namespace, name });
    const ownership = present && ownershipOf(present.metadata, client, clientExists);
    if (present === undefined || ownership !== 'predecessor') return { name, present, ownership, isNew };
    // Before garbage collection does: its value is of the client before. The client of its owner's name is this one.
    await this.#assertCurrent(subject);
    await deleteSecret(api, present);
    return { name, present: undefined, ownership: undefined, isNew: state === undefined };
  }

  /**
   * The cache may be stale: the uid in the labels of an orphaned Secret, or of its owner, may be that of the current
   * client of its name, the request of a rotation one that was handled long ago, and the name of the Secret a former one.
   * @throws StaleReadError when the API server has no client of this uid with the same manifest and requests: requeue
   */
  async #assertCurrent({ key, object, client: { namespace, name, uid } }: CredentialSubject): Promise<void> {
    const client = await this.#options.api.get(OAUTH_CLIENTS, { namespace, name });
    const isCurrent =
      client?.metadata.uid === uid &&
      client.metadata.generation === object.metadata.generation &&
      isSameRequests(rotationRequests(client), rotationRequests(object));
    if (!isCurrent) throw new StaleReadError(`OAuthClient ${key}`);
  }

  async #step(subject: CredentialSubject, { name, present, ownership }: Found): Promise<RotationStep> {
    const { object, manifest, client, state } = subject;
    const { rotation } = manifest.spec.auth.clientSecret ?? {};
    const { uid } = client;
    const unwritten = this.#unwritten.get(uid);
    return rotationStep({
      uid,
      now: this.#now,
      random: this.#options.random,
      stored: state,
      intervalSeconds: rotation?.interval,
      gracePeriodSeconds: gracePeriodOf(manifest),
      requests: rotationRequests(object),
      present: presentSecret(subject, present),
      isOrphan: ownership === 'orphan',
      staged: stagedSecret(subject, present),
      unwritten: unwritten?.name === name ? unwritten.secret : undefined,
      isServed: state?.begunAt !== undefined && (await this.#options.isServed(object, state, state.begunAt)),
    });
  }

  #desired(subject: CredentialSubject, { present, ownership }: Found, step: RotationStep): DesiredSecret {
    const { verdict, manifest } = subject;
    const { issuer, random } = this.#options;
    const previousClientSecret = previousOf(subject, present, step);
    const { value: clientSecret, next: nextClientSecret } = step;
    const facts = { clientId: verdict.clientId, clientSecret, previousClientSecret, nextClientSecret, issuer };
    const secret = clientSecretObject({ object: verdict.object, manifest, facts, present, random });
    const isDue =
      present === undefined ||
      ownership === 'orphan' ||
      hasDrifted(secret, present) ||
      removal(secret, { present, before: present }) !== undefined;
    return { secret, isDue };
  }

  /**
   * @param subject with the state that this reconcile left; a state that was stored since has a reconcile of its own
   * @returns milliseconds until the client is due again; undefined when only a change makes it due
   */
  #finish(subject: CredentialSubject, step: RotationStep, written: KubernetesObject | undefined): number | undefined {
    // While a rotation is pending, each reconcile observes the replicas.
    if (subject.state?.begunAt === undefined) {
      this.#options.unchangedCheck.record(subject, written?.metadata.resourceVersion, { dueAt: step.requeueAt });
    }
    return step.requeueAt === undefined ? undefined : Math.max(0, step.requeueAt - this.#now);
  }

  get #now(): number {
    return this.#options.clock.now();
  }
}

/** The steps that write a secret which is in no Secret yet. */
const OF_NEW_SECRETS: readonly RotationOutcome[] = ['created', 'begun', 'repaired', 'cut'];
/** Those of a client that had one before. */
const OF_ANOTHER_SECRET: readonly RotationOutcome[] = ['begun', 'repaired', 'cut'];

function isSameRequests(one: RotationRequests, other: RotationRequests): boolean {
  return one.rotateAt === other.rotateAt && one.rotateNow === other.rotateNow;
}

/** The outcome of a reconcile that stops at a fault. */
function failed(fault: Fault, requeueAfter: number | undefined): CredentialOutcome {
  return { facts: { secret: () => 'withheld', faults: [fault] }, done: 'kept', requeueAfter };
}

/** Advice to the owner of a Secret that cannot be written, for the message of the condition. */
function adviceOn(subject: CredentialSubject, present: KubernetesObject | undefined): string {
  const held = presentSecret(subject, present);
  const isExpired =
    held !== undefined && indexOfSecret(subject.client.uid, held, subject.state?.verifiers ?? []) === undefined;
  return [
    ...(isExpired ? [' The client secret in it is not accepted any more.'] : []),
    ...(present?.immutable === true ? [' It is immutable: delete it, and the controller creates a new one.'] : []),
  ].join('');
}
