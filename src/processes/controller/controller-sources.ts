// The watches of a controller, which run whether it leads or not.

import { classOf, DEFAULT_CLASS } from '../../admission/kinds/manifest.ts';
import { withoutForeignLabels } from '../../controller/client-secrets/owner-secrets.ts';
import type { ClientSources } from '../../controller/clients/client-controller.ts';
import { PARTS_SELECTOR } from '../../kubernetes/objects/release-parts.ts';
import {
  CLIENT_POLICIES,
  ENDPOINT_SLICES,
  type KubernetesObject,
  NAMESPACES,
  OAUTH_CLIENTS,
  type Resource,
  SECRETS,
  SIGNING_KEYS,
} from '../../kubernetes/objects/resources.ts';
import { withoutBallast } from '../../kubernetes/watch/object-store.ts';
import { SharedReflector, type SharedReflectorOptions } from '../../kubernetes/watch/shared-reflector.ts';

export interface ControllerSourcesOptions
  extends Pick<SharedReflectorOptions, 'api' | 'clock' | 'random' | 'log' | 'metrics'> {
  readonly className: string;
  readonly releaseNamespace: string;
  /** Undefined: all. */
  readonly watchNamespaces: readonly string[] | undefined;
  /** The Service of the replicas; undefined where their addresses are fixed or not configured. */
  readonly serverService: string | undefined;
}

export class ControllerSources implements ClientSources {
  readonly clients: SharedReflector;
  readonly policies: SharedReflector;
  readonly namespaces: SharedReflector;
  readonly secrets: SharedReflector;
  readonly releaseSecrets: SharedReflector;
  readonly signingKeys: SharedReflector;
  readonly endpointSlices: SharedReflector | undefined;
  readonly #all: readonly SharedReflector[];

  constructor(options: ControllerSourcesOptions) {
    const { className, releaseNamespace, watchNamespaces, serverService, ...shared } = options;
    const watch = (resource: Resource, more: Partial<SharedReflectorOptions> = {}) =>
      new SharedReflector({ ...shared, resource, ...more });
    const keep = (object: KubernetesObject) => ofClass(object, className);
    this.clients = watch(OAUTH_CLIENTS, { namespaces: watchNamespaces, keep });
    this.policies = watch(CLIENT_POLICIES, { keep });
    this.namespaces = watch(NAMESPACES);
    this.secrets = watch(SECRETS, { namespaces: watchNamespaces, metadataOnly: true, keep: withoutForeignLabels });
    this.releaseSecrets = watch(SECRETS, { namespaces: [releaseNamespace], labelSelector: PARTS_SELECTOR });
    this.signingKeys = watch(SIGNING_KEYS, { namespaces: [releaseNamespace] });
    this.endpointSlices =
      serverService === undefined
        ? undefined
        : watch(ENDPOINT_SLICES, {
            namespaces: [releaseNamespace],
            labelSelector: `kubernetes.io/service-name=${serverService}`,
          });
    this.#all = [
      ...[this.clients, this.policies, this.namespaces, this.secrets, this.releaseSecrets, this.signingKeys],
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

/** Reduces an object of another class to its identity and class. */
function ofClass(object: KubernetesObject, className: string): KubernetesObject {
  const other = classOf(object);
  if (other === className) return withoutBallast(object);
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const place = namespace === undefined ? { name } : { name, namespace };
  const spec = other === DEFAULT_CLASS ? {} : { className: other };
  return { apiVersion, kind, metadata: { ...place, uid, resourceVersion, creationTimestamp }, spec };
}
