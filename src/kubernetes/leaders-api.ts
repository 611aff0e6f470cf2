// The API server as who leads may use it: whatever is written asks the lease first. Everything that writes takes this class
// and nothing that looks like it, so that no write can do without.

import type { KubernetesApi, NewObject, ObjectPlace } from './client.ts';
import type { Leadership } from './lease.ts';
import type { KubernetesObject, Resource } from './resources.ts';

export interface LeadersApiOptions {
  readonly api: Pick<KubernetesApi, 'get' | 'create' | 'apply' | 'delete'>;
  readonly leadership: Pick<Leadership, 'assertHeld'>;
}

/** What is promised is client.ts's; every write also throws LeadershipLostError, and then nothing was sent. */
export class LeadersApi {
  readonly #api: LeadersApiOptions['api'];
  readonly #leadership: LeadersApiOptions['leadership'];

  constructor({ api, leadership }: LeadersApiOptions) {
    this.#api = api;
    this.#leadership = leadership;
  }

  async get(resource: Resource, at: ObjectPlace): Promise<KubernetesObject | undefined> {
    return await this.#api.get(resource, at);
  }

  async create(resource: Resource, object: NewObject): Promise<KubernetesObject> {
    this.#leadership.assertHeld();
    return await this.#api.create(resource, object);
  }

  async apply(
    resource: Resource,
    object: NewObject,
    options?: { readonly subresource?: 'status' },
  ): Promise<KubernetesObject> {
    this.#leadership.assertHeld();
    return await this.#api.apply(resource, object, options);
  }

  async delete(
    resource: Resource,
    at: ObjectPlace & { readonly uid: string; readonly resourceVersion?: string },
  ): Promise<'deleted' | 'gone' | 'changed'> {
    this.#leadership.assertHeld();
    return await this.#api.delete(resource, at);
  }
}
