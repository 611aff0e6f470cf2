// A copy of some of the cluster's objects that follows it: list, replace, watch, and what to do when the watch breaks. It
// never ends by itself and never forgets what it knows while the API server is away. The faults it lives through are the
// specification in docs/adr/0010-own-reflector.md.

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
/** A watch that is accepted and ends sooner has not watched; one that lasts is what we count as well. */
const SETTLED_MILLISECONDS = 1000;
/** How often the API server may refuse to go on from the version we know until we begin anew. */
const REFUSALS_UNTIL_LIST = 2;
/** A list that served for less is followed by the next one after a pause: a list costs the API server much. */
const LASTING_LIST_MILLISECONDS = 60_000;

/** Counters of `grantry_watch_…`; `resource` is the plural with its group. */
export interface WatchMetrics {
  /** `type` is that of the frame: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`. */
  watchEvent(resource: string, type: string): void;
  watchRestarted(resource: string, reason: RestartReason): void;
  /** A handler threw at a change, which will be told again. */
  changeRefused(resource: string): void;
}

export interface ReflectorOptions extends Selection {
  readonly api: Pick<KubernetesApi, 'list' | 'watch'>;
  readonly resource: Resource;
  /** What is kept of an object as it came; by default {@link withoutBallast}. Must not throw. */
  readonly keep?: (object: KubernetesObject, key: string) => KubernetesObject;
  /** Called for every change, one at a time. Puts a key somewhere and is done; must not throw: see change-delivery.ts. */
  readonly onChange: (change: ObjectChange) => void;
  /** Called once, when the first list has been told. */
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
  /** Between lists that follow each other although each was watched from. */
  readonly #listBackoff: Backoff;
  readonly #stopping = new AbortController();
  readonly #firstSync = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #synced = false;
  /** Where a watch goes on; undefined: list first. */
  #version: string | undefined;
  #refusals = 0;
  /** Whether the latest watch lasted. */
  #settled = false;
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

  /** Whether everything of a first list was told. Stays true while the API server is away. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Epoch milliseconds of the last sign that nothing is missed: a list, a frame, or the regular end of a watch. */
  get lastProgress(): number {
    return this.#lastProgress;
  }

  /** What is wrong now, in one line that names verb, resource, ServiceAccount and answer; undefined when all is well. */
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

  /** Begins to follow, until `stop`. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** No change is told after the promise is fulfilled. */
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

  /** One list if need be, and one watch. @returns how long to wait before the next, in milliseconds */
  async #listAndWatch(): Promise<number> {
    this.#version ??= await this.#list();
    const timeoutSeconds =
      SHORTEST_WATCH_SECONDS +
      Math.round(fraction(this.#options.random) * (LONGEST_WATCH_SECONDS - SHORTEST_WATCH_SECONDS));
    const timer = new WatchTimer({ timeoutSeconds, parent: this.#stopping.signal });
    let settling: NodeJS.Timeout | undefined;
    try {
      const frames = await this.#options.api.watch(this.#options.resource, {
        ...this.#selection(),
        resourceVersion: this.#version,
        timeoutSeconds,
        signal: timer.signal,
      });
      settling = setTimeout(() => this.#settle(), SETTLED_MILLISECONDS);
      await this.#handleFrames(frames, timer);
      if (!this.#settled) throw new WatchFault('ended_early');
    } catch (error) {
      throw timer.expired === undefined ? error : new WatchFault(timer.expired);
    } finally {
      clearTimeout(settling);
      timer.clear();
    }
    this.#progress();
    this.#settled = false;
    this.#restart('ended');
    return 0;
  }

  /** @returns the version that a watch goes on from */
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
    const { namespace, labelSelector, metadataOnly, unread } = this.#options;
    return { namespace, labelSelector, metadataOnly, unread };
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

  /** The watch lasts: whatever was wrong is over. */
  #settle(): void {
    this.#settled = true;
    this.#refusals = 0;
    this.#backoff.reset();
    this.#progress();
    if (this.#fault === undefined) return;
    this.#fault = undefined;
    this.#options.log.info({ resource: this.#name }, `watching ${this.#name} again`);
  }

  /** @returns how long to wait before the next try, in milliseconds */
  #failed(error: unknown): number {
    if (this.#stopping.signal.aborted) return 0;
    const wasSettled = this.#settled;
    this.#settled = false;
    const reason = restartReason(error);
    this.#restart(reason);
    if (reason === 'refused') this.#refusals++;
    const mustList = reason === 'expired' || reason === 'undecodable' || this.#refusals >= REFUSALS_UNTIL_LIST;
    if (mustList) this.#version = undefined;
    // A version that grew too old is nothing wrong, nor is a connection that somebody in between closed, unless what follows
    // fails too.
    const isUsual = wasSettled && (reason === 'expired' || reason === 'disconnected');
    if (!isUsual) this.#report(error);
    return mustList && wasSettled ? this.#untilNextList() : this.#backoff.next();
  }

  /** @returns how long to wait before a list in place of one that was watched from, in milliseconds */
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
