// Events about objects, as `kubectl describe` shows them. They are a courtesy: what repeats becomes a count, what comes too
// fast or cannot be written is dropped, and nobody waits for them.

import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { NewObject } from '../../kubernetes/api/kubernetes-api.ts';
import { microTime } from '../../kubernetes/api/micro-time.ts';
import { EVENTS, type KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import { EventLimits } from './event-limits.ts';

const CONTROLLER = 'grantry.dev/controller';
/** The same again within this time counts up; after it, it is news. Milliseconds. */
const SERIES_MILLISECONDS = 10 * 60_000;
/** How often the count of a series is written. */
const COUNT_MILLISECONDS = 60_000;
const REMEMBERED = 4096;
const LONGEST_NOTE_BYTES = 1024;

export interface EventFacts {
  /** What it is about. */
  readonly regarding: KubernetesObject;
  readonly type: 'Normal' | 'Warning';
  /** A word in CamelCase. */
  readonly reason: string;
  /** What was done or tried, a word in CamelCase. */
  readonly action: string;
  /** A sentence for people; nothing secret. */
  readonly note: string;
  /** Whether somebody may have been robbed. No other Event, however many come, keeps it from being written. */
  readonly isAlert?: boolean;
}

interface Series {
  readonly event: NewObject;
  count: number;
  lastAt: number;
  /** Until the count is written. */
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
    // The youngest last: the oldest is forgotten first.
    this.#series.delete(key);
    this.#series.set(key, begun);
    this.#forget();
    this.#write(begun.event);
  }

  /** Writes no count any more. */
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
  /** Which process says it. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug'>;
}

/** Where the API server wants the Events about an object. */
function namespaceFor({ metadata: { namespace = 'default' } }: KubernetesObject): string {
  return namespace;
}

function seriesKey({ regarding, type, reason, action, note }: EventFacts): string {
  return JSON.stringify([regarding.metadata.uid, type, reason, action, note]);
}

/** The API server refuses a note beyond its bytes. */
function bounded(note: string): string {
  if (Buffer.byteLength(note) <= LONGEST_NOTE_BYTES) return note;
  // A cut through a character leaves a replacement mark, which is longer than what it stands for.
  return `${Buffer.from(note)
    .subarray(0, LONGEST_NOTE_BYTES - 8)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}…`;
}
