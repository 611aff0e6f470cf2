// A JSON value in `.grantry/records/` that several processes on one folder change: `grantry dev` plans from the newest
// version and writes the next one. Each version is a file that is made once, so of two processes that write at the same
// time one succeeds, and both continue from its version.

import { StateError } from './state-error.ts';
import type { StateFiles } from './state-files.ts';

/** How often a version is looked for that another process replaces at the same time. */
const ATTEMPTS = 10;

/** One version of a value. */
export interface Version<Value> {
  /** 0: there is none. */
  readonly number: number;
  readonly value: Value | undefined;
}

/** A value of this name. */
export class LocalRecord<Value> {
  readonly #state: StateFiles;
  readonly #name: string;
  #known: Version<Value> = { number: 0, value: undefined };

  constructor(state: StateFiles, name: string) {
    this.#state = state;
    this.#name = name;
  }

  /** The newest version. @throws StateError when it cannot be read */
  async read(): Promise<Version<Value>> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const number = Math.max(0, ...(await this.#numbers()));
      if (number === this.#known.number) return this.#known;
      const text = number === 0 ? '' : await this.#state.read(this.#file(number));
      if (text === undefined) continue;
      this.#known = { number, value: number === 0 ? undefined : this.#parsed(number, text) };
      return this.#known;
    }
    throw new StateError(this.#state.path, 'is being changed by other processes; try again');
  }

  /** Writes the version that follows `before`. @returns false where it is that of another process */
  async write(before: Version<Value>, value: Value): Promise<boolean> {
    const text = JSON.stringify(value);
    const kept = await this.#state.keep(this.#file(before.number + 1), () => text);
    for (const number of await this.#numbers()) {
      if (number <= before.number) await this.#state.remove(this.#file(number));
    }
    return kept === text;
  }

  async #numbers(): Promise<readonly number[]> {
    const names = await this.#state.list('records');
    return names.flatMap((name) => {
      const number = /\.(\d{1,15})\.json$/.exec(name)?.[1] ?? '';
      return name === this.#file(Number(number)) ? Number(number) : [];
    });
  }

  #file(number: number): string {
    return `records/${this.#name}.${number}.json`;
  }

  #parsed(number: number, text: string): Value {
    try {
      return JSON.parse(text) as Value;
    } catch {
      const file = this.#file(number);
      throw new StateError(this.#state.fileOf(file) ?? file, 'is not JSON; remove it');
    }
  }
}
