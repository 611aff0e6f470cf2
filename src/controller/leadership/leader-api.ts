// The API server as who leads may use it: whatever is written asks the lease first, and a right that is missing is noted.
// Everything that writes takes this class and nothing that looks like it, so that no write can do without.

import type { KubernetesApi, NewObject, ObjectPlace } from '../../kubernetes/api/kubernetes-api.ts';
import type { KubernetesObject, Resource } from '../../kubernetes/objects/resources.ts';
import type { Leadership } from './lease.ts';
import type { RbacDenials, Right } from './rbac-denials.ts';

export interface LeaderApiOptions {
  readonly api: Pick<KubernetesApi, 'get' | 'create' | 'apply' | 'delete'>;
  readonly leadership: Pick<Leadership, 'assertHeld'>;
  readonly rights: Pick<RbacDenials, 'answered'>;
}

/** What is promised is kubernetes-api.ts's; every write also throws LeadershipLostError, and then nothing was sent. */
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
    return await this.#noted({ verb: 'get', resource, namespace }, this.#api.get(resource, at));
  }

  async create(resource: Resource, object: NewObject): Promise<KubernetesObject> {
    this.#leadership.assertHeld();
    const { namespace } = object.metadata;
    return await this.#noted({ verb: 'create', resource, namespace }, this.#api.create(resource, object));
  }

  async apply(
    resource: Resource,
    object: NewObject,
    options?: { readonly subresource?: 'status' },
  ): Promise<KubernetesObject> {
    this.#leadership.assertHeld();
    const { namespace } = object.metadata;
    const right = { verb: 'patch', resource, namespace, subresource: options?.subresource } as const;
    return await this.#noted(right, this.#api.apply(resource, object, options));
  }

  async delete(
    resource: Resource,
    at: ObjectPlace & { readonly uid: string; readonly resourceVersion?: string },
  ): Promise<'deleted' | 'gone' | 'changed'> {
    this.#leadership.assertHeld();
    const { namespace } = at;
    return await this.#noted({ verb: 'delete', resource, namespace }, this.#api.delete(resource, at));
  }

  async #noted<Answer>(right: Right, answer: Promise<Answer>): Promise<Answer> {
    try {
      const given = await answer;
      this.#rights.answered(right);
      return given;
    } catch (error) {
      this.#rights.answered(right, error);
      throw error;
    }
  }
}
