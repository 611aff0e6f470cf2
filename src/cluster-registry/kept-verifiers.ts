// The form in which a token server caches a verifier Secret. There are as many as clients, so it is one flat object
// that is its own metadata and holds the verifiers in little memory.

import {
  type AcceptedVerifier,
  type ClientVerifiers,
  clientUidIn,
  type SingleVerifier,
} from '../admission/client-secrets/client-verifier.ts';
import {
  apiVersionOf,
  type KubernetesObject,
  keptVersion,
  type ObjectMeta,
  SECRETS,
  splitKey,
} from '../kubernetes/objects/resources.ts';

export class KeptVerifiers implements KubernetesObject, ObjectMeta, ClientVerifiers {
  readonly [field: string]: unknown;
  readonly uid: string;
  readonly revision: number;
  /** The same string as the key of the store, so that it is in memory once. */
  readonly #key: string;
  readonly #version: string | number;
  /** In seconds: a value that the engine knows to be an integer needs no memory of its own. */
  readonly #createdAtSeconds: number;
  /** Most clients have one verifier without expiry: a latin1 string, because a buffer takes four times the memory. */
  readonly #kept: string | Pick<ClientVerifiers, 'verifiers' | 'jwks' | 'serviceAccounts'>;
  /** The revision of the only verifier. */
  readonly #newest: number;

  constructor(key: string, metadata: ObjectMeta, read: ClientVerifiers | SingleVerifier) {
    this.uid = metadata.uid;
    this.#version = keptVersion(metadata.resourceVersion);
    this.revision = read.revision;
    this.#key = key;
    this.#createdAtSeconds = Math.floor(Date.parse(metadata.creationTimestamp) / 1000);
    if ('verifier' in read) this.#kept = read.verifier;
    else {
      const { verifiers, jwks, serviceAccounts } = read;
      this.#kept = { verifiers, jwks, serviceAccounts };
    }
    this.#newest = 'verifier' in read ? read.verifierRevision : 0;
  }

  /** The only verifier as a latin1 string, to be shared; undefined for several, or one that expires. */
  get text(): string | undefined {
    return typeof this.#kept === 'string' ? this.#kept : undefined;
  }

  get verifiers(): readonly AcceptedVerifier[] {
    if (typeof this.#kept !== 'string') return this.#kept.verifiers;
    return [{ verifier: Buffer.from(this.#kept, 'latin1'), revision: this.#newest }];
  }

  get jwks(): ClientVerifiers['jwks'] {
    return typeof this.#kept === 'string' ? undefined : this.#kept.jwks;
  }

  get serviceAccounts(): ClientVerifiers['serviceAccounts'] {
    return typeof this.#kept === 'string' ? undefined : this.#kept.serviceAccounts;
  }

  /** When verifiers expire. Epoch milliseconds. */
  get ends(): readonly number[] {
    return typeof this.#kept === 'string' ? [] : this.#kept.verifiers.flatMap(({ expiresAt }) => expiresAt ?? []);
  }

  /** The uid of the client that the verifiers belong to. */
  get clientUid(): string {
    return clientUidIn(this.name);
  }

  get apiVersion(): string {
    return apiVersionOf(SECRETS);
  }

  get kind(): string {
    return SECRETS.kind;
  }

  get metadata(): ObjectMeta {
    return this;
  }

  get namespace(): string {
    return splitKey(this.#key)[0];
  }

  get name(): string {
    return splitKey(this.#key)[1];
  }

  get resourceVersion(): string {
    return String(this.#version);
  }

  get creationTimestamp(): string {
    return new Date(this.#createdAtSeconds * 1000).toISOString();
  }
}
