// Thrown when a reconcile finds that an object changed after it was read: a conflict of optimistic concurrency, not a
// failure. The key is requeued, and the next reconcile reads the present state.

import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';

export class StaleReadError extends Error {
  /** @param what the object that changed, by kind and key */
  constructor(what: string) {
    super(`${what} changed meanwhile`);
    this.name = 'StaleReadError';
  }
}

/** Whether a call or a reconcile met another version than it was based on; `AlreadyExists` included. */
export function isConflict(error: unknown): boolean {
  if (error instanceof StaleReadError) return true;
  return error instanceof KubernetesError && (error.status === 409 || error.reason === 'Conflict');
}
