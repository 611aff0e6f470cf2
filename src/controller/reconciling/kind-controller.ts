// The frame of a controller of one kind: a work queue, and the listeners that fill it while this process leads.

import { WorkQueue, type WorkQueueOptions } from './work-queue.ts';

export type KindControllerOptions = Omit<WorkQueueOptions, 'reconcile'>;

/** What runs beside the queue of a kind, and ends with it. */
interface Companion {
  /** How many keys are queued or being reconciled. */
  readonly size?: number;
  start(): void;
  stop(): Promise<void>;
}

export abstract class KindController {
  protected readonly queue: WorkQueue;
  /** Set in the constructor of the kind. */
  protected companions: readonly Companion[] = [];
  #endListening: readonly (() => void)[] = [];

  constructor(options: KindControllerOptions) {
    this.queue = new WorkQueue({ ...options, reconcile: (key) => this.reconcile(key) });
  }

  /** Reconciles the object of a key; see {@link WorkQueueOptions.reconcile}. */
  protected abstract reconcile(key: string): Promise<number | undefined>;

  /** Follows changes, and queues what they are about. @returns what ends that */
  protected abstract listen(): readonly (() => void)[];

  /** Queues what there is when the process begins to lead; `listen` was called before. */
  protected abstract begin(): void;

  /** How many keys are queued or being reconciled. */
  get queued(): number {
    return this.companions.reduce((sum, { size = 0 }) => sum + size, this.queue.size);
  }

  /** Queues every object, then follows changes until `stop`. */
  start(): void {
    this.#endListening = this.listen();
    this.begin();
    this.queue.start();
    for (const companion of this.companions) companion.start();
  }

  /** Nothing is written after the promise is fulfilled. */
  async stop(): Promise<void> {
    for (const end of this.#endListening) end();
    await Promise.all([this.queue, ...this.companions].map((each) => each.stop()));
  }
}
