// The source of a replica's pepper: a file, or the Secret in its namespace. The replica keeps its first pepper until it
// ends, because it makes handles with it; a later change is only reported.

import { readFile } from 'node:fs/promises';
import { PEPPER_SECRET } from '../../admission/references/secret-parts.ts';
import { type Peppers, parsePeppers } from '../lifecycle/pepper.ts';

const POLL_MILLISECONDS = 1000;

export interface PepperSourceOptions {
  /** Undefined: the Secret. */
  readonly file: string | undefined;
  /** The text of the Secret; undefined while it is missing. */
  readonly secretText: () => string | undefined;
  /** The namespace of the Secret. */
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

  /** The pepper in use, as soon as it is available. */
  whenAvailable(): Promise<Peppers> {
    return this.#first.promise;
  }

  /** Why no pepper is available yet; undefined once one is. */
  get missing(): string | undefined {
    return this.#peppers === undefined ? this.#fault : undefined;
  }

  /** Why the pepper in use differs from the source; undefined while both are the same. */
  get outdated(): string | undefined {
    return this.#peppers && this.#fault;
  }

  /** Reads the source. To be called at the start, and when the Secret may have changed. */
  async refresh(): Promise<void> {
    const { file } = this.#options;
    try {
      const text = file === undefined ? this.#secretText() : await readFile(file, 'utf8');
      if (text !== undefined) this.#take(parsePeppers(text));
    } catch (error) {
      this.#fault = `${file ?? `the Secret ${PEPPER_SECRET.name}`}: ${error instanceof Error ? error.message : error}`;
    }
    if (file !== undefined) this.#scheduleRefresh();
  }

  /** Schedules the next read of the file, which is polled. Overlapping reads schedule only one. */
  #scheduleRefresh(): void {
    clearTimeout(this.#next);
    this.#next = setTimeout(() => void this.refresh(), POLL_MILLISECONDS).unref();
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
