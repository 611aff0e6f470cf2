// The reflectors behind the registry of a token server: which kinds they watch, in which namespaces, in which form they
// cache objects, and whether all are synced. registry-sync.ts handles the changes.

import type { Logger } from 'pino';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import {
  PARTS_SELECTOR,
  PROVIDER_SECRETS_SELECTOR,
  USERS_SECRETS_SELECTOR,
} from '../kubernetes/objects/release-parts.ts';
import {
  CLIENT_POLICIES,
  IDENTITY_PROVIDERS,
  type KubernetesObject,
  NAMESPACES,
  OAUTH_CLIENTS,
  PROTECTED_RESOURCES,
  type Resource,
  resourceName,
  SECRETS,
  SIGNING_KEYS,
} from '../kubernetes/objects/resources.ts';
import { ChangeDelivery } from '../kubernetes/watch/change-delivery.ts';
import { hasSameLabels } from '../kubernetes/watch/namespace-labels.ts';
import { type ObjectChange, withoutBallast } from '../kubernetes/watch/object-store.ts';
import { Reflector, type ReflectorOptions, type WatchMetrics } from '../kubernetes/watch/reflector.ts';
import type { ObjectView } from '../kubernetes/watch/shared-reflector.ts';
import { unlessSame } from '../kubernetes/watch/unless-same.ts';
import type { Clock, Random } from '../oauth/ports/ports.ts';
import { clientCache } from './cached-objects.ts';
import { keptOfSecret, keptUsersSecret } from './release-secrets.ts';
import { keptProvider } from './served-providers.ts';
import { keptResource } from './served-resources.ts';

/** Arrays that field managers and controllers write, longer than the rest of an object. */
const UNREAD = ['managedFields', 'conditions'];

export interface RegistrySourcesOptions {
  readonly api: Pick<KubernetesApi, 'list' | 'watch'>;
  readonly className: string;
  readonly issuer: string;
  /** The wire names of the client authentication methods that this install has. */
  readonly supportedAuthMethods: readonly string[];
  readonly releaseNamespace: string;
  /** The namespaces whose OAuthClients and ProtectedResources are watched; none: all of them. */
  readonly watchNamespaces: readonly string[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly metrics: WatchMetrics;
  /** Called for each change that can affect the registry, and for no other; a change that one throws at is retried. */
  readonly onChange: {
    readonly client: (change: ObjectChange) => void;
    readonly resource: (change: ObjectChange) => void;
    readonly policy: (change: ObjectChange) => void;
    readonly namespace: (change: ObjectChange) => void;
    readonly signingKey: (change: ObjectChange) => void;
    readonly provider: (change: ObjectChange) => void;
    readonly providerSecret: (change: ObjectChange) => void;
    readonly usersSecret: (change: ObjectChange) => void;
    readonly secret: (change: ObjectChange) => void;
  };
  /** Called for each reflector after its first list. */
  readonly onSynced: () => void;
}

export class RegistrySources {
  readonly policies: Pick<ObjectView, 'objects'>;
  readonly namespaces: ObjectView;
  readonly signingKeys: ObjectView;
  readonly providers: Pick<ObjectView, 'objects'>;
  readonly providerSecrets: Pick<ObjectView, 'get'>;
  /** The Secrets of the release namespace of the type for users. */
  readonly usersSecrets: Pick<Reflector, 'objects' | 'lastProgress'>;
  readonly secrets: Pick<ObjectView, 'get'>;
  readonly #options: RegistrySourcesOptions;
  readonly #reflectors: readonly (readonly [Resource, Reflector])[];
  readonly #deliveries: ChangeDelivery[] = [];

  constructor(options: RegistrySourcesOptions) {
    this.#options = options;
    const { releaseNamespace, watchNamespaces, onChange } = options;
    const keep = clientCache(options);
    const everywhere = watchNamespaces.length === 0 ? [undefined] : watchNamespaces;
    const clients = everywhere.map((namespace) =>
      this.#reflector(OAUTH_CLIENTS, unlessSame(isOfSameSpec, onChange.client), {
        ...(namespace !== undefined && { namespace }),
        keep,
      }),
    );
    const resources = everywhere.map((namespace) =>
      this.#reflector(PROTECTED_RESOURCES, unlessSame(isOfSameSpec, onChange.resource), {
        ...(namespace !== undefined && { namespace }),
        keep: keptResource,
      }),
    );
    const policies = this.#reflector(CLIENT_POLICIES, unlessSame(isOfSameSpec, onChange.policy), {
      keep: withoutStatus,
    });
    const namespaces = this.#reflector(NAMESPACES, unlessSame(hasSameLabels, onChange.namespace), {
      keep: keptOfNamespace,
    });
    const signingKeys = this.#reflector(SIGNING_KEYS, unlessSame(isOfSameSpec, onChange.signingKey), {
      namespace: releaseNamespace,
      keep: withoutStatus,
    });
    const secrets = this.#reflector(SECRETS, onChange.secret, {
      namespace: releaseNamespace,
      labelSelector: PARTS_SELECTOR,
      keep: keptOfSecret,
    });
    const providers = this.#reflector(IDENTITY_PROVIDERS, unlessSame(isOfSameSpec, onChange.provider), {
      namespace: releaseNamespace,
      keep: keptProvider,
    });
    const providerSecrets = this.#reflector(SECRETS, onChange.providerSecret, {
      namespace: releaseNamespace,
      fieldSelector: PROVIDER_SECRETS_SELECTOR,
    });
    const usersSecrets = this.#reflector(SECRETS, onChange.usersSecret, {
      namespace: releaseNamespace,
      fieldSelector: USERS_SECRETS_SELECTOR,
      keep: keptUsersSecret,
    });
    [this.policies, this.namespaces, this.signingKeys, this.secrets] = [policies, namespaces, signingKeys, secrets];
    [this.providers, this.providerSecrets, this.usersSecrets] = [providers, providerSecrets, usersSecrets];
    this.#reflectors = [
      ...clients.map((reflector) => [OAUTH_CLIENTS, reflector] as const),
      ...resources.map((reflector) => [PROTECTED_RESOURCES, reflector] as const),
      [CLIENT_POLICIES, policies],
      [NAMESPACES, namespaces],
      [SIGNING_KEYS, signingKeys],
      [SECRETS, secrets],
      [IDENTITY_PROVIDERS, providers],
      [SECRETS, providerSecrets],
      [SECRETS, usersSecrets],
    ];
  }

  /** Whether every reflector has its first list. */
  get synced(): boolean {
    return this.#reflectors.every(([, { synced }]) => synced);
  }

  /** The lists that are missing, or their faults; undefined once every reflector has its first list. */
  get startFault(): string | undefined {
    const unsynced = this.#reflectors.filter(([, { synced }]) => !synced);
    if (unsynced.length === 0) return undefined;
    const faults = unsynced.flatMap(([, { fault }]) => fault ?? []);
    if (faults.length > 0) return [...new Set(faults)].join('; ');
    return `waiting for the first list of ${[...new Set(unsynced.map(([resource]) => resourceName(resource)))].join(', ')}`;
  }

  /** The present faults of the watches; undefined without one. */
  get watchFault(): string | undefined {
    const faults = this.#reflectors.flatMap(([, { fault }]) => fault ?? []);
    return faults.length === 0 ? undefined : [...new Set(faults)].join('; ');
  }

  /** Epoch milliseconds up to which nothing was missed. */
  get lastProgress(): number {
    return Math.min(...this.#reflectors.map(([, { lastProgress }]) => lastProgress));
  }

  start(): void {
    for (const [, reflector] of this.#reflectors) reflector.start();
  }

  /** No change is delivered after the promise is fulfilled. */
  async stop(): Promise<void> {
    await Promise.all(this.#reflectors.map(([, reflector]) => reflector.stop()));
    for (const delivery of this.#deliveries) delivery.stop();
  }

  #reflector(
    resource: Resource,
    onChange: (change: ObjectChange) => void,
    selection: Pick<ReflectorOptions, 'namespace' | 'labelSelector' | 'fieldSelector' | 'keep'>,
  ): Reflector {
    const { api, clock, random, log, metrics, onSynced } = this.#options;
    const delivery = new ChangeDelivery({
      resource: resourceName(resource),
      listener: onChange,
      log,
      current: (key) => reflector.get(key),
      onFailure: () => metrics.changeRefused(resourceName(resource)),
    });
    this.#deliveries.push(delivery);
    const reflector = new Reflector({
      api,
      resource,
      onChange: (change) => delivery.deliver(change),
      onSynced,
      clock,
      random,
      log,
      metrics,
      unread: UNREAD,
      ...selection,
    });
    return reflector;
  }
}

/** Whether only status or metadata changed; not for a relist: after a restore a generation may have another spec. */
function isOfSameSpec({ metadata: now }: KubernetesObject, { metadata: then }: KubernetesObject): boolean {
  return now.generation === then.generation && now.deletionTimestamp === then.deletionTimestamp;
}

function withoutStatus({ status: _, ...object }: KubernetesObject & { readonly status?: unknown }): KubernetesObject {
  return withoutBallast(object as KubernetesObject);
}

function keptOfNamespace({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { name, uid, resourceVersion, creationTimestamp, labels = {} } = metadata;
  return { apiVersion, kind, metadata: { name, uid, resourceVersion, creationTimestamp, labels } };
}
