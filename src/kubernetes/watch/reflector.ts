// A reflector: it lists and watches the objects of one kind and keeps a cache of them. It restarts the watch after
// every fault, never ends by itself, and keeps its cache while the API server is unavailable.
// docs/adr/0010-own-reflector.md specifies the faults that it handles.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import { Backoff, fraction } from '../../oauth/values/backoff.ts';
import type { KubernetesApi, Selection, WatchFrame } from '../api/kubernetes-api.ts';
import { sleep } from '../api/sleep.ts';
import { type KubernetesObject, type Resource, resourceName } from '../objects/resources.ts';
import { listAll } from './listing.ts';
import { type ObjectChange, ObjectStore, withoutBallast } from './object-store.ts';
import { type RestartReason, restartReason, WatchFault } from './watch-faults.ts';
import { WatchTimer } from './watch-timer.ts';

const SHORTEST_WATCH_SECONDS = 240;
const LONGEST_WATCH_SECONDS = 480;
/** A watch that ends sooner has failed; one that lasts this long is established and clears the fault. */
const ESTABLISHED_MILLISECONDS = 1000;
/** How many watches from the latest known version the API server may refuse before the reflector relists. */
const REFUSALS_UNTIL_LIST = 2;
/** After a list that is younger than this, a relist backs off: a list is expensive for the API server. */
const LASTING_LIST_MILLISECONDS = 60_000;

/** Counters of `grantry_watch_…`; `resource` is the plural with its group. */
export interface WatchMetrics {
  /** `type` is that of the frame: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`. */
  watchEvent(resource: string, type: string): void;
  watchRestarted(resource: string, reason: RestartReason): void;
  /** A handler threw at a change, which will be delivered again. */
  changeRefused(resource: string): void;
}

export interface ReflectorOptions extends Selection {
  readonly api: Pick<KubernetesApi, 'list' | 'watch'>;
  readonly resource: Resource;
  /** The form in which an object is stored; by default {@link withoutBallast}. Must not throw. */
  readonly keep?: (object: KubernetesObject, key: string) => KubernetesObject;
  /** Called for every change, one at a time. Enqueues a key and returns; must not throw: see change-delivery.ts. */
  readonly onChange: (change: ObjectChange) => void;
  /** Called once, when the first list has been delivered. */
  readonly onSynced?: () => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly metrics: WatchMetrics;
}

export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #name: string;
  readonly #store: ObjectStore;
  readonly #backoff: Backoff;
  /** Between relists that each follow an established watch. */
  readonly #listBackoff: Backoff;
  readonly #stopping = new AbortController();
  readonly #firstSync = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #synced = false;
  /** The version at which the next watch starts; undefined: list first. */
  #version: string | undefined;
  #refusals = 0;
  #isEstablished = false;
  #fault: string | undefined;
  #lastProgress: number;
  #listedAt: number;

  constructor(options: ReflectorOptions) {
    this.#options = options;
    this.#name = resourceName(options.resource);
    this.#backoff = new Backoff({ first: 500, longest: 30_000, random: options.random });
    this.#listBackoff = new Backoff({ first: 500, longest: 30_000, random: options.random });
    this.#lastProgress = this.#listedAt = options.clock.now();
    this.#store = new ObjectStore({ prune: options.keep ?? withoutBallast, onChange: options.onChange });
  }

  /** Whether the first list was delivered. Stays true while the API server is unavailable. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Epoch milliseconds of the latest list, frame, or regular end of a watch: nothing was missed until then. */
  get lastProgress(): number {
    return this.#lastProgress;
  }

  /** The present fault in one line that names verb, resource, user and response; undefined without one. */
  get fault(): string | undefined {
    return this.#fault;
  }

  get(key: string): KubernetesObject | undefined {
    return this.#store.get(key);
  }

  objects(): Iterable<KubernetesObject> {
    return this.#store.objects();
  }

  whenSynced(): Promise<void> {
    return this.#firstSync.promise;
  }

  /** Lists and watches until `stop`. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** No change is delivered after the promise is fulfilled. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const wait = await this.#listAndWatch().catch((error: unknown) => this.#failed(error));
      if (wait > 0) await sleep(wait, signal);
    }
  }

  /** One list if needed, and one watch. @returns the delay before the next, in milliseconds */
  async #listAndWatch(): Promise<number> {
    this.#version ??= await this.#list();
    const timeoutSeconds =
      SHORTEST_WATCH_SECONDS +
      Math.round(fraction(this.#options.random) * (LONGEST_WATCH_SECONDS - SHORTEST_WATCH_SECONDS));
    const timer = new WatchTimer({ timeoutSeconds, parent: this.#stopping.signal });
    let establishing: NodeJS.Timeout | undefined;
    try {
      const frames = await this.#options.api.watch(this.#options.resource, {
        ...this.#selection(),
        resourceVersion: this.#version,
        timeoutSeconds,
        signal: timer.signal,
      });
      establishing = setTimeout(() => this.#established(), ESTABLISHED_MILLISECONDS);
      await this.#handleFrames(frames, timer);
      if (!this.#isEstablished) throw new WatchFault('ended_early');
    } catch (error) {
      throw timer.expired === undefined ? error : new WatchFault(timer.expired);
    } finally {
      clearTimeout(establishing);
      timer.clear();
    }
    this.#progress();
    this.#isEstablished = false;
    this.#restart('ended');
    return 0;
  }

  /** @returns the version at which a watch starts */
  async #list(): Promise<string> {
    const { signal } = this.#stopping;
    const { objects, resourceVersion } = await listAll({
      api: this.#options.api,
      resource: this.#options.resource,
      selection: this.#selection(),
      signal,
      keep: (key, object) => this.#store.pruned(key, object),
    });
    await this.#store.replace(objects, { yieldToEventLoop, signal });
    this.#listed();
    return resourceVersion;
  }

  #selection(): Selection {
    const { namespace, labelSelector, fieldSelector, metadataOnly, unread } = this.#options;
    return { namespace, labelSelector, fieldSelector, metadataOnly, unread };
  }

  #listed(): void {
    this.#progress();
    this.#listedAt = this.#lastProgress;
    if (this.#synced || this.#stopping.signal.aborted) return;
    this.#synced = true;
    this.#firstSync.resolve();
    this.#options.onSynced?.();
  }

  async #handleFrames(frames: AsyncIterable<WatchFrame>, timer: WatchTimer): Promise<void> {
    for await (const frame of frames) {
      if (this.#stopping.signal.aborted) return;
      this.#options.metrics.watchEvent(this.#name, frame.type);
      if (frame.type === 'ERROR') throw frame.error;
      timer.frame(frame.type);
      if (frame.type === 'BOOKMARK') this.#version = frame.resourceVersion;
      else {
        if (frame.type === 'DELETED') this.#store.delete(frame.object);
        else this.#store.put(frame.object);
        this.#version = frame.object.metadata.resourceVersion;
      }
      this.#progress();
    }
  }

  #progress(): void {
    this.#lastProgress = this.#options.clock.now();
  }

  /** The watch is established: the fault is over. */
  #established(): void {
    this.#isEstablished = true;
    this.#refusals = 0;
    this.#backoff.reset();
    this.#progress();
    if (this.#fault === undefined) return;
    this.#fault = undefined;
    this.#options.log.info({ resource: this.#name }, `watching ${this.#name} again`);
  }

  /** @returns the delay before the next attempt, in milliseconds */
  #failed(error: unknown): number {
    if (this.#stopping.signal.aborted) return 0;
    const wasEstablished = this.#isEstablished;
    this.#isEstablished = false;
    const reason = restartReason(error);
    this.#restart(reason);
    if (reason === 'refused') this.#refusals++;
    const mustList = reason === 'expired' || reason === 'undecodable' || this.#refusals >= REFUSALS_UNTIL_LIST;
    if (mustList) this.#version = undefined;
    // An expired version is no fault, nor is a connection that a proxy closed, unless the next attempt fails too.
    const isUsual = wasEstablished && (reason === 'expired' || reason === 'disconnected');
    if (!isUsual) this.#report(error);
    return mustList && wasEstablished ? this.#untilNextList() : this.#backoff.next();
  }

  /** @returns the delay before a relist after an established watch, in milliseconds */
  #untilNextList(): number {
    if (this.#options.clock.now() - this.#listedAt < LASTING_LIST_MILLISECONDS) return this.#listBackoff.next();
    this.#listBackoff.reset();
    return 0;
  }

  #restart(reason: RestartReason): void {
    this.#options.metrics.watchRestarted(this.#name, reason);
  }

  #report(error: unknown): void {
    const { message } = error as Error;
    const fault = error instanceof WatchFault ? `watch ${this.#name}: ${message}` : message;
    if (this.#fault === fault) return;
    this.#fault = fault;
    this.#options.log.warn({ resource: this.#name }, fault);
  }
}
