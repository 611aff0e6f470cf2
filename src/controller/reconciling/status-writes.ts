// Writes the statuses of one kind, each pinned to the version of the object that the watch has delivered. What the watch
// has still to deliver is reconciled when it comes, so no write is repeated.

import type { KubernetesObject, Resource } from '../../kubernetes/objects/resources.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { isAbsent, isTerminating } from '../leadership/refused-calls.ts';
import { isConflict } from './stale-read.ts';

export class StatusWrites {
  readonly #api: LeaderApi;
  readonly #resource: Resource;
  /** Objects as the watch delivered them, whose status this process has replaced since. */
  readonly #replaced = new WeakSet<KubernetesObject>();

  constructor(api: LeaderApi, resource: Resource) {
    this.#api = api;
    this.#resource = resource;
  }

  /**
   * Replaces the status.
   * @param object as the cache of the watch has it, the very object
   * @returns whether it is written; not where the cache is stale or the object is deleted
   */
  async write(object: KubernetesObject, status: object): Promise<boolean> {
    if (this.#replaced.has(object)) return false;
    const { name, namespace, uid, resourceVersion } = object.metadata;
    const metadata = { name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) };
    try {
      const written = await this.#api.apply(this.#resource, { metadata, status }, { subresource: 'status' });
      // A write that changes nothing has no version of its own, and the watch delivers nothing.
      if (written.metadata.resourceVersion !== resourceVersion) this.#replaced.add(object);
      return true;
    } catch (error) {
      if (isConflict(error) || isAbsent(error) || isTerminating(error)) return false;
      throw error;
    }
  }
}
