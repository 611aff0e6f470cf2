// The watermark store over a Map. Watermarks only rise and never expire: the lifetime of a grant is a setting of its
// client, and a watermark that expired earlier would revive ended grants.

import type { Clock } from '../oauth/ports/ports.ts';
import type { WatermarkStore, WatermarkSubject } from '../oauth/ports/token-stores.ts';
import type { ExpiringMap } from './expiring-map.ts';

/** {@link WatermarkStore} in this process. */
export class MemoryWatermarks implements WatermarkStore {
  readonly #clock: Clock;
  readonly #times: ExpiringMap<number>;

  constructor({ clock, times }: { clock: Clock; times: ExpiringMap<number> }) {
    this.#clock = clock;
    this.#times = times;
  }

  async raise(subject: WatermarkSubject, time?: number): Promise<void> {
    this.raiseNow(subject, time);
  }

  /** The synchronous form of `raise`. */
  raiseNow(subject: WatermarkSubject, time = this.#clock.now()): void {
    const key = keyOf(subject);
    if (time > this.#time(key)) this.#times.set(key, time, Number.POSITIVE_INFINITY);
  }

  async read(clientUid: string, subject: string | undefined): Promise<number> {
    return this.highest(clientUid, subject);
  }

  /** The synchronous form of `read`. */
  highest(clientUid: string, subject: string | undefined): number {
    const ofClient = Math.max(this.#time('global'), this.#time(keyOf({ kind: 'client', clientUid })));
    return subject === undefined ? ofClient : Math.max(ofClient, this.highestOfPerson(clientUid, subject));
  }

  /** The highest of the watermarks that end a sign-in: of a client's people, not of the client. */
  highestOfPerson(clientUid: string, subject: string): number {
    const ofConsent = this.#time(keyOf({ kind: 'consent', clientUid, subject }));
    return Math.max(this.#time('global'), this.ofUser(subject), ofConsent);
  }

  ofUser(subject: string): number {
    return this.#time(keyOf({ kind: 'user', subject }));
  }

  #time(key: string): number {
    return this.#times.get(key) ?? 0;
  }
}

function keyOf(subject: WatermarkSubject): string {
  switch (subject.kind) {
    case 'global':
      return 'global';
    case 'client':
      return `client ${subject.clientUid}`;
    case 'user':
      return `user ${subject.subject}`;
    case 'consent':
      return JSON.stringify(['consent', subject.clientUid, subject.subject]);
  }
}
