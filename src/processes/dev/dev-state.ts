// What `grantry dev` keeps beside the manifests in `.grantry/`, so that a restart keeps tokens and secrets valid. Only this
// user can read it, Git ignores it, and where it cannot be written everything stays in memory instead.

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const FOLDERS = ['secrets', 'keys'] as const;
const LOOKS = 50;
const LOOK_MILLISECONDS = 10;

/** Something in `.grantry/` that cannot be used; the message names the file and never shows what is in it. */
export class DevStateError extends Error {
  readonly file: string;
  /** What the message says of the file: it ends no sentence and begins none. */
  readonly problem: string;

  constructor(file: string, problem: string) {
    super(`${file} ${problem}`);
    this.name = 'DevStateError';
    this.file = file;
    this.problem = problem;
  }
}

/** Small texts by name, each made once. */
export class DevState {
  /** `DIR/.grantry`, joined to the folder as the person gave it. */
  readonly path: string;
  /** Why nothing is written; undefined when all is. */
  readonly memoryReason: string | undefined;
  readonly #memory = new Map<string, string>();

  private constructor(path: string, memoryReason: string | undefined) {
    this.path = path;
    this.memoryReason = memoryReason;
  }

  /** Opens or creates the folder; one that cannot be written gives a state in memory. */
  static async open(directory: string): Promise<DevState> {
    const path = join(directory, '.grantry');
    try {
      await makeFolders(path);
      return new DevState(path, undefined);
    } catch (error) {
      return new DevState(path, (error as NodeJS.ErrnoException).code ?? 'unknown');
    }
  }

  /** Where a text is on disk; undefined while the state is in memory. */
  fileOf(name: string): string | undefined {
    return this.memoryReason === undefined ? join(this.path, name) : undefined;
  }

  /**
   * The text of this name, without its final line break; made now if there is none. Of two processes that make it at the
   * same time one wins, and both answer the winner's.
   */
  async keep(name: string, make: () => Promise<string> | string): Promise<string> {
    const found = await this.read(name);
    if (found !== undefined) return found;
    const made = await make();
    const file = this.fileOf(name);
    if (file === undefined) {
      this.#memory.set(name, made);
      return made;
    }
    try {
      await this.#write(file, made, 'wx');
      return made;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unusable(file, error);
      return await this.#readWinner(file).catch((unread) => {
        throw unusable(file, unread);
      });
    }
  }

  /** The text of this name, if there is one. */
  async read(name: string): Promise<string | undefined> {
    const file = this.fileOf(name);
    if (file === undefined) return this.#memory.get(name);
    try {
      const text = await readFile(file, 'utf8');
      // No line break at the end: another process is still writing it.
      return text.endsWith('\n') ? text.slice(0, -1) : await this.#readWinner(file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw unusable(file, error);
    }
  }

  /** Puts a text in place of what was there. */
  async replace(name: string, text: string): Promise<void> {
    const file = this.fileOf(name);
    if (file === undefined) {
      this.#memory.set(name, text);
      return;
    }
    if ((await this.read(name)) === text) return;
    const next = `${file}.${process.pid}.new`;
    try {
      await this.#write(next, text, 'w');
      await rename(next, file);
    } catch (error) {
      throw unusable(file, error);
    } finally {
      await rm(next, { force: true }).catch(() => undefined);
    }
  }

  /** Puts a line behind what is there; nothing while the state is in memory. */
  async append(name: string, line: string): Promise<void> {
    const file = this.fileOf(name);
    if (file === undefined) return;
    try {
      await this.#write(file, line, 'a');
    } catch (error) {
      throw unusable(file, error);
    }
  }

  /** The names in one of the folders, sorted. */
  async list(folder: (typeof FOLDERS)[number]): Promise<readonly string[]> {
    const path = this.fileOf(folder);
    const names =
      path === undefined
        ? [...this.#memory.keys()].filter((name) => name.startsWith(`${folder}/`))
        : (await readdir(path).catch(() => [])).map((name) => `${folder}/${name}`);
    return names.sort();
  }

  async #write(file: string, text: string, flag: 'w' | 'wx' | 'a'): Promise<void> {
    const write = () => writeFile(file, `${text}\n`, { flag, mode: 0o600 });
    try {
      await write();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      // Somebody removed the folder while grantry ran.
      await makeFolders(this.path);
      await write();
    }
  }

  /** The text that another process is writing; or, when nobody seems to, what is there. */
  async #readWinner(file: string): Promise<string> {
    let text = '';
    for (let looks = 0; looks < LOOKS && !text.endsWith('\n'); looks++) {
      if (looks > 0) await sleep(LOOK_MILLISECONDS);
      text = await readFile(file, 'utf8');
    }
    if (text === '') throw new DevStateError(file, 'is empty; remove it');
    return text.replace(/\n$/, '');
  }
}

async function makeFolders(path: string): Promise<void> {
  // Not recursively: a folder of manifests that was removed does not come back.
  for (const folder of ['', ...FOLDERS]) {
    await mkdir(join(path, folder), { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  await writeFile(join(path, '.gitignore'), '*\n', { mode: 0o600 });
}

function unusable(file: string, error: unknown): Error {
  if (error instanceof DevStateError) return error;
  return new DevStateError(file, `cannot be used (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
}
