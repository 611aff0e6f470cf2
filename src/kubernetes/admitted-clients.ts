// The OAuthClients of this install as a token server has judged them: what each came to by itself, what the set of all says
// of it, and the registry that follows. A change is judged alone; whatever else it touches is found by the claims. Nothing
// here waits: when what is judged is decided in registry-sync.ts.

import { type AdmissionContext, type ClientVerdict, clientVerdict, judgeRead } from '../admission/admit-client.ts';
import { ClientClaims, claimOf } from '../admission/client-claims.ts';
import type { DefaultPolicy } from '../admission/client-policy.ts';
import { specOf } from '../admission/client-reader.ts';
import { type ClientVerifiers, livingVerifiers } from '../admission/client-verifier.ts';
import { selects } from '../admission/label-selector.ts';
import type { OAuthClientSpec } from '../admission/oauth-client.ts';
import type { Policy } from '../admission/policy-violations.ts';
import type { References } from '../admission/references.ts';
import type { Client } from '../oauth/client.ts';
import { CLIENT_AUTH_METHODS } from '../oauth/client-auth/index.ts';
import { GRANT_TYPES } from '../oauth/grants/index.ts';
import { KeyRing } from '../oauth/keys.ts';
import type { Clock } from '../oauth/ports.ts';
import { Registry, type RegistryDraft } from '../oauth/registry.ts';
import { isOurs, type ReadableClient } from './kept-client.ts';
import { KeptVerifiers } from './kept-verifiers.ts';
import type { KubernetesObject } from './resources.ts';
import { ServedClient } from './served-client.ts';

export interface AdmittedClientsOptions {
  readonly releaseNamespace: string;
  readonly defaultPolicy: DefaultPolicy;
  /** See {@link References.namespaceLabels}. */
  readonly labelsOf: References['namespaceLabels'];
  /** What the verifier Secret of a client says. */
  readonly verifiersOf: (uid: string) => ClientVerifiers | undefined;
  readonly clock: Clock;
}

/** What became of a client, for the audit stream. */
export interface ClientChange {
  readonly clientId: string;
  readonly kind: 'accepted' | 'refused' | 'removed';
  /** Why it is refused. */
  readonly reason?: string;
}

/** What of a client is served. */
export interface ServedState {
  readonly generation: number;
  readonly secretRevision: number | undefined;
}

interface Entry {
  object: ReadableClient;
  /** What it came to by itself; undefined until it was judged. */
  alone: Judged | undefined;
  /** Undefined when it is refused. */
  served: Client | undefined;
  /** What `served` follows from; undefined until the first {@link AdmittedClients.publish}. */
  published: Judged | undefined;
  /** Whether more was judged since. */
  isUnpublished: boolean;
}

interface Judged {
  /** What it was judged by: with the same two the same client comes of it, whatever the policies say. */
  readonly object: ReadableClient;
  readonly verifiers: ClientVerifiers | undefined;
  readonly clientId: string;
  readonly client: Client | undefined;
  /** Of its `Ready`. */
  readonly reason: string;
}

export class AdmittedClients {
  readonly #options: AdmittedClientsOptions;
  readonly #context: AdmissionContext;
  /** Those of the client that is being judged. */
  #verifiers: ClientVerifiers | undefined;
  readonly #entries = new Map<string, Entry>();
  readonly #claims = new ClientClaims<string>();
  /** For each manifest that several share, a client of it. */
  readonly #like = new WeakMap<OAuthClientSpec, Client>();
  /** By namespace, with those policies only that are about it. */
  readonly #contexts = new Map<string, AdmissionContext>();
  #policies: readonly Policy[] = [];
  #registry = new Registry([], new KeyRing([]));
  #draft: RegistryDraft | undefined;
  /** Judged since the latest {@link publish}, and some that are gone. */
  #unpublished: Entry[] = [];
  /** Of these so many are served already. */
  #published = 0;
  readonly #changes: ClientChange[] = [];
  #refused = 0;

  constructor(options: AdmittedClientsOptions) {
    this.#options = options;
    this.#context = {
      unknownFields: 'ignore',
      releaseNamespace: options.releaseNamespace,
      releaseNamespaceReserved: true,
      policies: [],
      defaultPolicy: options.defaultPolicy,
      references: this.#references(),
      supportedGrantTypes: [...GRANT_TYPES.keys()],
      supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
      programmed: () => PROGRAMMED,
      soundInCommon: new WeakSet(),
    };
  }

  /** How many clients the last judgement refused. */
  get refused(): number {
    return this.#refused;
  }

  uids(): Iterable<string> {
    return this.#entries.keys();
  }

  /** Takes an object in; it is for the caller to have it judged. Whatever must not be served is as good as gone. */
  put(object: KubernetesObject): void {
    const { uid } = object.metadata;
    if (!isOurs(object)) {
      this.delete(uid);
      return;
    }
    const entry = this.#entries.get(uid);
    if (entry === undefined) {
      const [alone, served, published] = [undefined, undefined, undefined];
      this.#entries.set(uid, { object, alone, served, published, isUnpublished: false });
    } else entry.object = object;
  }

  delete(uid: string): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    this.#entries.delete(uid);
    this.#claims.delete(uid);
    entry.isUnpublished = false;
    this.#count(entry, -1);
    if (entry.alone !== undefined) this.#changes.push({ clientId: entry.alone.clientId, kind: 'removed' });
    if (entry.served !== undefined) this.#drafted().remove(uid);
  }

  /** @returns the clients that have to be judged anew */
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
      // Whoever waits for its namespace is judged when that is there.
      return labels !== undefined && changed.some(({ namespaceSelector }) => selects(namespaceSelector, labels));
    });
  }

  /** The labels of a namespace are not what they were. @returns the clients that have to be judged anew */
  relabelled(namespace: string): readonly string[] {
    this.#contexts.delete(namespace);
    return this.#inNamespaces((candidate) => candidate === namespace);
  }

  /** Judges a client by itself; {@link settle} completes it. Does nothing for one that is gone. */
  judge(uid: string): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    const { object, alone: before } = entry;
    const verifiers = this.#options.verifiersOf(uid);
    const verdict = this.#findings(object, verifiers);
    this.#claims.put(object.uid, claimOf(verdict));
    const isSame = before?.object === object && before.verifiers === verifiers && before.client !== undefined;
    const { client, clientId, conditions } = clientVerdict(verdict);
    // The same object serves on: the registry then need not change.
    const servesOn = isSame && client !== undefined && !hasExpiry(verifiers);
    entry.alone = {
      object,
      verifiers,
      clientId,
      client: servesOn ? before.client : client && this.#sharing(client, object, verifiers),
      reason: reasonOf({ conditions }),
    };
    this.#mark(entry);
  }

  /** Lets the set of all say what it makes of those that were judged. */
  settle(): void {
    for (const uid of this.#claims.settle()) this.#mark(this.#entries.get(uid));
  }

  /**
   * Puts what was settled into the next registry, as far as there is time.
   * @param end of `performance.now()`
   * @returns whether that was all
   */
  serveUntil(end: number): boolean {
    for (; this.#published < this.#unpublished.length; this.#published++) {
      if (performance.now() > end) return false;
      const entry = this.#unpublished[this.#published];
      if (entry?.isUnpublished) this.#serve(entry);
    }
    this.#unpublished = [];
    this.#published = 0;
    return true;
  }

  /** Serves what was settled. @returns the registry, and what became of whom since the one before */
  publish(keys: KeyRing): { readonly registry: Registry; readonly changes: readonly ClientChange[] } {
    this.serveUntil(Infinity);
    if (this.#draft !== undefined || keys !== this.#registry.keys) this.#registry = this.#drafted().finish(keys);
    this.#draft = undefined;
    return { registry: this.#registry, changes: this.#changes.splice(0) };
  }

  /** What of a client the present registry serves, or refuses. */
  servedState(uid: string): ServedState | undefined {
    const published = this.#entries.get(uid)?.published;
    return published && { generation: published.object.generation, secretRevision: published.verifiers?.revision };
  }

  #mark(entry: Entry | undefined): void {
    if (entry === undefined || entry.isUnpublished) return;
    entry.isUnpublished = true;
    this.#unpublished.push(entry);
  }

  #serve(entry: Entry): void {
    entry.isUnpublished = false;
    if (entry.alone === undefined) return;
    const { object, clientId, client: alone } = entry.alone;
    const { uid } = object;
    const amongAll = this.#claims.faultsOf(uid);
    const client = amongAll.length === 0 ? alone : undefined;
    const isFirst = entry.published === undefined;
    if (!isFirst) this.#count(entry, -1);
    const wasServed = entry.served;
    entry.published = entry.alone;
    entry.served = client;
    this.#count(entry, 1);
    if (client !== wasServed) {
      if (client === undefined) this.#drafted().remove(uid);
      else this.#drafted().put(client);
    }
    if (client === undefined && (wasServed !== undefined || isFirst)) {
      const reason =
        amongAll.length === 0
          ? entry.alone.reason
          : reasonOf(clientVerdict(this.#findings(object, entry.alone.verifiers), amongAll));
      this.#changes.push({ clientId, kind: 'refused', reason });
    } else if (client !== undefined && wasServed === undefined) this.#changes.push({ clientId, kind: 'accepted' });
  }

  #count({ published, served }: Entry, by: 1 | -1): void {
    if (published !== undefined && served === undefined) this.#refused += by;
  }

  #drafted(): RegistryDraft {
    this.#draft ??= this.#registry.draft();
    return this.#draft;
  }

  #findings(object: ReadableClient, verifiers: ClientVerifiers | undefined) {
    const { reading, namespace } = object;
    this.#verifiers = verifiers;
    const read =
      reading.shared === undefined
        ? { manifest: undefined, faults: reading.faults }
        : { manifest: { spec: specOf(reading) }, faults: [], common: reading.shared };
    return judgeRead(object, read, this.#contextIn(namespace));
  }

  /** The same client, made of what others have too. */
  #sharing(client: Client, { reading: { shared } }: ReadableClient, verifiers: ClientVerifiers | undefined): Client {
    if (shared === undefined) return client;
    const like = this.#like.get(shared) ?? client;
    if (like === client) this.#like.set(shared, client);
    return new ServedClient(client, like, verifiers instanceof KeptVerifiers ? verifiers.text : undefined);
  }

  #contextIn(namespace: string): AdmissionContext {
    const known = this.#contexts.get(namespace);
    if (known !== undefined) return known;
    const labels = this.#options.labelsOf(namespace);
    // Nobody is judged by policies there before that is known.
    if (labels === undefined) return this.#context;
    const policies = this.#policies.filter(({ namespaceSelector }) => selects(namespaceSelector, labels));
    const context = { ...this.#context, policies };
    this.#contexts.set(namespace, context);
    return context;
  }

  #inNamespaces(isMeant: (namespace: string) => boolean): readonly string[] {
    const answers = new Map<string, boolean>();
    const uids: string[] = [];
    for (const [uid, { object }] of this.#entries) {
      const { namespace } = object;
      let answer = answers.get(namespace);
      if (answer === undefined) {
        answer = isMeant(namespace);
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
      // The controller looks them up and refuses to make a credential of what is not there.
      hasConfigMap: () => true,
      hasServiceAccount: () => true,
      namespaceLabels: labelsOf,
      verifiersOf: () => (this.#verifiers === undefined ? [] : livingVerifiers(this.#verifiers, clock.now())),
    };
  }
}

const PROGRAMMED = { status: 'True', reason: 'Programmed', message: 'Served by this process.' } as const;

function reasonOf({ conditions }: Pick<ClientVerdict, 'conditions'>): string {
  return conditions.at(-1)?.reason ?? 'Pending';
}

/** Whether the very same verifiers may come to another client later. */
function hasExpiry(verifiers: ClientVerifiers | undefined): boolean {
  return verifiers?.verifiers.some(({ expiresAt }) => expiresAt !== undefined) ?? false;
}
