// The ProtectedResources of the token server's class: the resources of the registry, by the same verdicts as those of the
// controller, and the generations that this process serves or refuses.

import { boundedSpec } from '../admission/kinds/spec-size.ts';
import type { OwnerOf } from '../admission/policies/policy-violations.ts';
import type { WithheldResource } from '../admission/resources/admit-resource.ts';
import { AdmittedResources, type AdmittedResourcesOptions } from '../admission/resources/admitted-resources.ts';
import {
  registryResource,
  registryWithheld,
  type SelectNamespaces,
  selectBy,
} from '../admission/resources/registry-resource.ts';
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

export type ServedResourcesOptions = Omit<AdmittedResourcesOptions, 'unknownFields'>;

/** A resource as the registry has it, and the spec that it is made from. */
interface Made {
  readonly spec: WithheldResource['spec'];
  readonly resource: Resource;
}

/** By key. */
type MadeResources = ReadonlyMap<string, Made>;

const NONE: ReadonlySet<string> = new Set();

export class ServedResources {
  readonly #resources: AdmittedResources<ReturnType<typeof sourceOf>>;
  /** As of the last {@link recompute}. */
  #accepted: MadeResources = new Map();
  #withheld: MadeResources = new Map();
  readonly #select: SelectNamespaces;
  /** The resources of the registry as of the last {@link recompute}. */
  #computed = Resources.NONE;
  /** By uid, as of the last {@link publish}. */
  #served: ReadonlyMap<string, ServedResourceState> = new Map();
  #isChanged = false;
  #isPublished = true;

  constructor(options: ServedResourcesOptions) {
    this.#select = selectBy(options.namespaceLabels);
    this.#resources = new AdmittedResources({ ...options, unknownFields: 'ignore' });
  }

  /** Whether anything changed since the last {@link recompute}. */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  changed({ type, object }: ObjectChange): void {
    this.#isChanged = true;
    if (type === 'delete') this.#resources.delete(objectKey(object.metadata));
    else this.#resources.put(sourceOf(object));
  }

  /** To be called when policies changed. */
  revalidate(): void {
    this.#isChanged = true;
    this.#resources.revalidate();
  }

  /** To be called when the labels of a namespace changed. */
  relabelled(namespace: string): void {
    this.#isChanged = true;
    this.#resources.revalidate(namespace);
  }

  /** Validates the changed resources. @returns the namespaces whose accepted or withheld resources differ now */
  recompute(): ReadonlySet<string> {
    if (!this.#isChanged) return NONE;
    this.#isChanged = false;
    this.#isPublished = false;
    const { granting } = this.#resources.recompute();
    this.#make();
    return new Set(granting.map((key) => splitKey(key)[0]));
  }

  /**
   * Serves the result of the last {@link recompute}.
   * @returns the resources of the registry: the same object while none of them changes
   */
  publish(): Resources {
    if (this.#isPublished) return this.#computed;
    this.#isPublished = true;
    const objects = [...this.#resources.keys()].flatMap((key) => this.#resources.get(key) ?? []);
    this.#served = new Map(objects.map(({ uid, generation }) => [uid, { generation }]));
    return this.#computed;
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
    const { accepted, withheld } = this.#resources;
    const [acceptedBefore, withheldBefore] = [this.#accepted, this.#withheld];
    this.#accepted = remade(acceptedBefore, accepted, (from) => registryResource(from, this.#select));
    this.#withheld = remade(withheldBefore, withheld, registryWithheld);
    if (this.#accepted === acceptedBefore && this.#withheld === withheldBefore) return;
    this.#computed = new Resources(resourcesOf(this.#accepted), resourcesOf(this.#withheld));
  }
}

/** Makes those whose spec differs. @returns `before` where none does */
function remade<From extends WithheldResource>(
  before: MadeResources,
  now: ReadonlyMap<string, From>,
  make: (from: From) => Resource,
): MadeResources {
  let isSame = now.size === before.size;
  const made = new Map<string, Made>();
  for (const [key, from] of now) {
    const known = before.get(key);
    const isKnown = known?.spec === from.spec;
    if (!isKnown) isSame = false;
    made.set(key, isKnown ? known : { spec: from.spec, resource: make(from) });
  }
  return isSame ? before : made;
}

function resourcesOf(made: MadeResources): readonly Resource[] {
  return [...made.values()].map(({ resource }) => resource);
}
