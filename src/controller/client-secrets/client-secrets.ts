// Reconciles the credentials of one client: a generated secret (generated-secrets.ts), a Secret that the owner
// provides, which the controller only reads, or no secret (identity-credentials.ts).

import { clientSecretName, hasGeneratedSecret } from '../../admission/client-secrets/client-secret-manifest.ts';
import type { ClientFacts, ClientSet } from '../../admission/clients/client-set.ts';
import { existingSecret, withheldForm } from '../../admission/clients/credentials.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import type { ReferencedSecret, References } from '../../admission/references/references.ts';
import { type KubernetesObject, SECRETS } from '../../kubernetes/objects/resources.ts';
import type { ClusterSource } from '../../kubernetes/objects/source-object.ts';
import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import { accessFault, isAlreadyExists } from '../leadership/refused-calls.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import {
  type CredentialOutcome,
  type CredentialSubject,
  credentialClientOf,
  type StoredOutcome,
  storedFacts,
} from './credential-subject.ts';
import { existingCredentials } from './existing-credentials.ts';
import { FormerSecrets } from './former-secrets.ts';
import { GeneratedSecrets, type GeneratedSecretsOptions } from './generated-secrets.ts';
import { IdentityCredentials, type IdentityCredentialsOptions } from './identity-credentials.ts';
import { ownershipOf } from './owner-secrets.ts';
import { UnchangedCheck } from './unchanged-check.ts';
import type { VerifierSecret } from './verifier-secret.ts';
import type { VerifierSecrets } from './verifier-secrets.ts';

export interface ClientSecretsOptions
  extends Omit<GeneratedSecretsOptions, 'unchangedCheck' | 'formerSecrets'>,
    Omit<IdentityCredentialsOptions, 'unchangedCheck'> {
  readonly clients: ClientSet<ClusterSource>;
  readonly verifiers: VerifierSecrets;
  readonly record: (event: EventFacts) => void;
}

/** The delay before the controller retries a call that the API server refused. */
const REFUSED_MILLISECONDS = 60_000;

export class ClientSecrets {
  readonly #options: ClientSecretsOptions;
  readonly #unchangedCheck = new UnchangedCheck();
  readonly #formerSecrets: FormerSecrets;
  readonly #generated: GeneratedSecrets;
  readonly #identities: IdentityCredentials;

  constructor(options: ClientSecretsOptions) {
    this.#options = options;
    this.#formerSecrets = new FormerSecrets(options);
    this.#identities = new IdentityCredentials({ ...options, unchangedCheck: this.#unchangedCheck });
    this.#generated = new GeneratedSecrets({
      ...options,
      unchangedCheck: this.#unchangedCheck,
      formerSecrets: this.#formerSecrets,
    });
  }

  forget(uid: string): void {
    this.#generated.forget(uid);
    this.#unchangedCheck.forget(uid);
  }

  /** @throws KubernetesError, StaleReadError and LeadershipLostError; the next call continues from the writes so far */
  async reconcileClientSecret(key: string, object: KubernetesObject): Promise<StoredOutcome> {
    const client = credentialClientOf(object);
    const verifiers = this.#options.verifiers.of(client);
    const isNew = !verifiers.isThere;
    try {
      const outcome = await this.#reconcile(key, object, verifiers).catch(async (error: unknown) => {
        if (!isNew || !isAlreadyExists(error)) throw error;
        // The watch is behind, or does not list it: one from a backup may lack labels.
        await verifiers.read();
        return await this.#reconcile(key, object, verifiers);
      });
      return { ...outcome, state: verifiers.state };
    } catch (error) {
      const facts = { secret: () => 'withheld' as const, faults: [accessFault(error, client.namespace)] };
      return { facts, done: 'kept', requeueAfter: REFUSED_MILLISECONDS, state: verifiers.state };
    }
  }

  async #reconcile(key: string, object: KubernetesObject, verifiers: VerifierSecret): Promise<CredentialOutcome> {
    const watched = this.#subject(key, object, verifiers);
    const secret = this.#metadataFor(object);
    const nothing: CredentialOutcome = { facts: { secret }, done: 'kept', requeueAfter: undefined };
    // A refused client keeps its credentials for when it is accepted again; it gets no new ones.
    if (watched === undefined) return nothing;
    if (!SECRET_METHODS.includes(watched.manifest.spec.auth.method)) {
      // First the Secrets: their names are written down beside the verifiers, which are no longer accepted.
      await this.#formerSecrets.remove(watched);
      return { ...nothing, facts: { secret, ...(await this.#identities.reconcile(watched)) } };
    }
    const unchanged = this.#unchanged(watched);
    if (unchanged !== undefined) return { ...nothing, ...unchanged };
    // A new client has none: the POST shows whether that is so.
    if (verifiers.isThere || this.#unchangedCheck.wasReconciled(watched)) await verifiers.read();
    const subject = this.#subject(key, object, verifiers);
    return subject === undefined ? nothing : { ...nothing, ...(await this.#reconcileSecret(subject)) };
  }

  async #reconcileSecret(subject: CredentialSubject): Promise<Partial<CredentialOutcome>> {
    const { manifest, verdict, verifiers, state } = subject;
    if (state !== undefined && !verifiers.isListed) await verifiers.put(state);
    const unchanged = this.#unchanged(subject);
    if (unchanged !== undefined) return unchanged;
    if (!hasGeneratedSecret(manifest.spec)) return await this.#reconcileExisting(subject);
    const refused = verdict.conditions.find(({ type, status }) => type === 'CredentialsReady' && status === 'False');
    if (refused?.reason === 'SecretNotOwned') return await this.#generated.endWithGrace(subject);
    return refused === undefined ? await this.#generated.reconcile(subject) : {};
  }

  /**
   * Undefined for a client that is refused.
   * @throws StaleReadError when the client changed during a read: the change has a reconcile of its own
   */
  #subject(key: string, object: KubernetesObject, verifiers: VerifierSecret): CredentialSubject | undefined {
    const { clients } = this.#options;
    const { state } = verifiers;
    if (clients.get(key)?.manifest !== object) throw new StaleReadError(`OAuthClient ${key}`);
    const facts = { secret: this.#metadataFor(object), ...PENDING, ...storedFacts(state, this.#now) };
    const verdict = clients.verdict(key, facts);
    const { manifest } = verdict;
    if (manifest === undefined || verdict.conditions[0]?.status !== 'True') return undefined;
    return { key, object, client: credentialClientOf(object), manifest, verdict, verifiers, state };
  }

  #unchanged(subject: CredentialSubject): Partial<CredentialOutcome> | undefined {
    if (subject.verifiers.isThere && !subject.verifiers.isListed) return undefined;
    const unchanged = this.#unchangedCheck.unchanged(subject, this.#secretVersion(subject), this.#now);
    if (unchanged === undefined) return undefined;
    const { withheld, requeueAfter } = unchanged;
    return { ...(withheld !== undefined && { facts: { secret: () => withheld } }), requeueAfter };
  }

  /**
   * A Secret that the owner provides: its verifiers are stored as they are. The manifest of this reconcile applies; a
   * change of the client during the read has a reconcile of its own.
   */
  async #reconcileExisting(subject: CredentialSubject): Promise<CredentialOutcome> {
    const { object, client, manifest, verdict, verifiers, state } = subject;
    const { api, clientExists } = this.#options;
    const name = clientSecretName(client.name, manifest.spec);
    const found = await api.get(SECRETS, { namespace: client.namespace, name });
    const secret = () => found as ReferencedSecret | undefined;
    // The client was deleted during the read, and its verifier Secret with it: a write now would leave an orphan.
    if (!clientExists(client.uid)) return { facts: { secret }, done: 'kept', requeueAfter: undefined };
    const credentials = existingSecret(verdict.object, manifest.spec, { secret, verifiersOf: () => [] });
    if (credentials.state !== 'ready' || found === undefined) await verifiers.clear(name);
    else {
      const at = { now: this.#now, requests: rotationRequests(object) };
      const next = existingCredentials(state, credentials.verifiers, at);
      if (next !== undefined) await verifiers.put(next);
      const left = { ...subject, state: next ?? state };
      await verifiers.writeDown(await this.#formerSecrets.remove(left));
      const withheld = withheldForm(manifest.spec, found);
      this.#unchangedCheck.record(left, found.metadata.resourceVersion, { withheld });
    }
    return { facts: { secret }, done: 'kept', requeueAfter: undefined };
  }

  /**
   * The Secrets as the cache has them, without data and owners. One that the client may adopt is treated as missing. The
   * value of an `Existing` Secret is known by the stored verifiers.
   */
  #metadataFor(object: KubernetesObject): References['secret'] {
    const client = credentialClientOf(object);
    const { auth } = fieldsOf(fieldsOf(object).spec);
    const isExisting = fieldsOf(fieldsOf(auth).clientSecret).source === 'Existing';
    return (namespace, name) => {
      const found = this.#options.secrets.get(`${namespace}/${name}`);
      if (found === undefined) return undefined;
      if (isExisting) return 'withheld';
      return ownershipOf(found.metadata, client, this.#options.clientExists) === 'orphan' ? undefined : found;
    };
  }

  #secretVersion({ client, manifest }: CredentialSubject): string | undefined {
    const name = clientSecretName(client.name, manifest.spec);
    return this.#options.secrets.get(`${client.namespace}/${name}`)?.metadata.resourceVersion;
  }

  get #now(): number {
    return this.#options.clock.now();
  }
}

const PENDING: Pick<ClientFacts, 'programmed'> = {
  programmed: { status: 'Unknown', reason: 'Pending', message: 'Not reconciled yet.' },
};
