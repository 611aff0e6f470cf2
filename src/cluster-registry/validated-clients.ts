// The OAuthClients of the token server's class, and their verdicts (client-set.ts), which served-clients.ts publishes. All of
// it is synchronous; registry-sync.ts decides when each client is validated.

import { activeVerifiers, type ClientVerifiers } from '../admission/client-secrets/client-verifier.ts';
import type { ClientVerdict } from '../admission/clients/admit-client.ts';
import { type ClientFacts, ClientSet, type ClientSetOptions } from '../admission/clients/client-set.ts';
import { type KubernetesObject, objectKey } from '../kubernetes/objects/resources.ts';
import { type ClusterSource, sourceOf } from '../kubernetes/objects/source-object.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { Client } from '../oauth/registry/client.ts';
import type { KeyRing } from '../oauth/registry/keys.ts';
import type { RegistryParts } from '../oauth/registry/registry.ts';
import { isReadableClient, type ReadableClient } from './cached-objects.ts';
import { ServedClients } from './served-clients.ts';

type Source = ClusterSource<ReadableClient>;

export interface ValidatedClientsOptions
  extends Pick<
    ClientSetOptions<Source>,
    'issuer' | 'defaultPolicy' | 'supportedAuthMethods' | 'ownerOf' | 'policies' | 'namespaceLabels'
  > {
  readonly releaseNamespace: string;
  /** The contents of the verifier Secret of a client. */
  readonly verifiersOf: (uid: string) => ClientVerifiers | undefined;
  readonly clock: Clock;
}

/** The generation and the secret revision of a client that the registry holds. */
export interface ServedState {
  readonly generation: number;
  readonly secretRevision: number | undefined;
}

/** One client; flat, because there may be a hundred thousand. */
interface ValidatedClient {
  source: Source;
  /** The source of the latest verdict; undefined before the first. It and the same verifiers give the same client. */
  validated: Source | undefined;
  verifiers: ClientVerifiers | undefined;
  clientId: string;
  /** The client by its own verdict; undefined when that refuses it. */
  client: Client | undefined;
  /** The reason of its own condition `Ready`. */
  reason: string;
  /** The generation that is served or refused; undefined before the first publication. */
  generation: number | undefined;
  secretRevision: number | undefined;
}

const PROGRAMMED = { status: 'True', reason: 'Programmed', message: 'Served by this process.' } as const;

export class ValidatedClients {
  readonly #options: ValidatedClientsOptions;
  readonly #set: ClientSet<Source>;
  /** By uid. */
  readonly #clients = new Map<string, ValidatedClient>();
  /** The uids of the clients that introspect for an API: few, while a change of any resource may concern them. */
  readonly #introspecting = new Set<string>();
  readonly #served = new ServedClients();
  /** The clients whose latest verdict is not in the next registry yet. */
  readonly #unpublished = new Set<ValidatedClient>();

  constructor(options: ValidatedClientsOptions) {
    this.#options = options;
    this.#set = new ClientSet({
      ...options,
      unknownFields: 'ignore',
      reservedNamespace: options.releaseNamespace,
      factsOf: (uid) => factsOf(options.verifiersOf(uid), options.clock.now()),
      read: ({ manifest }) => manifest.read,
      uidsDiffer: true,
    });
  }

  /** How many clients are refused. */
  get refused(): number {
    return this.#served.refused;
  }

  uids(): Iterable<string> {
    return this.#clients.keys();
  }

  /** Stores an object, which is served once it is validated. One of another class, or one that is being deleted, is removed. */
  put(object: KubernetesObject): void {
    const { uid } = object.metadata;
    if (!isReadableClient(object)) {
      this.delete(uid);
      return;
    }
    const known = this.#clients.get(uid);
    const source = sourceOf(object);
    if (known === undefined) this.#clients.set(uid, unvalidated(source));
    else known.source = source;
    const { manifest } = object.read;
    if (manifest !== undefined && manifest.spec.resourceServer.audiences.length > 0) this.#introspecting.add(uid);
    else this.#introspecting.delete(uid);
  }

  delete(uid: string): void {
    const client = this.#clients.get(uid);
    if (client === undefined) return;
    this.#clients.delete(uid);
    this.#introspecting.delete(uid);
    this.#set.delete(objectKey(client.source));
    this.#unpublished.delete(client);
    if (client.validated !== undefined) this.#served.remove(uid, client.clientId);
  }

  /** See {@link ClientSet.revalidate}. @returns the uids of the clients to validate again */
  revalidate(namespace?: string): readonly string[] {
    return this.#set.revalidate(namespace).map(({ uid }) => uid);
  }

  /** The accepted resources in these namespaces changed. @returns the uids of the clients to validate again */
  resourcesChanged(namespaces: ReadonlySet<string>): readonly string[] {
    if (namespaces.size === 0) return [];
    return [...this.#introspecting].filter((uid) => namespaces.has(this.#clients.get(uid)?.source.namespace ?? ''));
  }

  /** Validates one client; {@link recompute} completes it. Does nothing for a deleted one. */
  validate(uid: string): void {
    const known = this.#clients.get(uid);
    if (known === undefined) return;
    const { source } = known;
    const verifiers = this.#options.verifiersOf(uid);
    this.#set.put(source);
    const { client, clientId, ...verdict } = this.#set.validate(objectKey(source));
    const isSame = known.validated === source && known.verifiers === verifiers && !hasExpiry(verifiers);
    const isAdmittedSo = client?.admittedBy === known.client?.admittedBy && client?.maxState === known.client?.maxState;
    known.validated = source;
    known.verifiers = verifiers;
    known.clientId = clientId;
    known.reason = reasonOf(verdict);
    // The same client object is reused: the registry then need not change.
    if (!isSame || !isAdmittedSo) known.client = client;
    this.#unpublished.add(known);
  }

  /** Applies the rules among all clients. */
  recompute(): void {
    for (const { uid } of this.#set.recompute()) {
      const client = this.#clients.get(uid);
      if (client !== undefined) this.#unpublished.add(client);
    }
  }

  /**
   * Puts the validated clients into the draft of the next registry until a deadline.
   * @param end the deadline, on the clock of `performance.now()`
   * @returns whether all of them are in it
   */
  serveUntil(end: number): boolean {
    for (const client of this.#unpublished) {
      if (performance.now() > end) return false;
      this.#unpublished.delete(client);
      this.#serve(client);
    }
    return true;
  }

  /** Publishes the validated clients. See {@link ServedClients.publish}. */
  publish(keys: KeyRing, parts: RegistryParts): ReturnType<ServedClients['publish']> {
    this.serveUntil(Infinity);
    return this.#served.publish(keys, parts);
  }

  /** The state that the present registry serves or refuses of a client; undefined before its first publication. */
  servedState(uid: string): ServedState | undefined {
    const { generation, secretRevision } = this.#clients.get(uid) ?? {};
    return generation === undefined ? undefined : { generation, secretRevision };
  }

  #serve(known: ValidatedClient): void {
    const { validated, clientId, client, verifiers } = known;
    if (validated === undefined) return;
    const key = objectKey(validated);
    const isAlone = this.#set.faultsAmongAll(key).length === 0;
    if (isAlone && client !== undefined) this.#served.accept(client);
    else this.#served.refuse(validated.uid, clientId, isAlone ? known.reason : reasonOf(this.#set.verdict(key)));
    known.generation = validated.generation;
    known.secretRevision = verifiers?.revision;
  }
}

function unvalidated(source: Source): ValidatedClient {
  return {
    source,
    validated: undefined,
    verifiers: undefined,
    clientId: '',
    client: undefined,
    reason: '',
    generation: undefined,
    secretRevision: undefined,
  };
}

/** The facts of a process that reads no object of a tenant: what the controller stored. */
function factsOf(verifiers: ClientVerifiers | undefined, now: number): ClientFacts {
  return {
    secret: () => 'withheld',
    configMap: () => 'withheld',
    // Of the accounts that exist.
    serviceAccountUid: (_, name) =>
      verifiers?.serviceAccounts?.find((account) => account.name === name)?.uid ?? 'withheld',
    verifiersOf: () => (verifiers === undefined ? [] : activeVerifiers(verifiers, now)),
    jwksOf: () => verifiers?.jwks,
    programmed: PROGRAMMED,
  };
}

/** The reason of the condition `Ready`. */
function reasonOf({ conditions }: Pick<ClientVerdict, 'conditions'>): string {
  return conditions.at(-1)?.reason ?? 'Pending';
}

/** Whether the same verifiers may give another client later. */
function hasExpiry(verifiers: ClientVerifiers | undefined): boolean {
  return verifiers?.verifiers.some(({ expiresAt }) => expiresAt !== undefined) ?? false;
}
