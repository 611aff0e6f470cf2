// Thrown when a reconcile finds that an object changed after it was read: a conflict of optimistic concurrency, not a
// failure. The key is requeued, and the next reconcile reads the present state.

export class StaleReadError extends Error {
  /** @param what the object that changed, by kind and key */
  constructor(what: string) {
    super(`${what} changed meanwhile`);
    this.name = 'StaleReadError';
  }
}
