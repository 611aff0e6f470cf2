// Reads the bytes of a folder of manifests: the files, the directories to watch for them, and limits that protect the
// machine from a mistaken path (a home directory, a loop of links). documents.ts parses YAML.

import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ManifestFault } from './place.ts';

const EXTENSIONS = ['.yaml', '.yml', '.json'];
/** etcd, and so the API server, stores objects that are only a little larger. */
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_FOLDER_BYTES = 64 * 1024 * 1024;
const MAX_FILES = 20_000;
const MAX_DIRECTORIES = 5_000;
const MAX_DEPTH = 32;
const READ_AT_ONCE = 64;

/** Whether a file of this name is read when it lies in a folder. */
function isManifestName(name: string): boolean {
  return EXTENSIONS.some((extension) => name.endsWith(extension)) && !name.startsWith('.');
}

/** One scan of a folder. */
export interface FolderContents {
  /** By path as the user gave it, in path order. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Real paths of the directories whose entries determine `files`. */
  readonly directories: ReadonlySet<string>;
  readonly faults: readonly ManifestFault[];
}

/** Reads a folder, or one file. Never throws: an unreadable file or folder is a fault. */
export async function readFolder(root: string): Promise<FolderContents> {
  const walk = new Walk();
  await walk.enter(root, 0, true);
  const sorted = [...walk.files].sort(([a], [b]) => (a < b ? -1 : 1));
  const faults = walk.faults.sort((a, b) => (a.place.file < b.place.file ? -1 : 1));
  return { files: new Map(sorted), directories: walk.directories, faults };
}

class Walk {
  readonly files = new Map<string, Buffer>();
  readonly directories = new Set<string>();
  readonly faults: ManifestFault[] = [];
  readonly #entered = new Set<string>();
  #bytes = 0;
  #files = 0;

  async enter(path: string, depth: number, given: boolean): Promise<void> {
    try {
      const real = await realpath(path);
      const found = await stat(real);
      if (found.isDirectory()) await this.#enterDirectory(path, real, depth);
      // A file given by the user is read under any name; a pipe or a device would never end.
      else if (found.isFile() && (given || isManifestName(basename(path)))) {
        this.directories.add(dirname(real));
        await this.#readFile(path, real);
      }
    } catch (error) {
      // A file that vanished since the listing is deleted; a dangling link is a fault only if the user gave it.
      if (given || !isGone(error)) this.#fault(path, 'Unreadable', describe(error));
    }
  }

  async #enterDirectory(path: string, real: string, depth: number): Promise<void> {
    // Links may lead to one folder by several paths, or form a loop.
    if (this.#entered.has(real)) return;
    this.#entered.add(real);
    if (depth > MAX_DEPTH) return this.#fault(path, 'TooLarge', `Folders lie more than ${MAX_DEPTH} deep.`);
    if (this.#entered.size > MAX_DIRECTORIES) {
      return this.#fault(path, 'TooLarge', `There are more than ${MAX_DIRECTORIES} folders.`);
    }
    this.directories.add(real);
    const entries = await readdir(real, { withFileTypes: true });
    const counted = entries
      .filter(({ name }) => !name.startsWith('.') && name !== 'node_modules')
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const files = counted.filter((entry) => entry.isFile() && isManifestName(entry.name));
    for (let first = 0; first < files.length; first += READ_AT_ONCE) {
      const some = files.slice(first, first + READ_AT_ONCE);
      await Promise.all(some.map(({ name }) => this.#readListed(join(path, name), join(real, name))));
    }
    for (const entry of counted) {
      if (!entry.isDirectory() && !entry.isSymbolicLink()) continue;
      await this.enter(join(path, entry.name), depth + 1, false);
    }
  }

  async #readListed(path: string, real: string): Promise<void> {
    try {
      await this.#readFile(path, real);
    } catch (error) {
      if (!isGone(error)) this.#fault(path, 'Unreadable', describe(error));
    }
  }

  async #readFile(path: string, real: string): Promise<void> {
    const { size } = await stat(real);
    if (size > MAX_FILE_BYTES) return this.#fault(path, 'TooLarge', `The file has more than ${MAX_FILE_BYTES} bytes.`);
    this.#bytes += size;
    if (++this.#files > MAX_FILES || this.#bytes > MAX_FOLDER_BYTES) {
      return this.#fault(path, 'TooLarge', `There are more than ${MAX_FILES} files or ${MAX_FOLDER_BYTES} bytes.`);
    }
    const bytes = await readFile(real);
    this.files.set(path, bytes.subarray(0, MAX_FILE_BYTES));
  }

  #fault(file: string, reason: string, message: string): void {
    // A few faults about size are enough.
    if (reason === 'TooLarge' && this.faults.filter((fault) => fault.reason === reason).length >= 5) return;
    this.faults.push({ place: { file, document: undefined, line: undefined, field: undefined }, reason, message });
  }
}

function isGone(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function describe(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'There is no such file or folder.';
  if (code === 'EACCES' || code === 'EPERM') return 'The file may not be read.';
  if (code === 'ELOOP') return 'The link leads back to itself.';
  return `The file could not be read (${code ?? 'unknown'}).`;
}

/** Whether two scans of a folder have equal files and faults. */
export function sameContents(a: FolderContents, b: FolderContents): boolean {
  if (a.files.size !== b.files.size || JSON.stringify(a.faults) !== JSON.stringify(b.faults)) return false;
  for (const [path, bytes] of a.files) if (!b.files.get(path)?.equals(bytes)) return false;
  return true;
}
