// The OAuthClients of the token server's class: the judgement of each, the uniqueness rules among all, and the registry
// that follows. A change is judged alone; the claims find the other clients that it affects. All of it is synchronous;
// registry-sync.ts schedules the judgements.

import { type ClientVerifiers, livingVerifiers } from '../admission/client-secrets/client-verifier.ts';
import { type AdmissionContext, clientVerdict, judgeRead } from '../admission/clients/admit-client.ts';
import { ClientUniqueness, claimOf } from '../admission/clients/client-uniqueness.ts';
import type { DefaultPolicy } from '../admission/kinds/client-policy.ts';
import { matchesSelector } from '../admission/policies/label-selector.ts';
import type { OwnerOf, Policy } from '../admission/policies/policy-violations.ts';
import type { References } from '../admission/references/references.ts';
import type { KubernetesObject } from '../kubernetes/objects/resources.ts';
import { sourceOf } from '../kubernetes/objects/source-object.ts';
import { GRANT_TYPES } from '../oauth/grants/index.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import { KeyRing } from '../oauth/registry/keys.ts';
import { Registry, type RegistryDraft, type RegistryParts } from '../oauth/registry/registry.ts';
import { AdmittedClient, reasonOf, type ServedState } from './admitted-client.ts';
import { isReadableClient, type ReadableClient } from './cached-objects.ts';
import { Refusals } from './refusals.ts';

export interface AdmittedClientsOptions {
  readonly issuer: string;
  readonly releaseNamespace: string;
  readonly defaultPolicy: DefaultPolicy;
  /** The wire names of the client authentication methods that this install has. */
  readonly supportedAuthMethods: readonly string[];
  readonly ownerOf: OwnerOf;
  /** See {@link References.namespaceLabels}. */
  readonly labelsOf: References['namespaceLabels'];
  /** The contents of the verifier Secret of a client. */
  readonly verifiersOf: (uid: string) => ClientVerifiers | undefined;
  readonly clock: Clock;
}

/** A client that is accepted, refused or removed, for the audit stream. */
export interface ClientChange {
  readonly clientId: string;
  readonly kind: 'accepted' | 'refused' | 'removed';
  /** Why the client is refused. */
  readonly reason?: string;
}

export class AdmittedClients {
  readonly #options: AdmittedClientsOptions;
  readonly #context: AdmissionContext;
  /** The verifiers of the client that is being judged. */
  #verifiers: ClientVerifiers | undefined;
  readonly #clients = new Map<string, AdmittedClient>();
  /** The uids of the clients that introspect for an API: few, while a change of any resource may concern them. */
  readonly #introspecting = new Set<string>();
  readonly #claims = new ClientUniqueness<AdmittedClient>({ uidsDiffer: true });
  /** By namespace, with only the policies that select it. */
  readonly #contexts = new Map<string, AdmissionContext>();
  #policies: readonly Policy[] = [];
  readonly #refusals = new Refusals();
  #registry = new Registry([], new KeyRing([]), { refused: this.#refusals });
  #draft: RegistryDraft | undefined;
  /** Judged since the latest {@link publish}; may contain deleted clients. */
  #unpublished: AdmittedClient[] = [];
  /** How many of these are in the draft already. */
  #published = 0;
  readonly #changes: ClientChange[] = [];
  #refused = 0;

  constructor(options: AdmittedClientsOptions) {
    this.#options = options;
    this.#context = {
      issuer: options.issuer,
      unknownFields: 'ignore',
      reservedNamespace: options.releaseNamespace,
      policies: [],
      defaultPolicy: options.defaultPolicy,
      ownerOf: options.ownerOf,
      references: this.#references(),
      supportedGrantTypes: [...GRANT_TYPES.keys()],
      supportedAuthMethods: options.supportedAuthMethods,
      programmed: () => PROGRAMMED,
    };
  }

  /** How many clients are refused. */
  get refused(): number {
    return this.#refused;
  }

  uids(): Iterable<string> {
    return this.#clients.keys();
  }

  /** Stores an object; the caller judges it. One of another class, or one that is being deleted, is removed. */
  put(object: KubernetesObject): void {
    const { uid } = object.metadata;
    if (!isReadableClient(object)) {
      this.delete(uid);
      return;
    }
    const client = this.#clients.get(uid);
    if (client === undefined) this.#clients.set(uid, new AdmittedClient(object));
    else client.object = object;
    const { manifest } = object.read;
    if (manifest !== undefined && manifest.spec.resourceServer.audiences.length > 0) this.#introspecting.add(uid);
    else this.#introspecting.delete(uid);
  }

  delete(uid: string): void {
    const client = this.#clients.get(uid);
    if (client === undefined) return;
    this.#clients.delete(uid);
    this.#introspecting.delete(uid);
    this.#claims.delete(client);
    this.#refusals.delete(uid);
    client.isUnpublished = false;
    if (client.isRefused) this.#refused--;
    if (client.judged !== undefined) this.#changes.push({ clientId: client.clientId, kind: 'removed' });
    if (client.served !== undefined) this.#drafted().remove(uid);
  }

  /** @returns the uids of the clients to judge again */
  setPolicies(policies: readonly Policy[]): readonly string[] {
    const before = new Map(this.#policies.map((policy) => [policy.name, policy]));
    const after = new Map(policies.map((policy) => [policy.name, policy]));
    const changed = [...this.#policies, ...policies].filter(
      ({ name }) => JSON.stringify(before.get(name)) !== JSON.stringify(after.get(name)),
    );
    this.#policies = policies;
    if (changed.length === 0) return [];
    this.#contexts.clear();
    return this.#inNamespaces((namespace) => {
      const labels = this.#options.labelsOf(namespace);
      // Clients whose namespace is not observed yet are judged once it is.
      return (
        labels !== undefined && changed.some(({ namespaceSelector }) => matchesSelector(namespaceSelector, labels))
      );
    });
  }

  /** The labels of a namespace changed. @returns the uids of the clients to judge again */
  relabelled(namespace: string): readonly string[] {
    this.#contexts.delete(namespace);
    return this.#inNamespaces((candidate) => candidate === namespace);
  }

  /** The accepted resources in these namespaces changed. @returns the uids of the clients to judge again */
  resourcesChanged(namespaces: ReadonlySet<string>): readonly string[] {
    if (namespaces.size === 0) return [];
    return [...this.#introspecting].filter((uid) => namespaces.has(this.#clients.get(uid)?.namespace ?? ''));
  }

  /** Judges one client; {@link settle} completes it. Does nothing for a deleted one. */
  judge(uid: string): void {
    const known = this.#clients.get(uid);
    if (known === undefined) return;
    const { object } = known;
    const verifiers = this.#options.verifiersOf(uid);
    const findings = this.#findings(object, verifiers);
    this.#claims.put(known, claimOf(findings));
    const { client, ...verdict } = clientVerdict(findings);
    const isSame = known.judged === object && known.verifiers === verifiers && !hasExpiry(verifiers);
    const isAdmittedSo = client?.admittedBy === known.client?.admittedBy && client?.maxState === known.client?.maxState;
    // The same client object is reused: the registry then need not change.
    const served = isSame && isAdmittedSo ? known.client : client;
    known.judge(verifiers, { clientId: findings.clientId, reason: reasonOf(verdict), client: served });
    this.#mark(known);
  }

  /** Applies the uniqueness rules to the judged clients. */
  settle(): void {
    for (const client of this.#claims.settle()) this.#mark(client);
  }

  /**
   * Puts the judged clients into the draft of the next registry until a deadline.
   * @param end the deadline, on the clock of `performance.now()`
   * @returns whether all of them are in it
   */
  serveUntil(end: number): boolean {
    for (; this.#published < this.#unpublished.length; this.#published++) {
      if (performance.now() > end) return false;
      const client = this.#unpublished[this.#published];
      if (client?.isUnpublished) this.#serve(client);
    }
    this.#unpublished = [];
    this.#published = 0;
    return true;
  }

  /** Publishes the judged clients. @returns the registry, and the changes since the previous one */
  publish(
    keys: KeyRing,
    parts: RegistryParts,
  ): { readonly registry: Registry; readonly changes: readonly ClientChange[] } {
    this.serveUntil(Infinity);
    const before = this.#registry;
    const isSame = keys === before.keys && parts.resources === before.resources && parts.providers === before.providers;
    if (this.#draft !== undefined || !isSame) this.#registry = this.#drafted().finish(keys, parts);
    this.#draft = undefined;
    return { registry: this.#registry, changes: this.#changes.splice(0) };
  }

  /** The state that the present registry serves or refuses of a client. */
  servedState(uid: string): ServedState | undefined {
    return this.#clients.get(uid)?.servedState;
  }

  #mark(client: AdmittedClient): void {
    if (client.isUnpublished) return;
    client.isUnpublished = true;
    this.#unpublished.push(client);
  }

  #serve(known: AdmittedClient): void {
    const { judged, clientId, verifiers, served: before, isPublished } = known;
    known.isUnpublished = false;
    if (judged === undefined) return;
    const { uid } = judged.metadata;
    const amongAll = this.#claims.faultsOf(known);
    const client = amongAll.length === 0 ? known.client : undefined;
    if (known.isRefused) this.#refused--;
    known.publish(judged, client);
    if (known.isRefused) this.#refused++;
    if (client !== before) {
      if (client === undefined) this.#drafted().remove(uid);
      else this.#drafted().put(client);
    }
    if (client === undefined) {
      const reason =
        amongAll.length === 0 ? known.reason : reasonOf(clientVerdict(this.#findings(judged, verifiers), amongAll));
      this.#refusals.put(uid, clientId, reason);
      if (before !== undefined || !isPublished) this.#changes.push({ clientId, kind: 'refused', reason });
      return;
    }
    this.#refusals.delete(uid);
    if (before === undefined) this.#changes.push({ clientId, kind: 'accepted' });
  }

  #drafted(): RegistryDraft {
    this.#draft ??= this.#registry.draft();
    return this.#draft;
  }

  #findings(object: ReadableClient, verifiers: ClientVerifiers | undefined) {
    this.#verifiers = verifiers;
    const source = sourceOf(object);
    return judgeRead(source, object.read, this.#contextIn(source.namespace));
  }

  #contextIn(namespace: string): AdmissionContext {
    const known = this.#contexts.get(namespace);
    if (known !== undefined) return known;
    const labels = this.#options.labelsOf(namespace);
    // Until the namespace is observed no policy selects it.
    if (labels === undefined) return this.#context;
    const policies = this.#policies.filter(({ namespaceSelector }) => matchesSelector(namespaceSelector, labels));
    const context = { ...this.#context, policies };
    this.#contexts.set(namespace, context);
    return context;
  }

  #inNamespaces(isAffected: (namespace: string) => boolean): readonly string[] {
    const answers = new Map<string, boolean>();
    const uids: string[] = [];
    for (const [uid, { namespace }] of this.#clients) {
      let answer = answers.get(namespace);
      if (answer === undefined) {
        answer = isAffected(namespace);
        answers.set(namespace, answer);
      }
      if (answer) uids.push(uid);
    }
    return uids;
  }

  #references(): References {
    const { labelsOf, clock } = this.#options;
    return {
      secret: () => 'withheld',
      configMap: () => 'withheld',
      jwksOf: () => this.#verifiers?.jwks,
      // The controller stores the uids of those that exist.
      serviceAccountUid: (_, name) =>
        this.#verifiers?.serviceAccounts?.find((account) => account.name === name)?.uid ?? 'withheld',
      namespaceLabels: labelsOf,
      verifiersOf: () => (this.#verifiers === undefined ? [] : livingVerifiers(this.#verifiers, clock.now())),
    };
  }
}

const PROGRAMMED = { status: 'True', reason: 'Programmed', message: 'Served by this process.' } as const;

/** Whether the same verifiers may give another client later. */
function hasExpiry(verifiers: ClientVerifiers | undefined): boolean {
  return verifiers?.verifiers.some(({ expiresAt }) => expiresAt !== undefined) ?? false;
}
