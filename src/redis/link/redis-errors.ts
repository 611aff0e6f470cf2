// Why Redis did not run a request: separates a Redis that is unavailable or unfit from faults of grantry itself.

import { StoreUnavailableError } from '../../oauth/ports/error.ts';

/** Why Redis was not available: the reason of an {@link UnansweredError}, or what an error that it answered with means. */
export type UnavailableReason =
  | 'disconnected'
  | 'timeout'
  | 'circuit_open'
  | 'too_many_in_flight'
  | 'no_owner'
  | 'not_primary'
  | 'loading'
  | 'out_of_memory'
  | 'cannot_persist'
  | 'too_few_replicas'
  | 'busy'
  | 'cluster_down'
  | 'moving'
  | 'access_denied'
  | 'late'
  | 'not_joined';

/** A request that was not sent, or whose answer did not come. */
export class UnansweredError extends Error {
  readonly reason: UnavailableReason;

  constructor(reason: UnavailableReason, cause?: unknown) {
    super(reason, { cause });
    this.name = 'UnansweredError';
    this.reason = reason;
  }
}

/** The error of a write that the primary has and too few replicas of Redis acknowledged in time. */
export function unacknowledged({ name }: { readonly name: string }): StoreUnavailableError {
  return new StoreUnavailableError(name, undefined, { reason: 'not_acknowledged' });
}

/** The outcome, or `timeout` after that many milliseconds; what comes later is dropped. */
export function within<Value>(limit: number, outcome: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    // Timers run before sockets are read: after a stall of this process the answer may lie there already, and counts.
    const end = () => setImmediate(() => reject(new UnansweredError('timeout')));
    const timer = setTimeout(end, Math.max(limit, 0));
    outcome.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** The first word of Redis' error replies that say: not now, or not here. */
const REPLIES: Readonly<Record<string, UnavailableReason>> = {
  READONLY: 'not_primary',
  MASTERDOWN: 'not_primary',
  LOADING: 'loading',
  OOM: 'out_of_memory',
  MISCONF: 'cannot_persist',
  NOREPLICAS: 'too_few_replicas',
  BUSY: 'busy',
  CLUSTERDOWN: 'cluster_down',
  TRYAGAIN: 'moving',
  MOVED: 'moving',
  ASK: 'moving',
  NOAUTH: 'access_denied',
  NOPERM: 'access_denied',
  WRONGPASS: 'access_denied',
  UNBLOCKED: 'not_primary',
  LATE: 'late',
};

/** Redis' own error replies begin with a word in capitals; what the client itself throws does not. */
const REPLY = /^(-?[A-Z]{2,})(?: |$)/;

/** Whether this is an answer of Redis, although an error. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Why Redis could not answer; undefined when it answered and the fault is in what it was asked. */
export function unavailableReason(error: unknown): UnavailableReason | undefined {
  if (error instanceof UnansweredError) return error.reason;
  if (!isReply(error)) return 'disconnected';
  const word = REPLY.exec((error as Error).message)?.[1]?.replace(/^-/, '') ?? '';
  return REPLIES[word];
}

/** Whether a request may have been run although it failed so: it was sent, and no answer came. */
export function mayHaveRun(error: unknown): boolean {
  return error instanceof UnansweredError ? error.reason === 'timeout' : !isReply(error);
}

/** Whether a server refused because the time of a request was over. Nothing has changed there. */
export function isLate(error: unknown): boolean {
  return unavailableReason(error) === 'late';
}

/** Where a Cluster says that a key is: `MOVED` for good, `ASK` for this once. The request was not run. */
export interface Redirection {
  readonly kind: 'MOVED' | 'ASK';
  readonly slot: number;
  /** `host:port`; the host is empty when it is that of the server that answered. */
  readonly address: string;
}

/** The redirection an error is; undefined for all others. */
export function redirectionOf(error: unknown): Redirection | undefined {
  if (!isReply(error)) return undefined;
  const [, kind, slot, address] = /^(MOVED|ASK) (\d{1,5}) (\S*:\d{1,5})$/.exec((error as Error).message) ?? [];
  if (kind === undefined || address === undefined || Number(slot) > 16_383) return undefined;
  return { kind: kind as Redirection['kind'], slot: Number(slot), address };
}
