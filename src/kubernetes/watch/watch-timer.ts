// Finds a watch that died without a word: it must end by itself shortly after the time it was asked for, and where the
// API server sends bookmarks, about one a minute, it must not be silent for long.

/** What the API server may take beyond the time it was asked to watch for. */
const GRACE_MILLISECONDS = 15_000;
/** Without a frame, once there was a bookmark. */
const IDLE_MILLISECONDS = 150_000;

export class WatchTimer {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #deadline: NodeJS.Timeout;
  #idle: NodeJS.Timeout | undefined;
  #expired: 'deadline' | 'idle' | undefined;

  /** @param options.parent ends the watch too */
  constructor({ timeoutSeconds, parent }: { readonly timeoutSeconds: number; readonly parent: AbortSignal }) {
    this.#parent = parent;
    if (parent.aborted) this.#controller.abort();
    parent.addEventListener('abort', this.#abort);
    this.#deadline = setTimeout(() => this.#expire('deadline'), timeoutSeconds * 1000 + GRACE_MILLISECONDS);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Which limit ended the watch, if one did. */
  get expired(): 'deadline' | 'idle' | undefined {
    return this.#expired;
  }

  /** Called for every frame. */
  frame(type: string): void {
    if (this.#idle !== undefined) this.#idle.refresh();
    else if (type === 'BOOKMARK') this.#idle = setTimeout(() => this.#expire('idle'), IDLE_MILLISECONDS);
  }

  clear(): void {
    clearTimeout(this.#deadline);
    clearTimeout(this.#idle);
    this.#parent.removeEventListener('abort', this.#abort);
  }

  readonly #abort = () => this.#controller.abort();

  #expire(which: 'deadline' | 'idle'): void {
    this.#expired = which;
    this.#controller.abort();
  }
}
