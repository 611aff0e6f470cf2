// Records Events about objects, as `kubectl describe` shows them. Best effort: repetitions become the count of a
// series, Events over the rate limit or that fail to be written are dropped, and no reconcile waits for them.

import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { NewObject } from '../../kubernetes/api/kubernetes-api.ts';
import { microTime } from '../../kubernetes/api/micro-time.ts';
import { EVENTS, type KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { EventLimits } from './event-limits.ts';

const CONTROLLER = 'grantry.dev/controller';
/** A repetition within this time is counted in the series; a later one is a new Event. Milliseconds. */
const SERIES_MILLISECONDS = 10 * 60_000;
/** How often the count of a series is written. */
const COUNT_MILLISECONDS = 60_000;
const REMEMBERED = 4096;
const LONGEST_NOTE_BYTES = 1024;

export interface EventFacts {
  /** The object that the Event is about. */
  readonly regarding: KubernetesObject;
  readonly type: 'Normal' | 'Warning';
  /** A word in CamelCase. */
  readonly reason: string;
  /** What was done or tried, a word in CamelCase. */
  readonly action: string;
  /** A sentence for people; nothing secret. */
  readonly note: string;
  /**
   * Whether it reports a possible theft. Alerts have limits of their own, so that no number of other Events suppresses
   * one.
   */
  readonly isAlert?: boolean;
}

interface Series {
  readonly event: NewObject;
  count: number;
  lastAt: number;
  /** The pending write of the count. */
  timer: NodeJS.Timeout | undefined;
}

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #limits = new EventLimits();
  readonly #limitsOfAlerts = new EventLimits();
  readonly #series = new Map<string, Series>();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Never throws, and returns before anything was written. */
  record(facts: EventFacts): void {
    const { clock, namespaces } = this.#options;
    if (namespaces?.includes(namespaceFor(facts.regarding)) === false) return;
    const now = clock.now();
    const key = seriesKey(facts);
    const series = this.#series.get(key);
    if (series !== undefined && now - series.lastAt < SERIES_MILLISECONDS) {
      series.count++;
      series.lastAt = now;
      series.timer ??= setTimeout(() => this.#writeCount(series), COUNT_MILLISECONDS).unref();
      return;
    }
    const limits = facts.isAlert ? this.#limitsOfAlerts : this.#limits;
    if (!limits.tryTake(facts.regarding)) return;
    const begun: Series = { event: this.#event(facts, now), count: 1, lastAt: now, timer: undefined };
    // Moved to the end: the oldest is evicted first.
    this.#series.delete(key);
    this.#series.set(key, begun);
    this.#forget();
    this.#write(begun.event);
  }

  /** Cancels the pending writes of counts. */
  stop(): void {
    for (const { timer } of this.#series.values()) clearTimeout(timer);
    this.#series.clear();
  }

  #forget(): void {
    for (const [key, { timer }] of this.#series) {
      if (this.#series.size <= REMEMBERED) break;
      clearTimeout(timer);
      this.#series.delete(key);
    }
  }

  #writeCount(series: Series): void {
    series.timer = undefined;
    this.#write({ ...series.event, series: { count: series.count, lastObservedTime: microTime(series.lastAt) } });
  }

  #write(event: NewObject): void {
    this.#options.api.apply(EVENTS, event).catch((error: Error) => {
      this.#options.log.debug({ fault: error.message }, 'an event was not written');
    });
  }

  #event({ regarding, type, reason, action, note }: EventFacts, now: number): NewObject {
    const { apiVersion, kind, metadata } = regarding;
    const { name, uid, resourceVersion } = metadata;
    const place = metadata.namespace === undefined ? {} : { namespace: metadata.namespace };
    // Names of events are the object's with a suffix that differs for each, as those of other controllers.
    const suffix = createHash('sha256').update(`${uid} ${reason} ${action} ${note} ${now}`).digest('hex').slice(0, 16);
    return {
      metadata: { namespace: namespaceFor(regarding), name: `${name.slice(0, 236)}.${suffix}` },
      eventTime: microTime(now),
      reportingController: CONTROLLER,
      reportingInstance: this.#options.instance.slice(0, 128),
      type,
      reason,
      action,
      note: bounded(note),
      regarding: { apiVersion, kind, name, ...place, uid, resourceVersion },
    };
  }
}

export interface EventRecorderOptions {
  readonly api: LeaderApi;
  /** Where Events may be written; undefined: everywhere. */
  readonly namespaces?: readonly string[] | undefined;
  /** The identity of this process. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug'>;
}

/** The namespace that the API server requires for Events about an object. */
function namespaceFor({ metadata: { namespace = 'default' } }: KubernetesObject): string {
  return namespace;
}

function seriesKey({ regarding, type, reason, action, note }: EventFacts): string {
  return JSON.stringify([regarding.metadata.uid, type, reason, action, note]);
}

/** Cuts a note to the length that the API server accepts. */
function bounded(note: string): string {
  if (Buffer.byteLength(note) <= LONGEST_NOTE_BYTES) return note;
  // A cut through a character leaves a replacement mark, which is longer than what it stands for.
  return `${Buffer.from(note)
    .subarray(0, LONGEST_NOTE_BYTES - 8)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}…`;
}
