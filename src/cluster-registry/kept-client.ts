// The form in which a token server caches an OAuthClient: its identity and the parsed spec, of a refused one only the
// claims. There may be a hundred thousand, so it is one flat object that is its own metadata.

import { ClientReader, type ClientReading } from '../admission/clients/client-reader.ts';
import type { Fault } from '../admission/kinds/conditions.ts';
import { classOf, type ObjectIdentity } from '../admission/kinds/manifest.ts';
import {
  apiVersionOf,
  type KubernetesObject,
  keptVersion,
  OAUTH_CLIENTS,
  type ObjectMeta,
  splitKey,
} from '../kubernetes/objects/resources.ts';
import { GRANT_TYPES } from '../oauth/grants/index.ts';
import { type CachedReading, RuleCheck } from './refused-client.ts';

/** An OAuthClient in the cache of a reflector. */
export class KeptClient implements KubernetesObject, ObjectMeta, ObjectIdentity {
  readonly [field: string]: unknown;
  readonly namespace: string;
  readonly uid: string;
  readonly generation: number;
  declare readonly deletionTimestamp?: string;
  /** Undefined for an OAuthClient of another class, whose spec is not cached. */
  readonly reading: ClientReading | undefined;
  /** See {@link CachedReading}. */
  readonly ruleFaults: readonly Fault[];
  /** The same string as the key of the store, so that it is in memory once. */
  readonly key: string;
  readonly #version: string | number;
  /** In seconds: a value that the engine knows to be an integer needs no memory of its own. */
  readonly #createdAtSeconds: number;

  constructor(key: string, namespace: string, metadata: ObjectMeta, cached: CachedReading | undefined) {
    this.key = key;
    this.namespace = namespace;
    this.uid = metadata.uid;
    this.#version = keptVersion(metadata.resourceVersion);
    this.generation = metadata.generation ?? 1;
    if (metadata.deletionTimestamp !== undefined) this.deletionTimestamp = metadata.deletionTimestamp;
    this.reading = cached?.reading;
    this.ruleFaults = cached?.ruleFaults ?? [];
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

  /** In seconds: milliseconds would need memory of their own wherever they are stored. */
  get createdAt(): number {
    return this.#createdAtSeconds;
  }

  get creationTimestamp(): string {
    return new Date(this.#createdAtSeconds * 1000).toISOString();
  }
}

/** Caches OAuthClients of one class. The few strings of namespaces are shared. */
export function clientKeeper({
  className,
  issuer,
  supportedAuthMethods,
}: {
  readonly className: string;
  /** Of the install: no client may name it as audience. */
  readonly issuer: string;
  readonly supportedAuthMethods: readonly string[];
}): (object: KubernetesObject, key: string) => KeptClient {
  const reader = new ClientReader();
  const rules = new RuleCheck({
    issuer,
    supportedGrantTypes: [...GRANT_TYPES.keys()],
    supportedAuthMethods,
  });
  const namespaces = new Map<string, string>();
  const once = (namespace: string) => {
    const known = namespaces.get(namespace);
    if (known === undefined) namespaces.set(namespace, namespace);
    return known ?? namespace;
  };
  return (object, key) => {
    const { apiVersion, kind, metadata, spec } = object;
    const { name, namespace = '', uid } = metadata;
    const isOwnClass = classOf(object) === className;
    const cached = isOwnClass
      ? rules.cached(reader.read({ apiVersion, kind, metadata: { name, namespace, uid }, spec }))
      : undefined;
    return new KeptClient(key, once(namespace), metadata, cached);
  };
}

/** An OAuthClient of the class. */
export type ReadableClient = KeptClient & { readonly reading: ClientReading };

/** Whether the object is an OAuthClient of the class and not being deleted. */
export function isReadableClient(object: KubernetesObject): object is ReadableClient {
  return object instanceof KeptClient && object.reading !== undefined && object.deletionTimestamp === undefined;
}
