// The store of uses over a Map: when clients got codes and tokens for people.

import { type ClientUse, USE_INTERVAL, USE_MEMORY, type UseStore } from '../oauth/ports/login-stores.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import type { ExpiringMap } from './expiring-map.ts';

interface UseRecord extends ClientUse {
  readonly subject: string;
}

/** {@link UseStore} in this process. */
export class MemoryUses implements UseStore {
  readonly #clock: Clock;
  readonly #uses: ExpiringMap<UseRecord>;

  constructor({ clock, uses }: { clock: Clock; uses: ExpiringMap<UseRecord> }) {
    this.#clock = clock;
    this.#uses = uses;
  }

  async note(subject: string, clientUid: string): Promise<void> {
    this.recordUse(subject, clientUid);
  }

  /** As `note`, within the action of another store. */
  recordUse(subject: string, clientUid: string): void {
    const key = keyOf(subject, clientUid);
    const before = this.#uses.get(key);
    const now = this.#clock.now();
    if (before !== undefined && now - before.lastUsed < USE_INTERVAL) return;
    const firstUsed = before?.firstUsed ?? now;
    this.#uses.set(key, { subject, clientUid, firstUsed, lastUsed: now }, now + USE_MEMORY);
  }

  async forget(subject: string, clientUid: string): Promise<void> {
    this.#uses.delete(keyOf(subject, clientUid));
  }

  /** Forgets all uses of a person. */
  forgetAll(subject: string): void {
    this.#uses.deleteWhere((record) => record.subject === subject);
  }

  async list(subject: string): Promise<readonly ClientUse[]> {
    const records = this.#uses.valuesWhere((record) => record.subject === subject);
    return records.map(({ clientUid, firstUsed, lastUsed }) => ({ clientUid, firstUsed, lastUsed }));
  }
}

function keyOf(subject: string, clientUid: string): string {
  return JSON.stringify([subject, clientUid]);
}
