// The error of a process that cannot start, for the user who started it.

/** A failed start: one sentence for the user, and the exit code. */
export class StartError extends Error {
  readonly code: 1 | 2;

  constructor(message: string, code: 1 | 2) {
    super(message);
    this.name = 'StartError';
    this.code = code;
  }
}
