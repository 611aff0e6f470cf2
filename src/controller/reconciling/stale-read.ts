// What is thrown where a look finds that it goes by what is no more: nothing is wrong, and the next look goes by what is.

export class StaleReadError extends Error {
  /** @param what the object that changed, by kind and key */
  constructor(what: string) {
    super(`${what} changed meanwhile`);
    this.name = 'StaleReadError';
  }
}
