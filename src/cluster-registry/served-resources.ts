// The ProtectedResources of the token server's class: judged as the controller judges them, and the generations that
// this process serves or refuses.

import { boundedSpec } from '../admission/kinds/spec-size.ts';
import { AdmittedResources, type AdmittedResourcesOptions } from '../admission/resources/admitted-resources.ts';
import { type KubernetesObject, objectKey } from '../kubernetes/objects/resources.ts';
import { sourceOf } from '../kubernetes/objects/source-object.ts';
import type { ObjectChange } from '../kubernetes/watch/object-store.ts';

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

export class ServedResources {
  readonly #resources: AdmittedResources<ReturnType<typeof sourceOf>>;
  /** By uid, as of the last {@link publish}. */
  #served: ReadonlyMap<string, ServedResourceState> = new Map();
  #isChanged = false;

  constructor(options: Omit<AdmittedResourcesOptions, 'unknownFields'>) {
    this.#resources = new AdmittedResources({ ...options, unknownFields: 'ignore' });
  }

  changed({ type, object }: ObjectChange): void {
    this.#isChanged = true;
    if (type === 'delete') this.#resources.delete(objectKey(object.metadata));
    else this.#resources.put(sourceOf(object));
  }

  /** To be called when policies, or the labels of a namespace, changed. @param namespace undefined: any */
  rejudge(namespace?: string): void {
    this.#isChanged = true;
    this.#resources.rejudge(namespace);
  }

  /** Judges what changed, and serves it. */
  publish(): void {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    this.#resources.settle();
    const objects = [...this.#resources.keys()].flatMap((key) => this.#resources.get(key) ?? []);
    this.#served = new Map(objects.map(({ uid, generation }) => [uid, { generation }]));
  }

  /** The state of a resource that is served or refused; undefined where there is none of the class. */
  servedState(uid: string): ServedResourceState | undefined {
    return this.#served.get(uid);
  }
}
