// The generated secret of one client brought one step further: its verifier Secret, and the Secret of its owner. What should
// be is planned in client-rotation.ts and client-secret-object.ts; here it is carried out, in the order that leaves nobody
// without a secret that works.

import { clientSecretName } from '../admission/client-secret-manifest.ts';
import type { Fault } from '../admission/conditions.ts';
import { secretOfAnother } from '../admission/credentials.ts';
import type { OAuthClientManifest } from '../admission/oauth-client.ts';
import type { Clock, Random } from '../oauth/ports.ts';
import type { KubernetesApi } from './client.ts';
import { endingCredentials, type RotationInput, type RotationStep, rotationStep } from './client-rotation.ts';
import {
  type ClientSecretObject,
  clientSecretObject,
  fieldsWritten,
  hasDrifted,
  unwantedOwners,
} from './client-secret-object.ts';
import { ContestedSecrets, contestFault } from './contested-secrets.ts';
import type { CredentialOwner, CredentialState } from './credential-state.ts';
import type { CredentialOutcome, CredentialSubject } from './credential-subject.ts';
import type { FormerSecrets } from './former-secrets.ts';
import { holdsDeadSecret, presentSecret, previousOf } from './held-secrets.ts';
import { ownershipOf, writeSecret } from './owner-secrets.ts';
import { isTaken, writeFault } from './refused-calls.ts';
import { type KubernetesObject, SECRETS } from './resources.ts';
import { rotationRequests } from './rotation-requests.ts';
import type { SettledCredentials } from './settled-credentials.ts';
import type { VerifierSecrets } from './verifier-secrets.ts';
import type { ObjectView } from './watched.ts';

export interface GeneratedSecretsOptions {
  readonly api: Pick<KubernetesApi, 'get' | 'create' | 'apply'>;
  readonly issuer: string;
  /** Metadata of the Secrets of all watched namespaces. */
  readonly secrets: ObjectView;
  readonly formerSecrets: FormerSecrets;
  readonly verifiers: VerifierSecrets;
  readonly settled: SettledCredentials;
  /** Whether there is an OAuthClient of a uid, of any class. */
  readonly isLiving: (uid: string) => boolean;
  /** Whether every replica accepts the verifiers of a client as they are stored. */
  readonly isServed: (object: KubernetesObject, state: CredentialState, since: number) => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
  /** Throws unless this process may write. */
  readonly assertMayWrite: () => void;
}

/** How often a rotation asks whether the replicas are there: at first, and the longer it takes the less often. */
const WAITING_MILLISECONDS = 250;
const LONGEST_WAITING_MILLISECONDS = 30_000;
/** How long it is before what the API server refused is tried again. */
const REFUSED_MILLISECONDS = 60_000;
const GRACE_SECONDS = 86_400;

export class GeneratedSecrets {
  readonly #options: GeneratedSecretsOptions;
  /** New secrets that their owners do not have yet, by uid. */
  readonly #undelivered = new Map<string, { readonly secret: string; readonly since: number }>();
  readonly #contested: ContestedSecrets;

  constructor(options: GeneratedSecretsOptions) {
    this.#options = options;
    this.#contested = new ContestedSecrets(options.clock);
  }

  forget(uid: string): void {
    this.#contested.forget(uid);
    this.#undelivered.delete(uid);
    this.#options.formerSecrets.forget(uid);
  }

  /** One step of its life. */
  async bring(subject: CredentialSubject): Promise<CredentialOutcome> {
    const { owner, manifest, state } = subject;
    const { api, formerSecrets, secrets, settled, verifiers, isLiving } = this.#options;
    const name = clientSecretName(owner.name, manifest.spec);
    // The first time it is most likely that there is none, and the watch says so; if it is behind, creating one fails.
    const isNew = state === undefined && secrets.get(`${owner.namespace}/${name}`) === undefined;
    const present = isNew ? undefined : await api.get(SECRETS, { namespace: owner.namespace, name });
    const ownership = present && ownershipOf(present.metadata, owner, isLiving);
    if (ownership === 'foreign') return await this.endWithGrace(subject);
    const known = present ?? (await formerSecrets.of(owner, name));
    const isLeftBehind = ownership === 'orphan';
    const step = await this.#step(subject, { present: presentSecret(subject, known), isLeftBehind });
    const wanted = this.#wanted(subject, known, step);
    const writtenFields = fieldsWritten(wanted);
    const owners = present === undefined ? [] : unwantedOwners(wanted, present, isLiving);
    const hasChanged = present === undefined || hasDrifted(wanted, present) || owners.length > 0;
    const isDue = hasChanged || isLeftBehind;
    const done = step.outcome === 'kept' && isDue && settled.wasSettled(subject) ? 'drift_repaired' : step.outcome;
    const isPutBack = done === 'drift_repaired' || done === 'repaired';
    const contest = isPutBack ? this.#contested.waiting(owner.uid) : undefined;
    if (contest !== undefined) return failed(contestFault(name, present, contest), contest.until - this.#now);
    const stored = step.store && { ...step.store, ...(state === undefined && { writtenFields }) };
    // First, because what no answer comes of may have happened.
    this.#remember(owner, step.undelivered ?? step.value);
    if (stored !== undefined) await verifiers.put(owner, stored);
    const before = stored ?? state;
    let written = present;
    if (isDue || before?.writtenFields !== writtenFields) {
      try {
        written = await writeSecret(this.#options, wanted, { present, writtenBefore: before?.writtenFields, owners });
      } catch (error) {
        // Somebody was faster: what is there now is judged as if nothing had been stored.
        if (isNew && isTaken(error)) await verifiers.remove(owner.uid);
        return failed(writeFault(error, adviceOn({ ...subject, state: before }, present)), REFUSED_MILLISECONDS);
      }
    }
    if (isPutBack) this.#contested.putBack(owner.uid);
    const after = step.settle ?? before;
    if (after !== undefined && (step.settle !== undefined || after.writtenFields !== writtenFields)) {
      await verifiers.put(owner, { ...after, writtenFields });
    }
    await formerSecrets.remove(subject);
    formerSecrets.wrote(owner, name);
    const facts = { secret: () => written };
    if (step.undelivered !== undefined) return { facts, done, again: this.#untilServed(owner) };
    this.#undelivered.delete(owner.uid);
    const now = { ...subject, state: verifiers.get(owner.uid) };
    settled.settle(now, written?.metadata.resourceVersion, { until: step.again });
    return { facts, done, again: step.again === undefined ? undefined : Math.max(0, step.again - this.#now) };
  }

  /**
   * Somebody else's Secret stands where the client's was: nobody may know any more what is accepted, so it ends with the
   * grace. Where the client has its Secret under another name still, as after renaming it to a name that is taken, nothing
   * ends.
   */
  async endWithGrace({ owner, manifest, state }: CredentialSubject): Promise<CredentialOutcome> {
    const { formerSecrets, verifiers } = this.#options;
    const name = clientSecretName(owner.name, manifest.spec);
    if (state === undefined || formerSecrets.has(owner)) return failed(secretOfAnother(name), undefined);
    const gracePeriodSeconds = gracePeriodOf(manifest);
    const ending = endingCredentials(state, { now: this.#now, gracePeriodSeconds });
    if (ending !== undefined) await verifiers.put(owner, ending);
    const end = Math.max(...(ending ?? state).verifiers.map(({ expiresAt = 0 }) => expiresAt));
    const isOver = end <= this.#now;
    const more = isOver
      ? ' The secret from before is not accepted any more.'
      : ` The secret from before is accepted until ${new Date(end).toISOString()}.`;
    return failed(secretOfAnother(name, more), isOver ? undefined : end - this.#now);
  }

  #wanted(subject: CredentialSubject, present: KubernetesObject | undefined, step: RotationStep): ClientSecretObject {
    const { verdict, manifest } = subject;
    const { issuer, random } = this.#options;
    const previousClientSecret = previousOf(subject, present, step);
    const facts = { clientId: verdict.clientId, clientSecret: step.value, previousClientSecret, issuer };
    return clientSecretObject({ object: verdict.object, manifest, facts, present, random });
  }

  async #step(
    { object, manifest, owner, state }: CredentialSubject,
    found: Pick<RotationInput, 'present' | 'isLeftBehind'>,
  ): Promise<RotationStep> {
    const { rotation } = manifest.spec.auth.clientSecret ?? {};
    const { uid } = owner;
    const undelivered = this.#undelivered.get(uid);
    const waits = undelivered !== undefined && state !== undefined;
    return rotationStep({
      ...{ uid, now: this.#now, random: this.#options.random, stored: state, ...found },
      ...{ intervalSeconds: rotation?.interval, gracePeriodSeconds: gracePeriodOf(manifest) },
      requests: rotationRequests(object),
      undelivered: undelivered?.secret,
      isServed: waits && (await this.#options.isServed(object, state, undelivered.since)),
    });
  }

  #remember({ uid }: CredentialOwner, secret: string): void {
    if (this.#undelivered.get(uid)?.secret !== secret) this.#undelivered.set(uid, { secret, since: this.#now });
  }

  #untilServed({ uid }: CredentialOwner): number {
    const waited = this.#now - (this.#undelivered.get(uid)?.since ?? this.#now);
    return Math.min(LONGEST_WAITING_MILLISECONDS, Math.max(WAITING_MILLISECONDS, waited / 4));
  }

  get #now(): number {
    return this.#options.clock.now();
  }
}

/** What a look comes to whose end is not reached. */
function failed(fault: Fault, again: number | undefined): CredentialOutcome {
  return { facts: { secret: () => 'withheld', faults: [fault] }, done: 'kept', again };
}

function gracePeriodOf({ spec }: OAuthClientManifest): number {
  return spec.auth.clientSecret?.rotation.gracePeriod ?? GRACE_SECONDS;
}

/** What an owner is to know of a Secret that cannot be written. */
function adviceOn(subject: CredentialSubject, present: KubernetesObject | undefined): string {
  return [
    ...(holdsDeadSecret(subject, present) ? [' The client secret in it is not accepted any more.'] : []),
    ...(present?.immutable === true ? [' It is immutable: delete it, and it is made anew.'] : []),
  ].join('');
}
