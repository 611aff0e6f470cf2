// Notices that a folder of manifests changed. Each directory is watched by itself: a recursive fs.watch goes deaf to a
// file after it was replaced by a rename. An event only says "look again"; what counts is always a whole new reading.

import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FolderContents, readFolder, sameContents } from './folder.ts';

/** Events come in bursts; one look serves them all. */
const QUIET_MILLISECONDS = 20;
/** A change counts when two looks this far apart agree, so a half-written or just replaced file is not taken for its state. */
const SETTLE_MILLISECONDS = 25;
const SETTLE_LOOKS = 4;
/** For file systems that send no events (network mounts, some containers). */
const POLL_MILLISECONDS = 2_000;
/** When the system grants no watch at all. */
const FAST_POLL_MILLISECONDS = 100;

/** Watches one folder until closed. */
export class FolderWatch {
  readonly #root: string;
  readonly #onChange: (contents: FolderContents) => void;
  readonly #watchers = new Map<string, FSWatcher>();
  #contents: FolderContents = { files: new Map(), directories: new Set(), faults: [] };
  #quiet: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #waiting = false;
  #deaf = false;
  #closed = false;

  /** @param onChange called with every new state after the first, one at a time; must not throw */
  constructor({ root, onChange }: { root: string; onChange: (contents: FolderContents) => void }) {
    this.#root = root;
    this.#onChange = onChange;
  }

  /** Begins to watch and answers the first reading. */
  async start(): Promise<FolderContents> {
    const first = await readFolder(this.#root);
    this.#contents = first;
    this.#follow(first);
    // What changed before the watches stood is found by looking once more.
    this.#wake();
    this.#schedulePoll();
    return first;
  }

  /** Stops. No call of `onChange` comes after the promise is fulfilled. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#quiet);
    clearTimeout(this.#poll);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    await this.#looking;
  }

  #wake(): void {
    if (this.#closed || this.#quiet !== undefined) return;
    this.#quiet = setTimeout(() => {
      this.#quiet = undefined;
      this.#look();
    }, QUIET_MILLISECONDS);
  }

  #look(): void {
    // At most one look runs and one waits: it will see whatever happens until it begins.
    if (this.#waiting || this.#closed) return;
    this.#waiting = true;
    this.#looking = this.#looking.then(async () => {
      this.#waiting = false;
      await this.#compare();
    });
  }

  async #compare(): Promise<void> {
    let seen = await readFolder(this.#root);
    if (this.#closed) return;
    this.#follow(seen);
    if (sameContents(seen, this.#contents)) return;
    for (let looks = 1; looks < SETTLE_LOOKS; looks++) {
      await sleep(SETTLE_MILLISECONDS);
      const again = await readFolder(this.#root);
      const settled = sameContents(seen, again);
      seen = again;
      if (settled) break;
    }
    if (this.#closed) return;
    this.#follow(seen);
    if (sameContents(seen, this.#contents)) return;
    this.#contents = seen;
    this.#onChange(seen);
  }

  /** Watches exactly the directories of this reading. */
  #follow({ directories }: FolderContents): void {
    for (const [directory, watcher] of this.#watchers) {
      if (directories.has(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    this.#deaf = false;
    for (const directory of directories) {
      if (!this.#watchers.has(directory)) this.#watch(directory);
    }
  }

  #watch(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, (event, name) => {
        // Under its own name a directory reports that it was removed or renamed: the watch hears nothing more.
        if (event === 'rename' && name === basename(directory)) this.#lost(directory, watcher);
        else this.#wake();
      });
      watcher.on('error', () => this.#lost(directory, watcher));
      this.#watchers.set(directory, watcher);
      // What was put into it before the watch stood would otherwise wait for the poll.
      this.#wake();
    } catch {
      this.#deaf = true;
    }
  }

  #lost(directory: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory);
    this.#wake();
  }

  #schedulePoll(): void {
    if (this.#closed) return;
    this.#poll = setTimeout(
      () => {
        this.#look();
        void this.#looking.then(() => this.#schedulePoll());
      },
      this.#deaf ? FAST_POLL_MILLISECONDS : POLL_MILLISECONDS,
    );
    this.#poll.unref();
  }
}
