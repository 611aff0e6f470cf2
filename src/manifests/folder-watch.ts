// Watches a folder of manifests for changes. Each directory has a watcher of its own: a recursive fs.watch reports no
// more events of a file that was replaced by a rename. An event only triggers a scan; the state is always that of a
// whole scan.

import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FolderContents, readFolder, sameContents } from './folder.ts';

/** Events come in bursts; one scan after this time covers them all. */
const DEBOUNCE_MILLISECONDS = 20;
/**
 * A change is reported when two scans this far apart agree, so that a half-written or just replaced file is not
 * reported.
 */
const RESCAN_MILLISECONDS = 25;
const SCANS_MAX = 4;
/** For file systems that send no events (network mounts, some containers). */
const POLL_MILLISECONDS = 2_000;
/** The poll interval while a directory has no watcher because the system refused one. */
const FAST_POLL_MILLISECONDS = 100;

export interface FolderWatchParts {
  readonly root: string;
  /** Default: {@link readFolder}. */
  readonly read?: (root: string) => Promise<FolderContents>;
  /** Called with every new state after the first, sequentially; must not throw. */
  readonly onChange: (contents: FolderContents) => void;
  /** How far apart two scans are that have to agree; milliseconds, default 25. */
  readonly rescan?: number;
  /** The pause between scans that no event asks for; milliseconds, default 2000. */
  readonly poll?: number;
}

/** Watches one folder until closed. */
export class FolderWatch {
  readonly #read: () => Promise<FolderContents>;
  readonly #onChange: (contents: FolderContents) => void;
  readonly #rescanPause: number;
  readonly #pollPause: number;
  readonly #watchers = new Map<string, FSWatcher>();
  #contents: FolderContents = { files: new Map(), directories: new Set(), faults: [] };
  #debounce: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  #scanning: Promise<void> = Promise.resolve();
  #isScanQueued = false;
  #watchFailed = false;
  #closed = false;

  constructor({
    root,
    read = readFolder,
    onChange,
    rescan = RESCAN_MILLISECONDS,
    poll = POLL_MILLISECONDS,
  }: FolderWatchParts) {
    this.#read = () => read(root);
    this.#onChange = onChange;
    this.#rescanPause = rescan;
    this.#pollPause = poll;
  }

  /** Begins to watch. @returns the first scan */
  async start(): Promise<FolderContents> {
    const first = await this.#read();
    this.#contents = first;
    this.#follow(first);
    // A second scan finds changes from before the watchers were active.
    this.#scheduleScan();
    this.#schedulePoll();
    return first;
  }

  /** Scans now: what is written before the call and deleted after it is a change. */
  async scan(): Promise<void> {
    this.#scan();
    await this.#scanning;
  }

  /** Stops. No call of `onChange` comes after the promise is fulfilled. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#debounce);
    clearTimeout(this.#poll);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    await this.#scanning;
  }

  #scheduleScan(): void {
    if (this.#closed || this.#debounce !== undefined) return;
    this.#debounce = setTimeout(() => {
      this.#debounce = undefined;
      this.#scan();
    }, DEBOUNCE_MILLISECONDS);
  }

  #scan(): void {
    // At most one scan runs and one is queued, which covers every change until it begins.
    if (this.#isScanQueued || this.#closed) return;
    this.#isScanQueued = true;
    this.#scanning = this.#scanning.then(async () => {
      this.#isScanQueued = false;
      await this.#compare();
    });
  }

  async #compare(): Promise<void> {
    let seen = await this.#read();
    if (this.#closed) return;
    this.#follow(seen);
    if (sameContents(seen, this.#contents)) return;
    for (let scans = 1; scans < SCANS_MAX; scans++) {
      await sleep(this.#rescanPause);
      const again = await this.#read();
      const isStable = sameContents(seen, again);
      seen = again;
      if (isStable) break;
    }
    if (this.#closed) return;
    this.#follow(seen);
    if (sameContents(seen, this.#contents)) return;
    this.#contents = seen;
    this.#onChange(seen);
  }

  /** Watches exactly the directories of this scan. */
  #follow({ directories }: FolderContents): void {
    for (const [directory, watcher] of this.#watchers) {
      if (directories.has(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    this.#watchFailed = false;
    for (const directory of directories) {
      if (!this.#watchers.has(directory)) this.#watch(directory);
    }
  }

  #watch(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, (event, name) => {
        // A directory reports its own removal or renaming under its own name: the watcher gets no more events.
        if (event === 'rename' && name === basename(directory)) this.#dropWatcher(directory, watcher);
        else this.#scheduleScan();
      });
      watcher.on('error', () => this.#dropWatcher(directory, watcher));
      this.#watchers.set(directory, watcher);
      // Without this scan, files added before the watcher was active would wait for the poll.
      this.#scheduleScan();
    } catch {
      this.#watchFailed = true;
    }
  }

  #dropWatcher(directory: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory);
    this.#scheduleScan();
  }

  #schedulePoll(): void {
    if (this.#closed) return;
    this.#poll = setTimeout(
      () => {
        this.#scan();
        void this.#scanning.then(() => this.#schedulePoll());
      },
      this.#watchFailed ? FAST_POLL_MILLISECONDS : this.#pollPause,
    );
    this.#poll.unref();
  }
}
