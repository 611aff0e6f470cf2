// The watches of a controller, which run whether it leads or not.

import { withoutForeignLabels } from '../../controller/client-secrets/owner-secrets.ts';
import type { ClientSources } from '../../controller/clients/client-controller.ts';
import { cachedClient, cachedIdentity, cachedResource, ofClass } from '../../controller/reconciling/cached-object.ts';
import {
  PARTS_SELECTOR,
  PROVIDER_SECRETS_SELECTOR,
  USERS_SECRETS_SELECTOR,
} from '../../kubernetes/objects/release-parts.ts';
import {
  CLIENT_POLICIES,
  CONFIG_MAPS,
  ENDPOINT_SLICES,
  IDENTITY_PROVIDERS,
  type KubernetesObject,
  NAMESPACES,
  OAUTH_CLIENTS,
  PROTECTED_RESOURCES,
  type Resource,
  SECRETS,
  SERVICE_ACCOUNTS,
  SIGNING_KEYS,
} from '../../kubernetes/objects/resources.ts';
import { withoutBallast } from '../../kubernetes/watch/object-store.ts';
import { SharedReflector, type SharedReflectorOptions } from '../../kubernetes/watch/shared-reflector.ts';

/** What field managers wrote, which the controller reads of single Secrets only. */
const UNREAD = ['managedFields'];

export interface ControllerSourcesOptions
  extends Pick<SharedReflectorOptions, 'api' | 'clock' | 'random' | 'log' | 'metrics'> {
  readonly className: string;
  readonly releaseNamespace: string;
  /** Undefined: all. */
  readonly watchNamespaces: readonly string[] | undefined;
  /** The Service of the replicas; undefined where their addresses are fixed or not configured. */
  readonly serverService: string | undefined;
  /** Whether the controller is to provide a first user. */
  readonly needsUsers: boolean;
}

export class ControllerSources implements ClientSources {
  readonly clients: SharedReflector;
  readonly resources: SharedReflector;
  readonly policies: SharedReflector;
  readonly namespaces: SharedReflector;
  readonly secrets: SharedReflector;
  readonly configMaps: SharedReflector;
  readonly serviceAccounts: SharedReflector;
  readonly releaseSecrets: SharedReflector;
  readonly signingKeys: SharedReflector;
  readonly providers: SharedReflector;
  readonly providerSecrets: SharedReflector;
  /** Undefined where no first user is to be provided. */
  readonly usersSecrets: SharedReflector | undefined;
  readonly endpointSlices: SharedReflector | undefined;
  readonly #all: readonly SharedReflector[];

  constructor(options: ControllerSourcesOptions) {
    const { className, releaseNamespace, watchNamespaces, serverService, needsUsers, ...shared } = options;
    const watch = (resource: Resource, more: Partial<SharedReflectorOptions> = {}) =>
      new SharedReflector({ ...shared, resource, unread: UNREAD, ...more });
    this.clients = watch(OAUTH_CLIENTS, {
      namespaces: watchNamespaces,
      keep: (object) => ofClass(object, className, cachedClient),
    });
    this.resources = watch(PROTECTED_RESOURCES, {
      namespaces: watchNamespaces,
      keep: (object) => ofClass(object, className, cachedResource),
    });
    this.policies = watch(CLIENT_POLICIES, { keep: (object) => ofClass(object, className, withoutBallast) });
    this.namespaces = watch(NAMESPACES);
    // Of objects that tenants write in any number and size: what they are, and never what is in them.
    const metadataOf = (resource: Resource, keep: (object: KubernetesObject) => KubernetesObject) =>
      watch(resource, { namespaces: watchNamespaces, metadataOnly: true, keep });
    this.secrets = metadataOf(SECRETS, withoutForeignLabels);
    this.configMaps = metadataOf(CONFIG_MAPS, cachedIdentity);
    this.serviceAccounts = metadataOf(SERVICE_ACCOUNTS, cachedIdentity);
    this.releaseSecrets = watch(SECRETS, { namespaces: [releaseNamespace], labelSelector: PARTS_SELECTOR });
    this.signingKeys = watch(SIGNING_KEYS, { namespaces: [releaseNamespace] });
    this.providers = watch(IDENTITY_PROVIDERS, { namespaces: [releaseNamespace], keep: cachedResource });
    this.providerSecrets = watch(SECRETS, {
      namespaces: [releaseNamespace],
      fieldSelector: PROVIDER_SECRETS_SELECTOR,
    });
    this.usersSecrets = needsUsers
      ? watch(SECRETS, {
          namespaces: [releaseNamespace],
          fieldSelector: USERS_SECRETS_SELECTOR,
          metadataOnly: true,
          keep: cachedIdentity,
        })
      : undefined;
    this.endpointSlices =
      serverService === undefined
        ? undefined
        : watch(ENDPOINT_SLICES, {
            namespaces: [releaseNamespace],
            labelSelector: `kubernetes.io/service-name=${serverService}`,
          });
    this.#all = [
      ...[
        this.clients,
        this.resources,
        this.policies,
        this.namespaces,
        this.secrets,
        this.configMaps,
        this.serviceAccounts,
      ],
      ...[this.releaseSecrets, this.signingKeys, this.providers, this.providerSecrets],
      ...(this.usersSecrets === undefined ? [] : [this.usersSecrets]),
      ...(this.endpointSlices === undefined ? [] : [this.endpointSlices]),
    ];
  }

  start(): void {
    for (const each of this.#all) each.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all.map((each) => each.stop()));
  }

  async whenSynced(): Promise<void> {
    await Promise.all(this.#all.map((each) => each.whenSynced()));
  }

  /** The watches that have not completed their first list, with their faults; undefined when all have. */
  get startFault(): string | undefined {
    const missing = this.#all.filter(({ synced }) => !synced);
    if (missing.length === 0) return undefined;
    return missing.map(({ name, fault }) => fault ?? `${name}: not listed yet`).join('; ');
  }

  /** The current fault of a watch; undefined when there is none. */
  get fault(): string | undefined {
    return this.#all.find(({ fault }) => fault !== undefined)?.fault;
  }

  /** Epoch milliseconds up to which no change was missed. */
  get lastProgress(): number {
    return Math.min(...this.#all.map(({ lastProgress }) => lastProgress));
  }
}
