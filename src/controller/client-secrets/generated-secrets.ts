// The generated secret of one client brought one step further: its verifier Secret, and the Secret of its owner. What should
// be is planned in client-rotation.ts and client-secret-object.ts; here it is carried out, in the order that leaves nobody
// without a secret that works.

import { clientSecretName } from '../../admission/client-secrets/client-secret-manifest.ts';
import { secretOfAnother } from '../../admission/clients/credentials.ts';
import type { Fault } from '../../admission/kinds/conditions.ts';
import type { OAuthClientManifest } from '../../admission/kinds/oauth-client.ts';
import {
  type KubernetesObject,
  OAUTH_CLIENTS,
  type OwnerReference,
  SECRETS,
} from '../../kubernetes/objects/resources.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { isTaken, writeFault } from '../leadership/refused-calls.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import { type RotationStep, rotationStep } from './client-rotation.ts';
import {
  type ClientSecretObject,
  clientSecretObject,
  fieldsWritten,
  hasDrifted,
  unwantedOwners,
} from './client-secret-object.ts';
import { ContestedSecrets, contestFault } from './contested-secrets.ts';
import { endingCredentials } from './credential-changes.ts';
import type { CredentialOwner, CredentialState } from './credential-state.ts';
import type { CredentialOutcome, CredentialSubject } from './credential-subject.ts';
import { ownershipOf, type SecretOwnership, writeSecret } from './owner-secrets.ts';
import { PendingSecrets } from './pending-secrets.ts';
import type { RenamedSecrets } from './renamed-secrets.ts';
import { holdsDeadSecret, presentSecret, previousOf } from './secret-matching.ts';
import type { UnchangedCheck } from './unchanged-check.ts';
import type { VerifierSecrets } from './verifier-secrets.ts';

export interface GeneratedSecretsOptions {
  readonly api: LeaderApi;
  readonly issuer: string;
  /** Metadata of the Secrets of all watched namespaces. */
  readonly secrets: ObjectView;
  readonly formerSecrets: RenamedSecrets;
  readonly verifiers: VerifierSecrets;
  readonly settled: UnchangedCheck;
  /** Whether there is an OAuthClient of a uid, of any class. */
  readonly isLiving: (uid: string) => boolean;
  /** Whether every replica accepts the verifiers of a client as they are stored. */
  readonly isServed: (object: KubernetesObject, state: CredentialState, since: number) => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
}

/** How long it is before what the API server refused is tried again. */
const REFUSED_MILLISECONDS = 60_000;
const GRACE_SECONDS = 86_400;

/** What there is of a client's Secret when it is looked at. */
interface Found {
  readonly name: string;
  readonly present: KubernetesObject | undefined;
  readonly ownership: SecretOwnership | undefined;
  /** The present one, or the one that the client had under another name. */
  readonly known: KubernetesObject | undefined;
  /** It was not looked for, because nobody knows of one. */
  readonly isNew: boolean;
}

/** What the Secret is to be. */
interface Wanted {
  readonly secret: ClientSecretObject;
  readonly writtenFields: string;
  /** Owners that it is not to have. */
  readonly owners: readonly OwnerReference[];
  /** Whether it is not that yet. */
  readonly isDue: boolean;
}

export class GeneratedSecrets {
  readonly #options: GeneratedSecretsOptions;
  readonly #undelivered: PendingSecrets;
  readonly #contested: ContestedSecrets;

  constructor(options: GeneratedSecretsOptions) {
    this.#options = options;
    this.#undelivered = new PendingSecrets(options.clock);
    this.#contested = new ContestedSecrets(options.clock);
  }

  forget(uid: string): void {
    this.#contested.forget(uid);
    this.#undelivered.forget(uid);
    this.#options.formerSecrets.forget(uid);
  }

  /** One step of its life. */
  async bring(subject: CredentialSubject): Promise<CredentialOutcome> {
    const { owner, state } = subject;
    const { formerSecrets, settled, verifiers } = this.#options;
    const found = await this.#find(subject);
    const { name, present } = found;
    if (found.ownership === 'foreign') return await this.endWithGrace(subject);
    if (found.ownership === 'orphan') await this.#assertThere(owner);
    const step = await this.#step(subject, found);
    const wanted = this.#wanted(subject, found, step);
    const { isDue, writtenFields } = wanted;
    const done = step.outcome === 'kept' && isDue && settled.wasSettled(subject) ? 'drift_repaired' : step.outcome;
    const isPutBack = done === 'drift_repaired' || done === 'repaired';
    const contest = isPutBack ? this.#contested.waiting(owner.uid) : undefined;
    if (contest !== undefined) return failed(contestFault(name, present, contest), contest.until - this.#now);
    this.#undelivered.remember(owner.uid, step.undelivered ?? step.value);
    const stored = step.store && { ...step.store, ...(state === undefined && { writtenFields }) };
    if (stored !== undefined) await verifiers.put(owner, stored, state);
    const before = stored ?? state;
    let written = present;
    if (isDue || before?.writtenFields !== writtenFields) {
      try {
        written = await this.#write(wanted, found, before);
      } catch (error) {
        // Somebody was faster: what is there now is judged as if nothing had been stored.
        if (found.isNew && isTaken(error)) await verifiers.remove(owner.uid);
        return failed(writeFault(error, adviceOn({ ...subject, state: before }, present)), REFUSED_MILLISECONDS);
      }
    }
    if (isPutBack) this.#contested.recordRepair(owner.uid);
    const after = step.settle ?? before;
    if (after !== undefined && (step.settle !== undefined || after.writtenFields !== writtenFields)) {
      await verifiers.put(owner, { ...after, writtenFields }, before);
    }
    await formerSecrets.remove(subject);
    formerSecrets.wrote(owner, name);
    return { facts: { secret: () => written }, done, again: this.#settle({ ...subject, state: after }, step, written) };
  }

  /**
   * Somebody else's Secret stands where the client's was: nobody may know any more what is accepted, so it ends with the
   * grace. Where the client has its Secret under another name still, as after renaming it to a name that is taken, nothing
   * ends.
   */
  async endWithGrace({ owner, manifest, state }: CredentialSubject): Promise<CredentialOutcome> {
    const { formerSecrets, verifiers } = this.#options;
    const name = clientSecretName(owner.name, manifest.spec);
    const hasAnother = state !== undefined && (await formerSecrets.of(owner, name)) !== undefined;
    if (state === undefined || hasAnother) return failed(secretOfAnother(name), undefined);
    const gracePeriodSeconds = gracePeriodOf(manifest);
    const ending = endingCredentials(state, { now: this.#now, gracePeriodSeconds });
    if (ending !== undefined) await verifiers.put(owner, ending, state);
    const end = Math.max(...(ending ?? state).verifiers.map(({ expiresAt = 0 }) => expiresAt));
    const isOver = end <= this.#now;
    const more = isOver
      ? ' The secret from before is not accepted any more.'
      : ` The secret from before is accepted until ${new Date(end).toISOString()}.`;
    return failed(secretOfAnother(name, more), isOver ? undefined : end - this.#now);
  }

  async #find({ owner, manifest, state }: CredentialSubject): Promise<Found> {
    const { api, formerSecrets, secrets, isLiving } = this.#options;
    const name = clientSecretName(owner.name, manifest.spec);
    // The first time it is most likely that there is none, and the watch says so; if it is behind, creating one fails.
    const isNew = state === undefined && secrets.get(`${owner.namespace}/${name}`) === undefined;
    const present = isNew ? undefined : await api.get(SECRETS, { namespace: owner.namespace, name });
    const ownership = present && ownershipOf(present.metadata, owner, isLiving);
    const known = present ?? (await formerSecrets.of(owner, name));
    return { name, present, ownership, known, isNew };
  }

  /**
   * The watch may be behind: who left the Secret by what it told may be the very client that has the name now.
   * @throws StaleReadError when the API server knows another one, or none: look again
   */
  async #assertThere({ namespace, name, uid }: CredentialOwner): Promise<void> {
    const client = await this.#options.api.get(OAUTH_CLIENTS, { namespace, name });
    if (client?.metadata.uid !== uid) throw new StaleReadError(`OAuthClient ${namespace}/${name}`);
  }

  async #step(subject: CredentialSubject, { known, ownership }: Found): Promise<RotationStep> {
    const { object, manifest, owner, state } = subject;
    const { rotation } = manifest.spec.auth.clientSecret ?? {};
    const { uid } = owner;
    const undelivered = this.#undelivered.get(uid);
    const waits = undelivered !== undefined && state !== undefined;
    return rotationStep({
      uid,
      now: this.#now,
      random: this.#options.random,
      stored: state,
      intervalSeconds: rotation?.interval,
      gracePeriodSeconds: gracePeriodOf(manifest),
      requests: rotationRequests(object),
      present: presentSecret(subject, known),
      isLeftBehind: ownership === 'orphan',
      undelivered: undelivered?.secret,
      isServed: waits && (await this.#options.isServed(object, state, undelivered.since)),
    });
  }

  #wanted(subject: CredentialSubject, { present, known, ownership }: Found, step: RotationStep): Wanted {
    const { verdict, manifest } = subject;
    const { issuer, random, isLiving } = this.#options;
    const previousClientSecret = previousOf(subject, known, step);
    const facts = { clientId: verdict.clientId, clientSecret: step.value, previousClientSecret, issuer };
    const secret = clientSecretObject({ object: verdict.object, manifest, facts, present: known, random });
    const owners = present === undefined ? [] : unwantedOwners(secret, present, isLiving);
    const isDue = present === undefined || ownership === 'orphan' || hasDrifted(secret, present) || owners.length > 0;
    return { secret, writtenFields: fieldsWritten(secret), owners, isDue };
  }

  #write({ secret, owners }: Wanted, { present }: Found, before: CredentialState | undefined) {
    return writeSecret(this.#options.api, secret, { present, writtenBefore: before?.writtenFields, owners });
  }

  /**
   * @param subject with the state that this look left: another that was stored since is looked at by itself
   * @returns milliseconds until there is something to do again; undefined: when something changes
   */
  #settle(subject: CredentialSubject, step: RotationStep, written: KubernetesObject | undefined): number | undefined {
    const { uid } = subject.owner;
    if (step.undelivered !== undefined) return this.#undelivered.untilServed(uid);
    this.#undelivered.forget(uid);
    this.#options.settled.settle(subject, written?.metadata.resourceVersion, { until: step.again });
    return step.again === undefined ? undefined : Math.max(0, step.again - this.#now);
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
