// Records in the store which clients renew tokens for which people, for the account page; the store records a code with
// its grant. No answer waits for it, and no fault of it reaches a client.

import type { Logger } from 'pino';
import type { Audit, AuditEvent } from '../ports/audit.ts';
import { StoreUnavailableError } from '../ports/error.ts';
import { describeFault } from '../ports/fault.ts';
import { USE_INTERVAL, type UseStore } from '../ports/login-stores.ts';
import type { Clock } from '../ports/ports.ts';
import type { RegistryRef } from '../registry/registry.ts';
import { RecentValues } from '../values/recent-values.ts';

/** Pairs of a person and a client whose last recorded use this replica remembers; the store decides on the uses of others. */
const MIN_REMEMBERED = 20_000;

export interface UseRecorderOptions {
  readonly audit: Audit;
  readonly uses: Pick<UseStore, 'note'>;
  readonly registry: RegistryRef;
  readonly clock: Clock;
  readonly log: Logger;
}

/** An audit stream that records the uses among its events. */
export class UseRecorder implements Audit {
  readonly #parts: UseRecorderOptions;
  /** When this replica last recorded a use, by subject and client uid. */
  readonly #recordedAt = new RecentValues<number>(MIN_REMEMBERED);

  constructor(parts: UseRecorderOptions) {
    this.#parts = parts;
  }

  record(event: AuditEvent): void {
    this.#parts.audit.record(event);
    this.#observe(event);
  }

  #observe({ type, clientId, subject, grantId }: AuditEvent): void {
    if (type !== 'token.issued' && type !== 'token.refreshed') return;
    // Without a grant the subject is the client itself.
    if (grantId === undefined || subject === undefined || clientId === undefined) return;
    const { registry, clock } = this.#parts;
    const clientUid = registry.current.find(clientId)?.uid;
    if (clientUid === undefined) return;
    const key = JSON.stringify([subject, clientUid]);
    const now = clock.now();
    if (now - (this.#recordedAt.get(key) ?? 0) < USE_INTERVAL) return;
    this.#recordedAt.set(key, now);
    // The store recorded the use of a code when it issued it, a minute ago at most.
    if (type === 'token.refreshed') void this.#note(subject, clientUid);
  }

  async #note(subject: string, clientUid: string): Promise<void> {
    const { uses, log } = this.#parts;
    try {
      await uses.note(subject, clientUid);
    } catch (error) {
      // The store is measured and logged where requests need it.
      if (error instanceof StoreUnavailableError) return;
      log.error({ cause: describeFault(error) }, 'the use of a client cannot be recorded: the next one will be');
    }
  }
}
