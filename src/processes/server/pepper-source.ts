// Where a replica has its pepper from: a file, or the Secret of its namespace. What it began with it keeps until its end,
// because handles are made with it; that there is another one by now is only told.

import { readFile } from 'node:fs/promises';
import { PEPPER_SECRET } from '../../admission/references/secret-parts.ts';
import { type Peppers, parsePeppers } from '../lifecycle/pepper.ts';

const LOOK_MILLISECONDS = 1000;

export interface PepperSourceOptions {
  /** Undefined: the Secret. */
  readonly file: string | undefined;
  /** What the Secret holds; undefined while it is not there. */
  readonly secretText: () => string | undefined;
  /** Of the Secret. */
  readonly namespace: string;
}

export class PepperSource {
  readonly #options: PepperSourceOptions;
  readonly #first = Promise.withResolvers<Peppers>();
  #peppers: Peppers | undefined;
  #fault: string | undefined = 'not read yet';
  #next: NodeJS.Timeout | undefined;

  constructor(options: PepperSourceOptions) {
    this.#options = options;
  }

  /** What is served with, as soon as there is one. */
  whenThere(): Promise<Peppers> {
    return this.#first.promise;
  }

  /** Why there is none yet. */
  get missing(): string | undefined {
    return this.#peppers === undefined ? this.#fault : undefined;
  }

  /** Why the one that is served with is not the one that stands there now. */
  get outdated(): string | undefined {
    return this.#peppers && this.#fault;
  }

  /** To be called at the start, and when the Secret may be another. */
  async look(): Promise<void> {
    const { file } = this.#options;
    try {
      const text = file === undefined ? this.#secretText() : await readFile(file, 'utf8');
      if (text !== undefined) this.#take(parsePeppers(text));
    } catch (error) {
      this.#fault = `${file ?? `the Secret ${PEPPER_SECRET.name}`}: ${error instanceof Error ? error.message : error}`;
    }
    if (file !== undefined) this.#lookAgain();
  }

  /** A Secret tells that it changed; a file does not. Whichever look ends last, only one more is due. */
  #lookAgain(): void {
    clearTimeout(this.#next);
    this.#next = setTimeout(() => void this.look(), LOOK_MILLISECONDS).unref();
  }

  #secretText(): string | undefined {
    const { secretText, namespace } = this.#options;
    const text = secretText();
    if (text === undefined) {
      this.#fault = `waiting for the Secret ${PEPPER_SECRET.name} in ${namespace}, which the controller makes`;
    }
    return text;
  }

  #take(peppers: Peppers): void {
    this.#peppers ??= peppers;
    this.#fault = isSame(peppers, this.#peppers) ? undefined : 'it is another one now; restart to take it over';
    this.#first.resolve(this.#peppers);
  }
}

function isSame(some: Peppers, others: Peppers): boolean {
  return (
    some.length === others.length &&
    some.every((pepper, index) => Buffer.compare(pepper, others[index] ?? pepper) === 0)
  );
}
