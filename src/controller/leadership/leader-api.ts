// The API server for the leader: every write checks the lease first, and the result of every call is recorded for RBAC
// denials. Whatever writes takes this class and no structural type, so that no write bypasses the lease.

import type { KubernetesApi, NewObject, ObjectPlace, PinnedPatch } from '../../kubernetes/api/kubernetes-api.ts';
import type { KubernetesObject, Resource } from '../../kubernetes/objects/resources.ts';
import type { Leadership } from './lease.ts';
import type { RbacDenials, Right } from './rbac-denials.ts';

export interface LeaderApiOptions {
  readonly api: Pick<KubernetesApi, 'get' | 'create' | 'apply' | 'merge' | 'delete'>;
  readonly leadership: Pick<Leadership, 'assertHeld'>;
  readonly rights: Pick<RbacDenials, 'recordResult'>;
}

/** Behaves as kubernetes-api.ts documents. Writes also throw LeadershipLostError, and then nothing was sent. */
export class LeaderApi {
  readonly #api: LeaderApiOptions['api'];
  readonly #leadership: LeaderApiOptions['leadership'];
  readonly #rights: LeaderApiOptions['rights'];

  constructor({ api, leadership, rights }: LeaderApiOptions) {
    this.#api = api;
    this.#leadership = leadership;
    this.#rights = rights;
  }

  async get(resource: Resource, at: ObjectPlace): Promise<KubernetesObject | undefined> {
    const { namespace } = at;
    return await this.#tracked({ verb: 'get', resource, namespace }, this.#api.get(resource, at));
  }

  async create(resource: Resource, object: NewObject): Promise<KubernetesObject> {
    this.#leadership.assertHeld();
    const { namespace } = object.metadata;
    return await this.#tracked({ verb: 'create', resource, namespace }, this.#api.create(resource, object));
  }

  async apply(
    resource: Resource,
    object: NewObject,
    options?: { readonly subresource?: 'status' },
  ): Promise<KubernetesObject> {
    this.#leadership.assertHeld();
    const { namespace } = object.metadata;
    const right = { verb: 'patch', resource, namespace, subresource: options?.subresource } as const;
    return await this.#tracked(right, this.#api.apply(resource, object, options));
  }

  async merge(resource: Resource, patch: PinnedPatch): Promise<KubernetesObject> {
    this.#leadership.assertHeld();
    const { namespace } = patch.metadata;
    return await this.#tracked({ verb: 'patch', resource, namespace }, this.#api.merge(resource, patch));
  }

  async delete(
    resource: Resource,
    at: ObjectPlace & { readonly uid: string; readonly resourceVersion?: string },
  ): Promise<'deleted' | 'gone' | 'changed'> {
    this.#leadership.assertHeld();
    const { namespace } = at;
    return await this.#tracked({ verb: 'delete', resource, namespace }, this.#api.delete(resource, at));
  }

  async #tracked<Answer>(right: Right, answer: Promise<Answer>): Promise<Answer> {
    try {
      const result = await answer;
      this.#rights.recordResult(right);
      return result;
    } catch (error) {
      this.#rights.recordResult(right, error);
      throw error;
    }
  }
}
