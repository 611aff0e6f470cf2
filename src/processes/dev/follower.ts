// Takes the states of a watched folder one after the other; of those that come while one is being handled only the newest
// counts.

import type { FolderContents } from '../../manifests/folder.ts';

/** States from the watch to whoever follows; what comes before anybody does is kept. */
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
