// What a token server keeps of a verifier Secret, of which there are as many as clients: one flat object that answers as its
// own metadata, and the verifiers in as little room as they need.

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
  /** The store's own, so that it is there once. */
  readonly #key: string;
  readonly #version: string | number;
  /** Whole seconds, rounded so that they are known to be whole, take no room of their own. */
  readonly #createdAtSeconds: number;
  /** Most clients have one verifier, without end: as text, a character a byte, because a buffer takes four times the room. */
  readonly #kept: string | readonly AcceptedVerifier[];
  /** The revision of the only one. */
  readonly #newest: number;

  constructor(key: string, metadata: ObjectMeta, said: ClientVerifiers | SingleVerifier) {
    this.uid = metadata.uid;
    this.#version = keptVersion(metadata.resourceVersion);
    this.revision = said.revision;
    this.#key = key;
    this.#createdAtSeconds = Math.floor(Date.parse(metadata.creationTimestamp) / 1000);
    this.#kept = 'verifier' in said ? said.verifier : said.verifiers;
    this.#newest = 'verifier' in said ? said.verifierRevision : 0;
  }

  /** The only verifier, where it does not end, a character a byte: whoever keeps it too need not keep it twice. */
  get text(): string | undefined {
    return typeof this.#kept === 'string' ? this.#kept : undefined;
  }

  get verifiers(): readonly AcceptedVerifier[] {
    if (typeof this.#kept !== 'string') return this.#kept;
    return [{ verifier: Buffer.from(this.#kept, 'latin1'), revision: this.#newest }];
  }

  /** When verifiers end. Epoch milliseconds. */
  get ends(): readonly number[] {
    return typeof this.#kept === 'string' ? [] : this.#kept.flatMap(({ expiresAt }) => expiresAt ?? []);
  }

  /** Of which client they are. */
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
