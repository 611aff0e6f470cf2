// Checks a history against the promises of the state in Redis: no code is redeemed twice, no revoked family is accepted
// again, no active one is lost unless the fault may cost it, nothing is called active while blind, one alert for each
// family, and requests succeed soon after recovery.

import type { AlertSeen, Fault, History, Operation, Seen } from './history.ts';

/** A promise that was broken, and what shows it. */
export interface Violation {
  readonly promise:
    | 'a code is redeemed once'
    | 'a token has one successor'
    | 'a revoked family stays revoked'
    | 'what was lost with Redis stays lost'
    | 'an active family is kept'
    | 'a code in flight is kept'
    | 'nothing is active while blind'
    | 'one alert for each family'
    | 'no alert without a cause'
    | 'an alert for each cause'
    | 'requests succeed within two seconds after recovery'
    | 'a full memory refuses only what stores'
    | 'an answer is one of those documented';
  /** Or the name of the fault, where the promise is about no grant. */
  readonly grantId: string;
  readonly operations: readonly Operation[];
}

/** By when a replica has noticed what happened to Redis and done its part, after it answers again; milliseconds. */
export const NOTICED = 2000;

/**
 * From when on a request that is sent may not fail any more, after a server that can answer it has recovered; milliseconds.
 * One second is promised. Another is for the machine: on two cores the servers, the replicas and the clients all start over
 * at once, and the clock of the promise is read by one more process that waits for a core.
 */
export const RECOVERED = 2000;

/** By when an alert that its replica did not report is reported by another one, in milliseconds. */
export const SWEPT = 20_000;

/** By when a replica has recorded that its line of an alert is written, in milliseconds: half a second if it is not busy. */
const RECORDED = 2000;

/** How long a refresh may be repeated, in milliseconds: what a client has that says nothing about it. */
const GRACE = 10_000;

/** Every broken promise; empty when all were kept. */
export function checkHistory(history: History): readonly Violation[] {
  const grants = Map.groupBy(history.operations, ({ grantId }) => grantId);
  const alerts = Map.groupBy(history.alerts ?? [], ({ grantId }) => grantId);
  const ofGrants = [...grants].flatMap(([grantId, operations]) => {
    const grant = new GrantHistory(operations, history.faults);
    const own = history.alerts === undefined ? [] : grant.alertViolations(alerts.get(grantId) ?? []);
    return [...grant.violations(), ...own].map((each) => ({ ...each, grantId }));
  });
  const strangers = [...alerts.keys()].filter((grantId) => !grants.has(grantId));
  return [
    ...ofGrants,
    ...history.faults.flatMap(servesLate),
    ...strangers.map((grantId) => ({ promise: 'no alert without a cause' as const, grantId, operations: [] })),
  ];
}

/**
 * From when on no alert is reported again: what a fail-over has lost of one is made good within this time, and the next sweep
 * reports it, unless it is recorded there that a replica has. Minus infinity where nothing is made good.
 */
export function allReported(faults: readonly Fault[]): number {
  const partial = faults.filter(({ lostSince }) => Number.isFinite(lostSince));
  return Math.max(...partial.map(({ to }) => to + SWEPT));
}

/** Whether all of this happened while something could not be known that its answer depends on. */
export function isBlind({ begin, end, shards }: Operation, faults: readonly Fault[]): boolean {
  return faults.some(({ blind }) => {
    if (blind === undefined || begin < blind.from || blind.to < end) return false;
    return blind.shards === undefined || shards.some((shard) => blind.shards?.has(shard));
  });
}

/** Every replica signs people in, redeems and refreshes soon after all is as before. How long that takes says nothing. */
function servesLate({ name, over, lastFailure = over }: Fault): readonly Violation[] {
  if (lastFailure <= over + RECOVERED) return [];
  return [{ promise: 'requests succeed within two seconds after recovery', grantId: name, operations: [] }];
}

/** Whether a client was left without what it asked for, for want of a server that knows. */
export function isUnanswered({ kind }: Seen): boolean {
  return kind === 'unavailable' || kind === 'lost';
}

type Found = Omit<Violation, 'grantId'>;

class GrantHistory {
  readonly #operations: readonly Operation[];
  readonly #faults: readonly Fault[];

  constructor(operations: readonly Operation[], faults: readonly Fault[]) {
    this.#operations = operations;
    this.#faults = faults;
  }

  violations(): readonly Found[] {
    const redemptions = this.#operations.filter(({ kind, seen }) => kind === 'redeem' && seen.kind === 'granted');
    return [
      ...(redemptions.length > 1 ? [{ promise: 'a code is redeemed once' as const, operations: redemptions }] : []),
      ...this.#operations.flatMap((operation) => this.#faultOf(operation)),
    ];
  }

  #faultOf(operation: Operation): readonly Found[] {
    const { kind, seen, generation } = operation;
    if (seen.kind === 'unexpected')
      return [{ promise: 'an answer is one of those documented', operations: [operation] }];
    if (kind === 'refresh' && seen.kind === 'granted' && seen.generation !== (generation ?? 0) + 1) {
      return [{ promise: 'a token has one successor', operations: [operation] }];
    }
    if (isUnanswered(operation.seen)) return this.#unansweredWrongly(operation);
    if (isActive(operation)) return this.#activeWrongly(operation);
    if (isInactive(operation)) return this.#inactiveWrongly(operation);
    return [];
  }

  #unansweredWrongly(operation: Operation): readonly Found[] {
    const { kind, begin, end } = operation;
    const around = this.#faults.filter(({ from, mended }) => from <= end && begin <= mended + RECOVERED);
    if (around.length === 0)
      return [{ promise: 'requests succeed within two seconds after recovery', operations: [operation] }];
    const isStoring = kind === 'redeem' || kind === 'refresh';
    if (isStoring || around.some(({ isOnlyFull }) => !isOnlyFull)) return [];
    return [{ promise: 'a full memory refuses only what stores', operations: [operation] }];
  }

  #activeWrongly(operation: Operation): readonly Found[] {
    const found: Found[] = [];
    if (isBlind(operation, this.#faults)) {
      found.push({ promise: 'nothing is active while blind', operations: [operation] });
    }
    const revocation = this.#operations.find(
      (other) => other.end < operation.begin && this.#isRevocation(other) && !this.#mayBeUndone(other, operation),
    );
    if (revocation !== undefined)
      found.push({ promise: 'a revoked family stays revoked', operations: [revocation, operation] });
    const survives = this.#faults.some(
      ({ lostSince, back, from, to }) =>
        lostSince === Number.NEGATIVE_INFINITY &&
        back === undefined &&
        operation.given < from &&
        to + NOTICED < operation.begin,
    );
    if (survives) found.push({ promise: 'what was lost with Redis stays lost', operations: [operation] });
    return found;
  }

  /** Whether this revoked the family for sure: a revocation called done, or a misuse refused. */
  #isRevocation({ kind, intent, given, end, begin, seen }: Operation): boolean {
    if (seen.kind === 'revoked') return true;
    if (kind === 'introspect' || intent !== 'misuse' || seen.kind !== 'refused') return false;
    // So is whatever a server does not know that came up empty.
    const isUnknown = this.#faults.some(({ back, from }) => back !== undefined && from <= end && begin <= back.from);
    if (isUnknown) return false;
    // And a refresh token by one that never saw its code redeemed.
    if (kind === 'refresh') return !this.#faults.some((fault) => mayLose(fault, given) && fault.from <= end);
    // A code is also refused by a server that has never seen its redemption.
    return this.#isRedeemed(begin) || !this.#breaksLogin(given, end);
  }

  #breaksLogin(issued: number, end: number): boolean {
    return this.#faults.some(({ breaksLogins, from, to }) => breaksLogins && issued <= to && from <= end);
  }

  /** Whether the server that answers now may not know a revocation: lost in a fail-over, and not yet applied again. */
  #mayBeUndone(revocation: Operation, active: Operation): boolean {
    return this.#faults.some(
      (fault) => mayLose(fault, revocation.end) && fault.from <= active.end && active.begin <= fault.to + NOTICED,
    );
  }

  #inactiveWrongly(operation: Operation): readonly Found[] {
    const { kind, intent, given, end } = operation;
    if (intent === 'misuse') return [];
    const isRevoked = this.#operations.some(
      (other) => (other !== operation && mayRevoke(other) && other.begin < end) || this.#isLate(other, end),
    );
    const isLost = this.#faults.some(
      (fault) => mayLose(fault, given) && fault.from <= end && !isRecovered(fault, operation),
    );
    if (isRevoked || isLost) return [];
    if (kind !== 'redeem') return [{ promise: 'an active family is kept', operations: [operation] }];
    return this.#breaksLogin(given, end) ? [] : [{ promise: 'a code in flight is kept', operations: [operation] }];
  }

  /**
   * Whether this refresh, before then, repeated one that got no answer when its grace was over: it looks like reuse, as the
   * table says. Only a very busy machine is so slow. It does not where a replica refused that one, once it has said so.
   */
  #isLate(operation: Operation, before: number): boolean {
    const { kind, generation, begin, end, seen } = operation;
    return (
      kind === 'refresh' &&
      seen.kind !== 'granted' &&
      begin < before &&
      this.#operations.some(
        (other) =>
          other.kind === 'refresh' &&
          other.generation === generation &&
          other.begin + GRACE < end &&
          (other.seen.kind === 'lost' || (other.seen.kind === 'unavailable' && this.#isUnsaid(other, begin))),
      )
    );
  }

  /** Whether a replica that refused this may not have said yet, at that moment, that no token was given. */
  #isUnsaid(refused: Operation, moment: number): boolean {
    return this.#faults.some(({ from, to }) => from <= refused.end && refused.begin <= to && moment <= to + NOTICED);
  }

  alertViolations(alerts: readonly AlertSeen[]): readonly Found[] {
    const operations = this.#operations;
    const first = Math.min(...operations.map(({ begin }) => begin));
    const last = Math.max(...operations.map(({ end }) => end)) + SWEPT;
    const faults = this.#faults.filter(({ from, to }) => first <= to && from <= last);
    const lossy = faults.filter(({ lostSince }) => lostSince !== undefined);
    const misuses = (kind: Operation['kind']) =>
      operations.filter((operation) => operation.kind === kind && operation.intent === 'misuse');
    const causes: Readonly<Record<string, boolean>> = {
      'refresh_token.reuse_detected':
        misuses('refresh').length > 0 || operations.some((each) => this.#isLate(each, Number.POSITIVE_INFINITY)),
      'authorization_code.replayed': misuses('redeem').length > 0,
      state_lost: lossy.length > 0,
    };
    const found: Found[] = [];
    for (const [type, those] of Map.groupBy(alerts, (alert) => alert.type)) {
      if (causes[type] !== true) found.push({ promise: 'no alert without a cause', operations });
      if (those.length > 1 && !this.#mayBeReportedTwice(type, those, faults))
        found.push({ promise: 'one alert for each family', operations });
    }
    for (const [kind, alert] of DETECTED) {
      const detected = misuses(kind).find((operation) => this.#mustHaveAlerted(operation));
      if (detected !== undefined && !alerts.some(({ type }) => type === alert)) {
        found.push({ promise: 'an alert for each cause', operations: [detected] });
      }
    }
    return found;
  }

  /**
   * Whether a replica may have ended between its line and its record of it, or the same was seen twice: once by a server that lost
   * it, and once by its successor before that was reported. A loss alone is no excuse.
   */
  #mayBeReportedTwice(type: string, alerts: readonly AlertSeen[], faults: readonly Fault[]): boolean {
    const last = Math.max(...alerts.map(({ reported }) => reported));
    const kills = faults.filter(({ killsReplica }) => killsReplica);
    const isCutShort = ({ reported }: AlertSeen) =>
      reported < last && kills.some(({ from, to }) => from <= reported + RECORDED && reported <= to);
    if (alerts.some(isCutShort)) return true;
    const seen = this.#operations.filter((operation) => this.#mayRaise(type, operation));
    return faults.some(({ from, to, lostSince = Number.POSITIVE_INFINITY }) => {
      const lost = seen.filter(({ begin, end }) => lostSince <= end && begin <= to);
      return lost.some((one) =>
        seen.some((other) => other !== one && from <= other.end && other.begin <= to + NOTICED),
      );
    });
  }

  #mayRaise(type: string, operation: Operation): boolean {
    const { kind, intent } = operation;
    if (type === 'authorization_code.replayed') return kind === 'redeem' && intent === 'misuse';
    if (type === 'state_lost') return kind === 'refresh';
    return kind === 'refresh' && (intent === 'misuse' || this.#isLate(operation, Number.POSITIVE_INFINITY));
  }

  /** A misuse that was refused while nothing of another kind had revoked the family, and that no fault can have undone. */
  #mustHaveAlerted(misuse: Operation): boolean {
    if (misuse.seen.kind !== 'refused') return false;
    const others = this.#operations.filter((other) => other !== misuse && mayRevoke(other) && other.begin < misuse.end);
    const isLost = this.#faults.some((fault) => mayLose(fault, misuse.given) || mayLose(fault, misuse.end));
    if (isLost || !others.every(({ kind, seen }) => kind === misuse.kind && seen.kind === 'refused')) return false;
    const { kind, begin, given, end } = misuse;
    return kind !== 'redeem' || (this.#isRedeemed(begin) && !this.#breaksLogin(given, end));
  }

  /** Whether the code had been redeemed for sure by then. */
  #isRedeemed(moment: number): boolean {
    return this.#operations.some(({ kind, seen, end }) => kind === 'redeem' && seen.kind === 'granted' && end < moment);
  }
}

/** What each kind of misuse raises. */
const DETECTED = [
  ['refresh', 'refresh_token.reuse_detected'],
  ['redeem', 'authorization_code.replayed'],
] as const;

/** Whether a write that was answered then may be gone after the fault. */
function mayLose({ lostSince, to }: Fault, answered: number): boolean {
  if (lostSince === undefined || answered < lostSince) return false;
  // A replica that finds Redis empty voids what is made until then.
  return answered <= to + (lostSince === Number.NEGATIVE_INFINITY ? NOTICED : 0);
}

/** Whether this asks for what was only unavailable for a while and has recovered. */
function isRecovered({ back }: Fault, { given, begin }: Operation): boolean {
  return back !== undefined && given <= back.until && back.from <= begin;
}

/** What only an active family, or a valid code, answers. */
function isActive({ seen }: Operation): boolean {
  return seen.kind === 'active' || seen.kind === 'granted';
}

function isInactive({ seen }: Operation): boolean {
  return seen.kind === 'refused' || seen.kind === 'inactive';
}

/** What may revoke the family, whatever the client saw. */
function mayRevoke({ kind, intent }: Operation): boolean {
  return kind === 'revoke' || (kind !== 'introspect' && intent === 'misuse');
}
