// Why a process cannot start, said to the person who started it.

/** A start that cannot be: one sentence for the person, and the code to end with. */
export class StartError extends Error {
  readonly code: 1 | 2;

  constructor(message: string, code: 1 | 2) {
    super(message);
    this.name = 'StartError';
    this.code = code;
  }
}
