// Detects a watch whose connection is lost. The API server must end a watch shortly after the requested time, and where
// it sends bookmarks, about one a minute, it must send a frame within {@link IDLE_MILLISECONDS}.

/** How long a watch may last beyond the requested time. */
const GRACE_MILLISECONDS = 15_000;
/** The longest time without a frame, once there was a bookmark. */
const IDLE_MILLISECONDS = 150_000;

export class WatchTimer {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #deadline: NodeJS.Timeout;
  #idle: NodeJS.Timeout | undefined;
  #expired: 'deadline' | 'idle' | undefined;

  /** @param parent a signal that aborts the watch, too */
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
