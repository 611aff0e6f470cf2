// The error about a file or folder of `.grantry/` that cannot be used.

/** An unusable file in `.grantry/`; the message names the file and never shows its content. */
export class StateError extends Error {
  readonly file: string;
  /** The predicate of the message, without the file and without a full stop. */
  readonly problem: string;

  constructor(file: string, problem: string) {
    super(`${file} ${problem}`);
    this.name = 'StateError';
    this.file = file;
    this.problem = problem;
  }
}
