// The ProtectedResources of the token server's class: judged as the controller judges them, as the registry has them, and
// the generations that this process serves or refuses.

import { boundedSpec } from '../admission/kinds/spec-size.ts';
import type { OwnerOf } from '../admission/policies/policy-violations.ts';
import type { AcceptedResource } from '../admission/resources/admit-resource.ts';
import { AdmittedResources, type AdmittedResourcesOptions } from '../admission/resources/admitted-resources.ts';
import { isRelabelledFor, registryResource, selectAmong } from '../admission/resources/registry-resource.ts';
import { type KubernetesObject, objectKey, splitKey } from '../kubernetes/objects/resources.ts';
import { sourceOf } from '../kubernetes/objects/source-object.ts';
import type { ObjectChange } from '../kubernetes/watch/object-store.ts';
import type { Resource } from '../oauth/registry/resource.ts';
import { Resources } from '../oauth/registry/resources.ts';

/** What a token server serves of one resource. */
export interface ServedResourceState {
  readonly generation: number;
}

/** The form in which a ProtectedResource is cached: tenants write its metadata in any size. */
export function keptResource({ apiVersion, kind, metadata, ...object }: KubernetesObject): KubernetesObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp, generation, deletionTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...(namespace !== undefined && { namespace }),
      ...(generation !== undefined && { generation }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    spec: boundedSpec(object),
  };
}

export interface ServedResourcesOptions extends Omit<AdmittedResourcesOptions, 'unknownFields'> {
  /** The names of all observed namespaces. */
  readonly namespaces: () => Iterable<string>;
}

/** A resource as the registry has it, and the spec that it is made from. */
interface Made {
  readonly spec: AcceptedResource['spec'];
  readonly resource: Resource;
}

const NONE: ReadonlySet<string> = new Set();

export class ServedResources {
  readonly #options: ServedResourcesOptions;
  readonly #resources: AdmittedResources<ReturnType<typeof sourceOf>>;
  /** Of accepted resources, by key, as of the last {@link settle}. */
  #made: ReadonlyMap<string, Made> = new Map();
  #settled = Resources.NONE;
  /** By uid, as of the last {@link publish}. */
  #served: ReadonlyMap<string, ServedResourceState> = new Map();
  #isChanged = false;
  /** Namespaces that selectors may match otherwise than in `#made`. */
  readonly #relabelled = new Set<string>();
  #isPublished = true;

  constructor(options: ServedResourcesOptions) {
    this.#options = options;
    this.#resources = new AdmittedResources({ ...options, unknownFields: 'ignore' });
  }

  /** Whether anything changed since the last {@link settle}. */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  changed({ type, object }: ObjectChange): void {
    this.#isChanged = true;
    if (type === 'delete') this.#resources.delete(objectKey(object.metadata));
    else this.#resources.put(sourceOf(object));
  }

  /** To be called when policies changed. */
  rejudge(): void {
    this.#isChanged = true;
    this.#resources.rejudge();
  }

  /** To be called when the labels of a namespace changed. */
  relabelled(namespace: string): void {
    this.#isChanged = true;
    this.#relabelled.add(namespace);
    this.#resources.rejudge(namespace);
  }

  /** Judges what changed. @returns the namespaces whose accepted resources differ now */
  settle(): ReadonlySet<string> {
    if (!this.#isChanged) return NONE;
    this.#isChanged = false;
    this.#isPublished = false;
    const changed = this.#resources.settle();
    this.#make();
    return new Set(changed.map((key) => splitKey(key)[0]));
  }

  /** Serves what is settled. @returns the resources of the registry: the same object while none of them changes */
  publish(): Resources {
    if (this.#isPublished) return this.#settled;
    this.#isPublished = true;
    const objects = [...this.#resources.keys()].flatMap((key) => this.#resources.get(key) ?? []);
    this.#served = new Map(objects.map(({ uid, generation }) => [uid, { generation }]));
    return this.#settled;
  }

  /** See {@link AdmittedResources.ownerOf}. */
  get ownerOf(): OwnerOf {
    return this.#resources.ownerOf;
  }

  /** The state of a resource that is served or refused; undefined where there is none of the class. */
  servedState(uid: string): ServedResourceState | undefined {
    return this.#served.get(uid);
  }

  /** Makes the resources that differ, and all of the registry if any does. */
  #make(): void {
    const select = selectAmong(this.#labelled(this.#options.namespaces()));
    const relabelled = [...this.#labelled(this.#relabelled)];
    this.#relabelled.clear();
    const before = this.#made;
    let isSame = this.#resources.accepted.size === before.size;
    this.#made = new Map(
      [...this.#resources.accepted].map(([key, from]) => {
        const known = before.get(key);
        const isMade = known?.spec === from.spec;
        if (isMade && !relabelled.some((labelled) => isRelabelledFor(known.resource, from.spec, labelled))) {
          return [key, known];
        }
        isSame = false;
        return [key, { spec: from.spec, resource: registryResource(from, select) }];
      }),
    );
    if (!isSame) this.#settled = new Resources([...this.#made.values()].map(({ resource }) => resource));
  }

  *#labelled(namespaces: Iterable<string>) {
    for (const name of namespaces) {
      const labels = this.#options.namespaceLabels(name);
      if (labels !== undefined) yield [name, labels] as const;
    }
  }
}
