// Handles the states of a watched folder sequentially. Of the states that arrive while one is being handled, only the
// newest is handled next.

import type { FolderContents } from '../../manifests/folder.ts';

/** Passes states from the watch to one handler; the newest state from before it is set is kept for it. */
export class Follower {
  #newest: FolderContents | undefined;
  #handle: ((contents: FolderContents) => Promise<void>) | undefined;
  #running = false;

  take(contents: FolderContents): void {
    this.#newest = contents;
    void this.#run();
  }

  /** @param handle must not reject */
  follow(handle: (contents: FolderContents) => Promise<void>): void {
    this.#handle = handle;
    void this.#run();
  }

  async #run(): Promise<void> {
    if (this.#running || this.#handle === undefined) return;
    this.#running = true;
    try {
      for (let contents = this.#newest; contents !== undefined; contents = this.#newest) {
        this.#newest = undefined;
        await this.#handle(contents);
      }
    } finally {
      this.#running = false;
    }
  }
}
