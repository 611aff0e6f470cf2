// What a token server keeps of an OAuthClient: which object it is, and what was read of it. There may be a hundred thousand,
// so it is one flat object that answers as its own metadata.

import { ClientReader, type ClientReading } from '../admission/clients/client-reader.ts';
import { classOf, type ObjectIdentity } from '../admission/kinds/manifest.ts';
import {
  apiVersionOf,
  type KubernetesObject,
  keptVersion,
  OAUTH_CLIENTS,
  type ObjectMeta,
  splitKey,
} from '../kubernetes/objects/resources.ts';

/** An OAuthClient as a reflector keeps it. */
export class KeptClient implements KubernetesObject, ObjectMeta, ObjectIdentity {
  readonly [field: string]: unknown;
  readonly namespace: string;
  readonly uid: string;
  readonly generation: number;
  declare readonly deletionTimestamp?: string;
  /** Undefined for one of another class, of which nothing is kept. */
  readonly reading: ClientReading | undefined;
  /** The store's own, so that it is there once. */
  readonly key: string;
  readonly #version: string | number;
  /** Whole seconds, rounded so that they are known to be whole, take no room of their own. */
  readonly #createdAtSeconds: number;

  constructor(key: string, namespace: string, metadata: ObjectMeta, reading: ClientReading | undefined) {
    this.key = key;
    this.namespace = namespace;
    this.uid = metadata.uid;
    this.#version = keptVersion(metadata.resourceVersion);
    this.generation = metadata.generation ?? 1;
    if (metadata.deletionTimestamp !== undefined) this.deletionTimestamp = metadata.deletionTimestamp;
    this.reading = reading;
    this.#createdAtSeconds = Math.floor(Date.parse(metadata.creationTimestamp) / 1000);
  }

  get apiVersion(): string {
    return apiVersionOf(OAUTH_CLIENTS);
  }

  get kind(): string {
    return OAUTH_CLIENTS.kind;
  }

  get metadata(): ObjectMeta {
    return this;
  }

  get name(): string {
    return splitKey(this.key)[1];
  }

  get resourceVersion(): string {
    return String(this.#version);
  }

  /** In seconds: milliseconds would take room of their own, too, wherever they are kept. */
  get createdAt(): number {
    return this.#createdAtSeconds;
  }

  get creationTimestamp(): string {
    return new Date(this.#createdAtSeconds * 1000).toISOString();
  }
}

/** Keeps OAuthClients of one class. Namespaces, of which there are few, are kept once. */
export function clientKeeper(className: string): (object: KubernetesObject, key: string) => KeptClient {
  const reader = new ClientReader();
  const namespaces = new Map<string, string>();
  const once = (namespace: string) => {
    const known = namespaces.get(namespace);
    if (known === undefined) namespaces.set(namespace, namespace);
    return known ?? namespace;
  };
  return (object, key) => {
    const { apiVersion, kind, metadata, spec } = object;
    const { name, namespace = '', uid } = metadata;
    const isOurs = classOf(object) === className;
    const reading = isOurs ? reader.read({ apiVersion, kind, metadata: { name, namespace, uid }, spec }) : undefined;
    return new KeptClient(key, once(namespace), metadata, reading);
  };
}

/** One of this class. */
export type ReadableClient = KeptClient & { readonly reading: ClientReading };

/** Whether it is of this class and not being deleted. */
export function isOurs(object: KubernetesObject): object is ReadableClient {
  return object instanceof KeptClient && object.reading !== undefined && object.deletionTimestamp === undefined;
}
