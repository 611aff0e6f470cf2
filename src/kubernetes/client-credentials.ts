// The credentials of one client brought to what they should be: its verifier Secret, and the Secret of its owner that is
// generated, taken over or only read. What should be is planned in client-rotation.ts and client-secret-object.ts; here it
// is carried out, in the order that leaves nobody without a secret that works.

import type { ClientVerdict } from '../admission/admit-client.ts';
import {
  clientSecretKeys,
  clientSecretName,
  hasGeneratedSecret,
  MINIMUM_SECRET_BYTES,
} from '../admission/client-secret-manifest.ts';
import { type AcceptedVerifier, livingVerifiers } from '../admission/client-verifier.ts';
import type { Fault } from '../admission/conditions.ts';
import { fieldsOf } from '../admission/manifest.ts';
import type { OAuthClientManifest } from '../admission/oauth-client.ts';
import type { ReferencedSecret, References } from '../admission/references.ts';
import { SECRET_METHODS } from '../oauth/client-auth/index.ts';
import { secretVerifier } from '../oauth/client-secret.ts';
import type { Clock, Random } from '../oauth/ports.ts';
import { type KubernetesApi, KubernetesError } from './client.ts';
import {
  existingCredentials,
  previousSecret,
  type RotationOutcome,
  type RotationStep,
  rotationStep,
} from './client-rotation.ts';
import {
  type ClientSecretObject,
  clientSecretObject,
  fieldsWritten,
  hasDrifted,
  ownerOf,
  secretText,
  unwantedOwners,
  writtenKeys,
} from './client-secret-object.ts';
import type { CredentialOwner, CredentialState } from './credential-state.ts';
import type { JudgedClients, OwnFacts } from './judged-clients.ts';
import { type OwnedSecrets, ownershipOf, writeSecret } from './owner-secrets.ts';
import { type KubernetesObject, SECRETS } from './resources.ts';
import { rotationRequests } from './rotation-requests.ts';
import type { VerifierSecrets } from './verifier-secrets.ts';
import type { ObjectView } from './watched.ts';

export interface ClientCredentialsOptions {
  readonly api: Pick<KubernetesApi, 'get' | 'create' | 'apply' | 'delete'>;
  readonly issuer: string;
  readonly clients: JudgedClients;
  /** Metadata of the Secrets of all watched namespaces. */
  readonly secrets: ObjectView;
  readonly ownedSecrets: OwnedSecrets;
  readonly verifiers: VerifierSecrets;
  /** Whether there is an OAuthClient of a uid, of any class. */
  readonly isLiving: (uid: string) => boolean;
  /** Whether every replica accepts the verifiers of a client as they are stored. */
  readonly isServed: (object: KubernetesObject, state: CredentialState, since: number) => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
  /** Throws unless this process may write. */
  readonly assertMayWrite: () => void;
}

/** What became of a client's credentials. */
export interface CredentialOutcome {
  /** What the client is to be judged by now. */
  readonly facts: Pick<OwnFacts, 'secret' | 'faults'>;
  readonly done: RotationOutcome | 'drift_repaired';
  /** Milliseconds until they are to be looked at again. */
  readonly again: number | undefined;
}

/** One client as it is looked at. */
interface Subject {
  readonly key: string;
  readonly object: KubernetesObject;
  readonly owner: CredentialOwner;
  readonly manifest: OAuthClientManifest;
  readonly verdict: ClientVerdict;
  readonly state: CredentialState | undefined;
}

interface Settled {
  readonly of: string;
  readonly generation: number;
  readonly until: number | undefined;
}

/** How often a rotation asks whether the replicas are there: at first, and the longer it takes the less often. */
const WAITING_MILLISECONDS = 250;
const LONGEST_WAITING_MILLISECONDS = 30_000;
/** How long it is before what the API server refused is tried again. */
const REFUSED_MILLISECONDS = 60_000;

export class ClientCredentials {
  readonly #options: ClientCredentialsOptions;
  /** New secrets that their owners do not have yet, by uid. */
  readonly #undelivered = new Map<string, { readonly secret: string; readonly since: number }>();
  /** By uid: everything that the last look depended on, and until when it holds. */
  readonly #settled = new Map<string, Settled>();

  constructor(options: ClientCredentialsOptions) {
    this.#options = options;
  }

  forget(uid: string): void {
    this.#undelivered.delete(uid);
    this.#settled.delete(uid);
  }

  /** @throws KubernetesError, and LeadershipLostError; what was done by then is gone on from at the next call */
  async bring(key: string, object: KubernetesObject): Promise<CredentialOutcome> {
    const { clients, verifiers } = this.#options;
    const owner = ownerOfCredentials(object);
    const secret = this.#metadataFor(object);
    const nothing: CredentialOutcome = { facts: { secret }, done: 'kept', again: undefined };
    const state = verifiers.get(owner.uid);
    const verdict = clients.verdict(key, { secret, ...PENDING, verifiers: livingOf(state, this.#now) });
    const { manifest } = verdict;
    const isAccepted = verdict.conditions[0]?.status === 'True';
    // What a refused client has it keeps, for the day that it is accepted again; it gets nothing new.
    if (manifest === undefined || !isAccepted) return nothing;
    const subject: Subject = { key, object, owner, manifest, verdict, state };
    if (!SECRET_METHODS.includes(manifest.spec.auth.method)) {
      await verifiers.remove(owner.uid);
      await this.#removeOthers(subject);
      return nothing;
    }
    if (state !== undefined && !verifiers.isListed(owner.uid)) await verifiers.put(owner, state);
    const holds = this.#holds(subject);
    if (holds !== undefined) return { ...nothing, again: holds.again };
    if (!hasGeneratedSecret(manifest.spec)) return await this.#read(subject);
    const isRefused = verdict.conditions.some(({ type, status }) => type === 'CredentialsReady' && status === 'False');
    return isRefused ? nothing : await this.#rotate(subject);
  }

  /** A Secret of the owner's own: its verifiers are stored as they are. */
  async #read(subject: Subject): Promise<CredentialOutcome> {
    const { key, object, owner, manifest, state } = subject;
    const { api, clients, verifiers } = this.#options;
    const name = clientSecretName(owner.name, manifest.spec);
    const found = await api.get(SECRETS, { namespace: owner.namespace, name });
    const secret = () => found as ReferencedSecret | undefined;
    const { client } = clients.verdict(key, { secret, ...PENDING, verifiers: [] });
    if (client === undefined) await verifiers.remove(owner.uid);
    else {
      const at = { now: this.#now, requests: rotationRequests(object) };
      const next = existingCredentials(state, client.secretVerifiers, at);
      if (next !== undefined) await verifiers.put(owner, next);
      await this.#removeOthers(subject);
      this.#settle(subject, found, undefined);
    }
    return { facts: { secret }, done: 'kept', again: undefined };
  }

  /** A generated Secret: one step of its life. */
  async #rotate(subject: Subject): Promise<CredentialOutcome> {
    const { object, owner, manifest, state } = subject;
    const { api, secrets, verifiers, isLiving } = this.#options;
    const name = clientSecretName(owner.name, manifest.spec);
    // The first time it is most likely that there is none, and the watch says so; if it is behind, creating one fails.
    const isNew = state === undefined && secrets.get(`${owner.namespace}/${name}`) === undefined;
    const present = isNew ? undefined : await api.get(SECRETS, { namespace: owner.namespace, name });
    const ownership = present && ownershipOf(present.metadata, owner, isLiving);
    // The watch is behind: somebody else's Secret is there, and the judge says so.
    if (ownership === 'foreign') return { facts: { secret: () => present }, done: 'kept', again: undefined };
    const known = present ?? (await this.#movedFrom(owner, name));
    const step = await this.#step(subject, presentSecret(subject, known));
    const wanted = this.#wanted(subject, known, step);
    const writtenFields = fieldsWritten(wanted);
    let stored = state;
    if (step.store !== undefined) {
      stored = { ...step.store, ...(state === undefined && { writtenFields }) };
      await verifiers.put(owner, stored);
    }
    this.#remember(owner, step.undelivered ?? step.value);
    const owners = present === undefined ? [] : unwantedOwners(wanted, present, isLiving);
    const hasChanged = present === undefined || hasDrifted(wanted, present) || owners.length > 0;
    const isDue = hasChanged || ownership === 'orphan';
    let written = present;
    if (isDue || stored?.writtenFields !== writtenFields) {
      try {
        written = await writeSecret(this.#options, wanted, { present, writtenBefore: stored?.writtenFields, owners });
      } catch (error) {
        if (isNew && isTaken(error)) await this.#unmake(owner);
        return this.#refused(error, adviceOn({ ...subject, state: stored }, present));
      }
    }
    const settled = step.settle ?? stored;
    if (settled !== undefined && (step.settle !== undefined || settled.writtenFields !== writtenFields)) {
      await verifiers.put(owner, { ...settled, writtenFields });
    }
    await this.#removeOthers(subject);
    const wasSettled = this.#settled.get(owner.uid)?.generation === object.metadata.generation;
    const done = step.outcome === 'kept' && isDue && wasSettled ? 'drift_repaired' : step.outcome;
    const facts = { secret: () => written };
    if (step.undelivered !== undefined) return { facts, done, again: this.#untilServed(owner) };
    this.#undelivered.delete(owner.uid);
    this.#settle(subject, written, step.again);
    return { facts, done, again: step.again === undefined ? undefined : Math.max(0, step.again - this.#now) };
  }

  #wanted(subject: Subject, present: KubernetesObject | undefined, step: RotationStep): ClientSecretObject {
    const { verdict, manifest } = subject;
    const { issuer, random } = this.#options;
    const previousClientSecret = previousOf(subject, present, step);
    const facts = { clientId: verdict.clientId, clientSecret: step.value, previousClientSecret, issuer };
    return clientSecretObject({ object: verdict.object, manifest, facts, present, random });
  }

  async #step({ object, manifest, owner, state }: Subject, present: string | undefined): Promise<RotationStep> {
    const { rotation } = manifest.spec.auth.clientSecret ?? {};
    const { uid } = owner;
    const undelivered = this.#undelivered.get(uid);
    const waits = undelivered !== undefined && state !== undefined;
    return rotationStep({
      ...{ uid, now: this.#now, random: this.#options.random, stored: state, present },
      ...{ intervalSeconds: rotation?.interval, gracePeriodSeconds: rotation?.gracePeriod ?? GRACE_SECONDS },
      requests: rotationRequests(object),
      undelivered: undelivered?.secret,
      isServed: waits && (await this.#options.isServed(object, state, undelivered.since)),
    });
  }

  /** Somebody was faster: what is there now is judged as if nothing had been made. */
  async #unmake({ uid }: CredentialOwner): Promise<void> {
    this.#undelivered.delete(uid);
    await this.#options.verifiers.remove(uid);
  }

  #remember({ uid }: CredentialOwner, secret: string): void {
    if (this.#undelivered.get(uid)?.secret !== secret) this.#undelivered.set(uid, { secret, since: this.#now });
  }

  #untilServed({ uid }: CredentialOwner): number {
    const waited = this.#now - (this.#undelivered.get(uid)?.since ?? this.#now);
    return Math.min(LONGEST_WAITING_MILLISECONDS, Math.max(WAITING_MILLISECONDS, waited / 4));
  }

  /** The Secret under another name that the client had before its owner renamed it. */
  async #movedFrom(owner: CredentialOwner, name: string): Promise<KubernetesObject | undefined> {
    for (const other of this.#options.ownedSecrets.of(owner)) {
      if (other === name) continue;
      const found = await this.#options.api.get(SECRETS, { namespace: owner.namespace, name: other });
      if (found !== undefined && isWrittenFor(found, owner)) return found;
    }
    return undefined;
  }

  /** Removes what the client wrote under other names, or before it went without a generated secret. */
  async #removeOthers({ owner, manifest: { spec } }: Subject): Promise<void> {
    if (spec.auth.clientSecret?.deletionPolicy === 'Retain') return;
    const { api, ownedSecrets, assertMayWrite } = this.#options;
    const needsSecret = SECRET_METHODS.includes(spec.auth.method);
    const kept = needsSecret ? clientSecretName(owner.name, spec) : undefined;
    for (const name of ownedSecrets.of(owner).filter((each) => each !== kept)) {
      const at = { namespace: owner.namespace, name };
      const found = await api.get(SECRETS, at);
      if (found === undefined || !isWrittenFor(found, owner)) continue;
      const { uid, resourceVersion } = found.metadata;
      assertMayWrite();
      await api.delete(SECRETS, { ...at, uid, resourceVersion });
    }
  }

  /** What the API server does not let us do is for the owner to know. @throws the error unless it is that */
  #refused(error: unknown, advice: string): CredentialOutcome {
    if (!(error instanceof KubernetesError) || error.reason === 'Conflict' || isTerminating(error)) throw error;
    if (![400, 403, 422].includes(error.status)) throw error;
    const fault: Fault = {
      path: ['spec', 'auth', 'clientSecret'],
      reason: error.status === 403 ? 'SecretWriteForbidden' : 'RotationFailed',
      message: `The API server refuses the Secret (${error.status} ${error.reason}).${advice}`,
    };
    return { facts: { secret: () => 'withheld', faults: [fault] }, done: 'kept', again: REFUSED_MILLISECONDS };
  }

  /**
   * What is known of Secrets without reading them. One that may be taken over is as good as none; the value of an Existing
   * one is known by the verifiers that were made of it.
   */
  #metadataFor(object: KubernetesObject): References['secret'] {
    const owner = ownerOfCredentials(object);
    const { auth } = fieldsOf(fieldsOf(object).spec);
    const isExisting = fieldsOf(fieldsOf(auth).clientSecret).source === 'Existing';
    return (namespace, name) => {
      const found = this.#options.secrets.get(`${namespace}/${name}`);
      if (found === undefined) return undefined;
      if (isExisting) return 'withheld';
      return ownershipOf(found.metadata, owner, this.#options.isLiving) === 'orphan' ? undefined : found;
    };
  }

  #settle(subject: Subject, secret: KubernetesObject | undefined, until: number | undefined): void {
    const { owner, object } = subject;
    const state = this.#options.verifiers.get(owner.uid);
    const of = fingerprint({ ...subject, state }, secret?.metadata.resourceVersion);
    const { generation = 1 } = object.metadata;
    this.#settled.set(owner.uid, { of, generation, until });
  }

  /** Whether nothing changed since it was last settled, and for how many milliseconds that holds; undefined when not. */
  #holds(subject: Subject): Pick<CredentialOutcome, 'again'> | undefined {
    const { owner, manifest } = subject;
    const settled = this.#settled.get(owner.uid);
    if (settled === undefined || this.#now >= (settled.until ?? Number.POSITIVE_INFINITY)) return undefined;
    const name = clientSecretName(owner.name, manifest.spec);
    const version = this.#options.secrets.get(`${owner.namespace}/${name}`)?.metadata.resourceVersion;
    if (settled.of !== fingerprint(subject, version)) return undefined;
    return { again: settled.until === undefined ? undefined : settled.until - this.#now };
  }

  get #now(): number {
    return this.#options.clock.now();
  }
}

const GRACE_SECONDS = 86_400;

const PENDING: Pick<OwnFacts, 'programmed'> = {
  programmed: { status: 'Unknown', reason: 'Pending', message: 'Not looked at yet.' },
};

/** Whose credentials an object's are. */
function ownerOfCredentials({ metadata }: KubernetesObject): CredentialOwner {
  const { namespace = '', name, uid } = metadata;
  return { namespace, name, uid };
}

/** Whether a Secret says by name and uid that it is this client's: what only one that we wrote does unless somebody lies. */
function isWrittenFor({ metadata }: KubernetesObject, { name, uid }: CredentialOwner): boolean {
  const owner = ownerOf(metadata);
  return owner?.name === name && owner.uid === uid;
}

/** The verifiers that count now. */
export function livingOf(state: CredentialState | undefined, now: number): readonly Uint8Array[] {
  return state === undefined ? [] : livingVerifiers(state, now);
}

/** Whether the API server takes nothing more into a namespace that is on its way out. */
export function isTerminating(error: unknown): boolean {
  return error instanceof KubernetesError && error.status === 403 && error.causes.includes('NamespaceTerminating');
}

function isTaken(error: unknown): boolean {
  return error instanceof KubernetesError && error.reason === 'AlreadyExists';
}

function fingerprint({ object, owner, manifest, state }: Subject, secretVersion: string | undefined): string {
  const { rotateAt, rotateNow } = rotationRequests(object);
  const name = clientSecretName(owner.name, manifest.spec);
  return JSON.stringify([object.metadata.generation, rotateAt, rotateNow, state?.revision, secretVersion, name]);
}

/** The secret in the owner's Secret: under its key, or where it stood before the owner renamed the key. */
function presentSecret({ owner, manifest, state }: Subject, secret: KubernetesObject | undefined): string | undefined {
  const usable = (key: string) => {
    const text = secretText(secret, key);
    return text !== undefined && Buffer.byteLength(text) >= MINIMUM_SECRET_BYTES ? text : undefined;
  };
  const texts = [clientSecretKeys(manifest.spec).clientSecret, ...writtenKeys(state?.writtenFields)].map(usable);
  const newest = state?.verifiers[0]?.verifier;
  const isNewest = (text: string) =>
    newest !== undefined && Buffer.from(newest).equals(secretVerifier(owner.uid, text));
  return texts.find((text) => text !== undefined && isNewest(text)) ?? texts[0];
}

/** What an owner is to know of a Secret that cannot be written. */
function adviceOn(subject: Subject, present: KubernetesObject | undefined): string {
  const held = presentSecret(subject, present);
  const isHeld = ({ verifier }: AcceptedVerifier) =>
    held !== undefined && Buffer.from(verifier).equals(secretVerifier(subject.owner.uid, held));
  const isDead = held !== undefined && subject.state?.verifiers.some(isHeld) === false;
  return [
    ...(isDead ? [' The client secret in it is not accepted any more.'] : []),
    ...(present?.immutable === true ? [' It is immutable: delete it, and it is made anew.'] : []),
  ].join('');
}

function previousOf(
  { owner, manifest, state }: Subject,
  secret: KubernetesObject | undefined,
  { settle, store }: RotationStep,
): string | undefined {
  const keys = clientSecretKeys(manifest.spec);
  const after = settle ?? store ?? state;
  if (keys.previousClientSecret === undefined || after === undefined) return undefined;
  const candidates = [keys.clientSecret, keys.previousClientSecret].map((key) => secretText(secret, key));
  // While a new one is on its way the present one is not the previous one yet.
  const isOnItsWay = after.verifiers[1] !== undefined && after.verifiers[1].expiresAt === undefined;
  return previousSecret(owner.uid, isOnItsWay ? { verifiers: after.verifiers.slice(1) } : after, candidates);
}
