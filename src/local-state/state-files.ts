// The files that `grantry dev` keeps beside the manifests in `.grantry/`, so that a restart keeps tokens and secrets
// valid. Only this user can read them, Git ignores them, and if the folder cannot be written the state is in memory
// instead.

import { constants } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FolderContents } from '../manifests/folder.ts';
import { StateError } from './state-error.ts';
import { requireOwnFolder } from './state-folder.ts';

const FOLDERS = ['secrets', 'keys', 'mtls', 'records'] as const;
/** The name of the folder. */
export const STATE_FOLDER = '.grantry';
const IGNORE = '.gitignore';
/** No file of the folder may be a link. Windows has no such flag, and makes no links from a checkout by default. */
const NO_LINK = constants.O_NOFOLLOW ?? 0;
const READ = constants.O_RDONLY | NO_LINK;
const WRITE = constants.O_WRONLY | constants.O_CREAT | NO_LINK;
const NEW = WRITE | constants.O_EXCL;
const WHOLE = WRITE | constants.O_TRUNC;
const APPEND = WRITE | constants.O_APPEND;
const NO_BYTES = Buffer.alloc(0);
const READ_ATTEMPTS = 50;
const RETRY_MILLISECONDS = 10;

/** Small texts by name, each generated once. */
export class StateFiles {
  /** `DIR/.grantry`, joined to the folder as the user gave it. */
  readonly path: string;
  /** Why the folder cannot be written; undefined when it can. */
  readonly memoryReason: string | undefined;
  readonly #memory = new Map<string, string>();

  private constructor(path: string, memoryReason: string | undefined) {
    this.path = path;
    this.memoryReason = memoryReason;
  }

  /**
   * Opens or creates the folder; if it cannot be written, the state is in memory.
   * @throws StateError when the folder is not this user's own ({@link requireOwnFolder})
   */
  static async open(directory: string): Promise<StateFiles> {
    const path = join(directory, STATE_FOLDER);
    await requireOwnFolder(path, FOLDERS);
    try {
      await makeFolders(path);
      return new StateFiles(path, undefined);
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      if (code === 'ELOOP') throw unusable(join(path, IGNORE), error);
      return new StateFiles(path, code);
    }
  }

  /** The file of a text; undefined while the state is in memory. */
  fileOf(name: string): string | undefined {
    return this.memoryReason === undefined ? join(this.path, name) : undefined;
  }

  /**
   * The text of this name, without its final line break; generated if there is none. Of two processes that generate it
   * at the same time one wins, and both return its text.
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
      await this.#write(file, made, NEW);
      return made;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unusable(file, error);
      return await this.#readWinner(file).catch((readError) => {
        throw unusable(file, readError);
      });
    }
  }

  /** The text of this name, if there is one. */
  async read(name: string): Promise<string | undefined> {
    const file = this.fileOf(name);
    if (file === undefined) return this.#memory.get(name);
    try {
      const text = await readFile(file, { encoding: 'utf8', flag: READ });
      // No line break at the end: another process is still writing it.
      return text.endsWith('\n') ? text.slice(0, -1) : await this.#readWinner(file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw unusable(file, error);
    }
  }

  /** Replaces the text of this name. */
  async replace(name: string, text: string): Promise<void> {
    const file = this.fileOf(name);
    if (file === undefined) {
      this.#memory.set(name, text);
      return;
    }
    if ((await this.read(name)) === text) return;
    const next = `${file}.${process.pid}.new`;
    try {
      await this.#write(next, text, WHOLE);
      await rename(next, file);
    } catch (error) {
      throw unusable(file, error);
    } finally {
      await rm(next, { force: true }).catch(() => undefined);
    }
  }

  /** Removes the text of this name, if there is one. */
  async remove(name: string): Promise<void> {
    const file = this.fileOf(name);
    this.#memory.delete(name);
    if (file === undefined) return;
    await rm(file, { force: true }).catch((error: unknown) => {
      throw unusable(file, error);
    });
  }

  /** Appends a line to the file; does nothing while the state is in memory. */
  async append(name: string, line: string): Promise<void> {
    const file = this.fileOf(name);
    if (file === undefined) return;
    try {
      await this.#write(file, line, APPEND);
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
        : (await this.#entries(path)).map((name) => `${folder}/${name}`);
    return names.sort();
  }

  /** The names of all texts in the folders, in the form that {@link FolderWatch} compares. */
  async scan(): Promise<FolderContents> {
    const files = (await Promise.all(FOLDERS.map((folder) => this.list(folder).catch(() => [])))).flat();
    return {
      files: new Map(files.map((name) => [name, NO_BYTES])),
      directories: new Set([this.path, ...FOLDERS.map((folder) => join(this.path, folder))]),
      faults: [],
    };
  }

  async #entries(path: string): Promise<readonly string[]> {
    try {
      return await readdir(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw unusable(path, error);
    }
  }

  async #write(file: string, text: string, flag: number): Promise<void> {
    const write = () => writeFile(file, `${text}\n`, { flag, mode: 0o600 });
    try {
      await write();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      // The folder was removed while grantry ran.
      await makeFolders(this.path);
      await write();
    }
  }

  /**
   * Waits for the text that another process is writing; after the last attempt, the text without its final line break.
   */
  async #readWinner(file: string): Promise<string> {
    let text = '';
    for (let attempts = 0; attempts < READ_ATTEMPTS && !text.endsWith('\n'); attempts++) {
      if (attempts > 0) await sleep(RETRY_MILLISECONDS);
      text = await readFile(file, { encoding: 'utf8', flag: READ });
    }
    if (text === '') throw new StateError(file, 'is empty; remove it');
    return text.replace(/\n$/, '');
  }
}

async function makeFolders(path: string): Promise<void> {
  // Not recursive: a folder of manifests that was removed must not be created again.
  for (const folder of ['', ...FOLDERS]) {
    await mkdir(join(path, folder), { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  await writeFile(join(path, IGNORE), '*\n', { flag: WHOLE, mode: 0o600 });
}

function unusable(file: string, error: unknown): Error {
  if (error instanceof StateError) return error;
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  const isLink = code === 'ELOOP';
  return new StateError(file, isLink ? 'is a link, which is not followed; remove it' : `cannot be used (${code})`);
}
