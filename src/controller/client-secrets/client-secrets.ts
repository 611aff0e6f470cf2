// The credentials of one client brought to what they should be: a generated secret (generated-secrets.ts), a Secret of the
// owner's own, which is only read, or none at all.

import { clientSecretName, hasGeneratedSecret } from '../../admission/client-secrets/client-secret-manifest.ts';
import { existingSecret, withheldForm } from '../../admission/clients/credentials.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import type { ReferencedSecret, References } from '../../admission/references/references.ts';
import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import { accessFault } from '../leadership/refused-calls.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import type { JudgedClients, OwnFacts } from '../verdicts/judged-clients.ts';
import { type CredentialOutcome, type CredentialSubject, livingOf, ownerOfCredentials } from './credential-subject.ts';
import { existingCredentials } from './existing-credentials.ts';
import { GeneratedSecrets, type GeneratedSecretsOptions } from './generated-secrets.ts';
import { type OwnedSecrets, ownershipOf } from './owner-secrets.ts';
import { RenamedSecrets } from './renamed-secrets.ts';
import { UnchangedCheck } from './unchanged-check.ts';

export interface ClientSecretsOptions extends Omit<GeneratedSecretsOptions, 'settled' | 'formerSecrets'> {
  readonly clients: JudgedClients;
  readonly ownedSecrets: OwnedSecrets;
  readonly record: (event: EventFacts) => void;
}

/** How long it is before what the API server refused is tried again. */
const REFUSED_MILLISECONDS = 60_000;

export class ClientSecrets {
  readonly #options: ClientSecretsOptions;
  readonly #settled = new UnchangedCheck();
  readonly #formerSecrets: RenamedSecrets;
  readonly #generated: GeneratedSecrets;

  constructor(options: ClientSecretsOptions) {
    this.#options = options;
    this.#formerSecrets = new RenamedSecrets(options);
    this.#generated = new GeneratedSecrets({
      ...options,
      settled: this.#settled,
      formerSecrets: this.#formerSecrets,
    });
  }

  forget(uid: string): void {
    this.#generated.forget(uid);
    this.#settled.forget(uid);
  }

  /** @throws KubernetesError, StaleReadError and LeadershipLostError; what was done by then the next call goes on from */
  async bring(key: string, object: KubernetesObject): Promise<CredentialOutcome> {
    try {
      return await this.#bring(key, object);
    } catch (error) {
      const fault = accessFault(error, ownerOfCredentials(object).namespace);
      return { facts: { secret: () => 'withheld', faults: [fault] }, done: 'kept', again: REFUSED_MILLISECONDS };
    }
  }

  async #bring(key: string, object: KubernetesObject): Promise<CredentialOutcome> {
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
    const subject: CredentialSubject = { key, object, owner, manifest, verdict, state };
    if (!SECRET_METHODS.includes(manifest.spec.auth.method)) {
      await verifiers.remove(owner.uid);
      await this.#formerSecrets.remove(subject);
      return nothing;
    }
    if (state !== undefined && !verifiers.isListed(owner.uid)) await verifiers.put(owner, state, state);
    const holding = this.#settled.holding(subject, this.#secretVersion(subject), this.#now);
    if (holding !== undefined) {
      const { withheld, again } = holding;
      return { ...nothing, ...(withheld !== undefined && { facts: { secret: () => withheld } }), again };
    }
    if (!hasGeneratedSecret(manifest.spec)) return await this.#read(subject);
    const refused = verdict.conditions.find(({ type, status }) => type === 'CredentialsReady' && status === 'False');
    if (refused?.reason === 'SecretNotOwned') return await this.#generated.endWithGrace(subject);
    return refused === undefined ? await this.#generated.bring(subject) : nothing;
  }

  /**
   * A Secret of the owner's own: its verifiers are stored as they are. By the manifest of this look, whatever the client has
   * become while the Secret was read: that is for its own look.
   */
  async #read(subject: CredentialSubject): Promise<CredentialOutcome> {
    const { object, owner, manifest, verdict, state } = subject;
    const { api, verifiers, isLiving } = this.#options;
    const name = clientSecretName(owner.name, manifest.spec);
    const found = await api.get(SECRETS, { namespace: owner.namespace, name });
    const secret = () => found as ReferencedSecret | undefined;
    // What was kept of it is removed by now, and nobody would remove it again.
    if (!isLiving(owner.uid)) return { facts: { secret }, done: 'kept', again: undefined };
    const credentials = existingSecret(verdict.object, manifest.spec, { secret, verifiersOf: () => [] });
    if (credentials.state !== 'ready' || found === undefined) await verifiers.remove(owner.uid);
    else {
      const at = { now: this.#now, requests: rotationRequests(object) };
      const next = existingCredentials(state, credentials.verifiers, at);
      if (next !== undefined) await verifiers.put(owner, next, state);
      await this.#formerSecrets.remove(subject);
      const left = { ...subject, state: next ?? state };
      const withheld = withheldForm(manifest.spec, found);
      this.#settled.settle(left, found.metadata.resourceVersion, { withheld });
    }
    return { facts: { secret }, done: 'kept', again: undefined };
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

  #secretVersion({ owner, manifest }: CredentialSubject): string | undefined {
    const name = clientSecretName(owner.name, manifest.spec);
    return this.#options.secrets.get(`${owner.namespace}/${name}`)?.metadata.resourceVersion;
  }

  get #now(): number {
    return this.#options.clock.now();
  }
}

const PENDING: Pick<OwnFacts, 'programmed'> = {
  programmed: { status: 'Unknown', reason: 'Pending', message: 'Not looked at yet.' },
};
