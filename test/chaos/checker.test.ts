// Histories that break one promise each, and their nearest neighbours that break none.

import { describe, expect, it } from 'vitest';
import { allReported, checkHistory, NOTICED, RECOVERED, SWEPT } from './checker.ts';
import type { AlertSeen, Fault, Operation, Seen } from './history.ts';

/** An operation that takes from `begin` to 10 ms later, about a family whose code was redeemed at 20. */
function operation(begin: number, kind: Operation['kind'], seen: Seen, more: Partial<Operation> = {}): Operation {
  const nothing = { replica: 'replica 1', generation: undefined, intent: 'honest' } as const;
  const shared = { ...nothing, grantId: '007.family', shards: ['007', '042'] };
  return { ...shared, kind, begin, end: begin + 10, given: kind === 'redeem' ? 5 : 20, seen, ...more };
}

function fault(from: number, to: number, more: Partial<Fault> = {}): Fault {
  const nothing = {
    lastFailure: undefined,
    lostSince: undefined,
    back: undefined,
    blind: undefined,
    breaksLogins: false,
    killsReplica: false,
    isOnlyFull: false,
  };
  return { name: 'a fault', from, mended: to, over: to, to, ...nothing, ...more };
}

const granted = (generation: number): Seen => ({ kind: 'granted', generation });
const refused: Seen = { kind: 'refused' };
const active: Seen = { kind: 'active' };
const inactive: Seen = { kind: 'inactive' };
const unavailable: Seen = { kind: 'unavailable' };
const revoked: Seen = { kind: 'revoked' };
const misuse = { intent: 'misuse' } as const;
const REDEEMED = operation(10, 'redeem', granted(0));
/** Over soon, and harmless. */
const AWAY = fault(35, 60);
const EMPTIED = { lostSince: Number.NEGATIVE_INFINITY, breaksLogins: true };

function promises(operations: readonly Operation[], faults: readonly Fault[] = [], alerts?: readonly AlertSeen[]) {
  return checkHistory({ operations, faults, alerts }).map(({ promise }) => promise);
}

describe('an ordinary history', () => {
  it('breaks nothing', () => {
    const history = [
      REDEEMED,
      operation(30, 'refresh', granted(1), { generation: 0 }),
      operation(31, 'refresh', granted(1), { generation: 0 }),
      operation(50, 'introspect', active),
      operation(60, 'refresh', unavailable, { generation: 1 }),
      operation(80, 'revoke', revoked, { generation: 1 }),
      operation(100, 'introspect', inactive),
      operation(120, 'refresh', refused, { generation: 1 }),
    ];
    expect(promises(history, [AWAY], [])).toEqual([]);
  });
});

describe('a code', () => {
  it('may not be redeemed twice, whatever happened', () => {
    const twice = [REDEEMED, operation(90, 'redeem', granted(0), misuse)];
    const broken = promises(twice, [fault(30, 80, EMPTIED)]);
    expect(broken).toContain('a code is redeemed once');
  });

  it('may be refused only when another history has begun', () => {
    const refusal = [operation(100, 'redeem', refused)];
    expect(promises(refusal)).toEqual(['a code in flight is kept']);
    expect(promises(refusal, [fault(30, 60)])).toEqual(['a code in flight is kept']);
    expect(promises(refusal, [fault(30, 60, { breaksLogins: true })])).toEqual([]);
    expect(
      promises([operation(100, 'redeem', refused, { given: 70 })], [fault(30, 60, { breaksLogins: true })]),
    ).toEqual(['a code in flight is kept']);
  });
});

describe('a refresh token', () => {
  it('has one successor', () => {
    const fork = [REDEEMED, operation(30, 'refresh', granted(2), { generation: 0 })];
    expect(promises(fork)).toEqual(['a token has one successor']);
  });
});

describe('a revoked family', () => {
  const reuse = operation(40, 'refresh', refused, { generation: 0, ...misuse });
  const replay = operation(40, 'redeem', refused, misuse);

  it.each([
    ['revoked', operation(40, 'revoke', revoked, { generation: 0 })],
    ['reused', reuse],
    ['replayed', replay],
  ])('(%s) may not refresh or be active', (_, end) => {
    expect(promises([REDEEMED, end, operation(60, 'introspect', active)])).toEqual(['a revoked family stays revoked']);
    const refresh = operation(60, 'refresh', granted(3), { generation: 2 });
    expect(promises([REDEEMED, end, refresh])).toEqual(['a revoked family stays revoked']);
  });

  it('is not known to be revoked before its revocation was answered, or by an answer that did not come', () => {
    const revocation = operation(40, 'revoke', revoked);
    expect(promises([REDEEMED, revocation, operation(45, 'introspect', active)])).toEqual([]);
    const unanswered = operation(40, 'revoke', unavailable);
    expect(promises([REDEEMED, unanswered, operation(60, 'introspect', active)], [AWAY])).toEqual([]);
  });

  it('may be active again for a moment where the fail-over lost its revocation, and not after it was noticed', () => {
    const revocation = operation(40, 'revoke', revoked);
    const failOver = fault(60, 100, { lostSince: 35, breaksLogins: true });
    expect(promises([REDEEMED, revocation, operation(110, 'introspect', active)], [failOver])).toEqual([]);
    const late = operation(101 + NOTICED, 'introspect', active);
    expect(promises([REDEEMED, revocation, late], [failOver])).toEqual(['a revoked family stays revoked']);
    const kept = fault(60, 100, { lostSince: 55, breaksLogins: true });
    const soon = operation(110, 'introspect', active);
    expect(promises([REDEEMED, revocation, soon], [kept])).toEqual(['a revoked family stays revoked']);
  });

  it('may not be taken for revoked by a server that has lost its redemption, and refuses its tokens for that', () => {
    const lossy = fault(5, 60, { lostSince: 5, breaksLogins: true });
    const later = operation(101 + NOTICED, 'introspect', active);
    expect(promises([REDEEMED, reuse, later], [lossy])).toEqual([]);
    const kept = fault(25, 60, { lostSince: 25, breaksLogins: true });
    expect(promises([REDEEMED, reuse, later], [kept])).toEqual(['a revoked family stays revoked']);
  });

  it('may not be taken for revoked by a server that never saw its code redeemed', () => {
    const concurrent = { ...replay, begin: 12, end: 25 };
    const failOver = fault(11, 24, { breaksLogins: true });
    const later = operation(60, 'introspect', active);
    expect(promises([{ ...REDEEMED, ...misuse }, concurrent, later], [failOver])).toEqual([]);
    expect(promises([{ ...REDEEMED, ...misuse }, concurrent, later])).toEqual(['a revoked family stays revoked']);
  });
});

describe('an active family', () => {
  const refusal = operation(200, 'refresh', refused, { generation: 0 });
  const inactivity = operation(200, 'introspect', inactive);

  it('may not be refused, nor be called inactive', () => {
    expect(promises([REDEEMED, refusal])).toEqual(['an active family is kept']);
    expect(promises([REDEEMED, inactivity], [fault(30, 60, { breaksLogins: true })])).toEqual([
      'an active family is kept',
    ]);
  });

  it('may be lost with all of Redis, and what was made until that was noticed too', () => {
    expect(promises([REDEEMED, refusal], [fault(30, 60, EMPTIED)])).toEqual([]);
    expect(promises([REDEEMED, inactivity], [fault(5, 15, EMPTIED)])).toEqual([]);
    const young = { given: 70 + NOTICED, begin: 80 + NOTICED, end: 90 + NOTICED };
    expect(promises([{ ...refusal, ...young }], [fault(30, 60, EMPTIED)])).toEqual(['an active family is kept']);
  });

  it('may be lost in a fail-over only where the replica did not have it', () => {
    expect(promises([REDEEMED, refusal], [fault(30, 60, { lostSince: 15 })])).toEqual([]);
    expect(promises([REDEEMED, refusal], [fault(30, 60, { lostSince: 25 })])).toEqual(['an active family is kept']);
  });

  it('may be refused once it was revoked or misused, also where no answer came', () => {
    const refusedAfter = (other: Operation) => promises([REDEEMED, other, refusal], [AWAY]);
    expect(refusedAfter(operation(150, 'revoke', unavailable))).toEqual([]);
    expect(refusedAfter(operation(150, 'redeem', { kind: 'lost' }, misuse))).toEqual([]);
    expect(refusedAfter(operation(250, 'revoke', unavailable))).toEqual(['an active family is kept']);
  });
});

describe('a refresh that got no answer', () => {
  const unanswered = operation(40, 'refresh', { kind: 'lost' }, { generation: 0 });
  const again = (begin: number) => operation(begin, 'refresh', refused, { generation: 0, begin, end: begin + 10 });

  it('may be repeated within the grace, and after it looks like reuse, with an alert', () => {
    const alerts = [{ type: 'refresh_token.reuse_detected', grantId: '007.family', reported: 60 }];
    expect(promises([REDEEMED, unanswered, again(9000)], [AWAY], [])).toEqual(['an active family is kept']);
    expect(promises([REDEEMED, unanswered, again(9000)], [AWAY], alerts)).toContain('no alert without a cause');
    const late = [REDEEMED, unanswered, again(10_100), operation(10_200, 'introspect', inactive)];
    expect(promises(late, [AWAY], alerts)).toEqual([]);
    expect(promises([REDEEMED, again(10_100)], [], [])).toEqual(['an active family is kept']);
  });

  it('does not look like reuse where a replica refused it, once that had time to say so', () => {
    const refusal = operation(40, 'refresh', unavailable, { generation: 0 });
    const long = [fault(35, 11_000)];
    expect(promises([REDEEMED, refusal, again(10_100)], [AWAY])).toEqual(['an active family is kept']);
    expect(promises([REDEEMED, refusal, again(11_000 + NOTICED)], long)).toEqual([]);
    expect(promises([REDEEMED, refusal, again(11_001 + NOTICED)], long)).toEqual(['an active family is kept']);
  });
});

describe('a refresh that Redis had not run when it was stopped', () => {
  it('does not run after its successor was used: that is no excuse for a revoked family', () => {
    const waiting = operation(40, 'refresh', unavailable, { generation: 0, end: 845 });
    const successor = operation(860, 'refresh', unavailable, { generation: 1 });
    const refusal = operation(1000, 'refresh', refused, { generation: 1 });
    const granted1 = operation(40, 'refresh', granted(1), { generation: 0 });
    const history = [REDEEMED, waiting, granted1, successor, refusal];
    expect(promises(history, [fault(45, 900)])).toEqual(['an active family is kept']);
  });
});

describe('what only an empty server lacked that was replaced by one that has it', () => {
  const REPLACED = [fault(30, 60, { ...EMPTIED, back: { until: 25, from: 80 } })];
  const later = { begin: 100, end: 110 };

  it('is recovered, and may be refused only until then', () => {
    const refusal = operation(50, 'refresh', refused, { generation: 0 });
    expect(promises([REDEEMED, refusal, operation(later.begin, 'introspect', active)], REPLACED)).toEqual([]);
    expect(promises([REDEEMED, { ...refusal, ...later }], REPLACED)).toEqual(['an active family is kept']);
    expect(promises([REDEEMED, { ...refusal, ...later, given: 26 }], REPLACED)).toEqual([]);
  });

  it('is not revoked for having been misused at the empty one, but is where it was revoked before', () => {
    const alive = operation(100 + NOTICED, 'introspect', active);
    const reuse = (begin: number) => operation(begin, 'refresh', refused, { ...misuse, generation: 0 });
    expect(promises([REDEEMED, reuse(45), alive], REPLACED)).toEqual([]);
    expect(promises([REDEEMED, reuse(15), alive], REPLACED)).toEqual(['a revoked family stays revoked']);
    expect(promises([REDEEMED, operation(45, 'revoke', revoked), alive], REPLACED)).toEqual([
      'a revoked family stays revoked',
    ]);
  });
});

describe('what was lost with all of Redis', () => {
  it('may not come back', () => {
    const later = operation(100 + NOTICED, 'introspect', active);
    expect(promises([REDEEMED, later], [fault(30, 60, EMPTIED)])).toEqual(['what was lost with Redis stays lost']);
    expect(promises([REDEEMED, { ...later, given: 70 }], [fault(30, 60, EMPTIED)])).toEqual([]);
  });
});

describe('a blind replica', () => {
  it('may not call anything active', () => {
    const blind = [fault(30, 100, { blind: { from: 30, to: 90 } })];
    expect(promises([REDEEMED, operation(40, 'introspect', active)], blind)).toEqual(['nothing is active while blind']);
    expect(promises([REDEEMED, operation(40, 'introspect', unavailable)], blind)).toEqual([]);
    expect(promises([REDEEMED, operation(25, 'introspect', active)], blind)).toEqual([]);
    expect(promises([REDEEMED, operation(85, 'introspect', active)], blind)).toEqual([]);
  });

  it('of a part of Redis may not call anything active that is in it, or that something in it may have ended', () => {
    const among = [REDEEMED, operation(40, 'introspect', active)];
    const blindTo = (...shards: readonly string[]) => [
      fault(30, 100, { blind: { from: 30, to: 90, shards: new Set(shards) } }),
    ];
    expect(promises(among, blindTo('006', '007'))).toEqual(['nothing is active while blind']);
    expect(promises(among, blindTo('042'))).toEqual(['nothing is active while blind']);
    expect(promises(among, blindTo('006', '041'))).toEqual([]);
    const refresh = operation(40, 'refresh', granted(1), { generation: 0 });
    expect(promises([REDEEMED, refresh], blindTo('042'))).toEqual(['nothing is active while blind']);
  });
});

describe('alerts', () => {
  const grantId = '007.family';
  const reuse = operation(40, 'refresh', refused, { generation: 0, ...misuse });
  const detected = { type: 'refresh_token.reuse_detected', grantId, reported: 45 };

  it('are raised once for a family', () => {
    expect(promises([REDEEMED, reuse], [], [detected])).toEqual([]);
    expect(promises([REDEEMED, reuse], [], [detected, detected])).toEqual(['one alert for each family']);
  });

  it('are raised once, too, where a replica is killed, unless that was soon after it reported one', () => {
    const again = { ...detected, reported: 9000 };
    const killedAt = (from: number) =>
      promises([REDEEMED, reuse], [fault(from, from + 20, { killsReplica: true })], [again, detected]);
    for (const from of [30, 60, 2045]) expect(killedAt(from)).toEqual([]);
    for (const from of [20, 2046, 8990, 9500]) expect(killedAt(from)).toEqual(['one alert for each family']);
  });

  it('are raised once, too, where a fail-over lost that it was, unless its successor saw the same before it was reported', () => {
    const lossy = [fault(60, 90, { lostSince: 35 })];
    const twice = [detected, { ...detected, reported: 9000 }];
    const again = (begin: number) => operation(begin, 'refresh', refused, { generation: 0, ...misuse });
    expect(promises([REDEEMED, reuse], lossy, twice)).toEqual(['one alert for each family']);
    expect(promises([REDEEMED, reuse, again(100)], lossy, twice)).toEqual([]);
    expect(promises([REDEEMED, reuse, again(45)], lossy, twice)).toEqual(['one alert for each family']);
    expect(promises([REDEEMED, reuse, again(5000)], lossy, twice)).toEqual(['one alert for each family']);
    const replay = operation(100, 'redeem', refused, misuse);
    expect(promises([REDEEMED, reuse, replay], lossy, twice)).toEqual(['one alert for each family']);
  });

  it('are all reported, also once more, so long after the last fault that lost a part of Redis', () => {
    const lossy = [fault(60, 90, { lostSince: 35 }), fault(100, 120, { lostSince: 95 })];
    expect(allReported([...lossy, fault(200, 210), fault(300, 310, EMPTIED)])).toBe(120 + SWEPT);
    expect(allReported([fault(200, 210), fault(300, 310, EMPTIED)])).toBe(Number.NEGATIVE_INFINITY);
  });

  it('are raised for every reuse that killed a family', () => {
    expect(promises([REDEEMED, reuse], [], [])).toEqual(['an alert for each cause']);
    expect(promises([REDEEMED, operation(30, 'revoke', revoked), reuse], [], [])).toEqual([]);
    expect(promises([REDEEMED, reuse], [fault(60, 90, { lostSince: 45 })], [])).toEqual([]);
    expect(promises([REDEEMED, reuse], [fault(60, 90, { lostSince: 55 })], [])).toEqual(['an alert for each cause']);
  });

  it('are raised for every replay of a code that was redeemed', () => {
    const replay = operation(40, 'redeem', refused, misuse);
    const replayed = { type: 'authorization_code.replayed', grantId, reported: 45 };
    expect(promises([REDEEMED, replay], [], [replayed])).toEqual([]);
    expect(promises([REDEEMED, replay], [], [])).toEqual(['an alert for each cause']);
    expect(promises([REDEEMED, operation(30, 'revoke', revoked), replay], [], [])).toEqual([]);
    expect(promises([REDEEMED, replay], [fault(1, 90, { breaksLogins: true })], [])).toEqual([]);
    expect(promises([REDEEMED, replay], [fault(60, 90, { lostSince: 5 })], [])).toEqual([]);
    expect(promises([operation(10, 'redeem', refused, misuse)], [], [])).toEqual([]);
  });

  it.each([
    ['refresh_token.reuse_detected', 'no token was reused'],
    ['authorization_code.replayed', 'no code was sent twice'],
    ['state_lost', 'nothing was lost'],
  ])('are not raised (%s) where %s', (type) => {
    expect(promises([REDEEMED], [], [{ type, grantId, reported: 25 }])).toEqual(['no alert without a cause']);
  });

  it('are not raised about families that do not exist', () => {
    expect(promises([REDEEMED], [], [{ type: 'state_lost', grantId: '001.other', reported: 25 }])).toEqual([
      'no alert without a cause',
    ]);
  });
});

describe('a Redis that recovers', () => {
  const RECOVERED_AT_60 = [fault(30, 60)];
  const PROMISE = 'requests succeed within two seconds after recovery';
  const asked = (begin: number, seen: Seen, more: Partial<Operation> = {}) =>
    promises([REDEEMED, operation(begin, 'introspect', seen, more)], RECOVERED_AT_60);

  it.each<Seen>([unavailable, { kind: 'lost' }])(
    'may fail ($kind) while it is unavailable and a moment longer',
    (seen) => {
      for (const begin of [30, 60, 60 + RECOVERED]) expect(asked(begin, seen)).toEqual([]);
      expect(asked(61 + RECOVERED, seen)).toEqual([PROMISE]);
      expect(asked(61 + RECOVERED, active)).toEqual([]);
      // Sent before it began, and failed because of it.
      expect(asked(20, seen, { end: 30 })).toEqual([]);
      expect(asked(20, seen, { end: 29 })).toEqual([PROMISE]);
      expect(promises([REDEEMED, operation(50, 'refresh', seen, { generation: 0 })])).toEqual([PROMISE]);
    },
  );

  it('is recovered when a server can answer, not when all the rest is mended too', () => {
    const long = [fault(30, 30_000, { mended: 60, over: 29_900 })];
    const late = operation(61 + RECOVERED, 'refresh', unavailable, { generation: 0 });
    expect(promises([REDEEMED, late], long)).toEqual([PROMISE]);
    expect(promises([REDEEMED, late], [...long, fault(50 + RECOVERED, 80 + RECOVERED)])).toEqual([]);
  });

  it('has every replica sign in, redeem and refresh soon after all is as before', () => {
    const failing = (lastFailure: number | undefined) =>
      checkHistory({ operations: [], faults: [fault(30, 60_000, { over: 60, lastFailure })], alerts: [] });
    // A busy machine may take its time for what it does.
    expect(failing(undefined)).toEqual([]);
    expect(failing(60 + RECOVERED)).toEqual([]);
    expect(failing(61 + RECOVERED)).toEqual([{ promise: PROMISE, grantId: 'a fault', operations: [] }]);
  });
});

describe('a full memory', () => {
  it('may refuse what stores, and nothing else', () => {
    const full = fault(30, 60, { isOnlyFull: true });
    const asked = (kind: Operation['kind'], faults = [full]) =>
      promises([REDEEMED, operation(40, kind, unavailable, { generation: 0 })], faults);
    expect(asked('refresh')).toEqual([]);
    expect(asked('redeem')).toEqual([]);
    expect(asked('revoke')).toEqual(['a full memory refuses only what stores']);
    expect(asked('introspect')).toEqual(['a full memory refuses only what stores']);
    expect(asked('revoke', [full, fault(30, 60)])).toEqual([]);
  });
});

describe('an answer', () => {
  it('may not be one that no fault excuses', () => {
    const broken = operation(30, 'refresh', { kind: 'unexpected', what: '500' });
    expect(promises([REDEEMED, broken])).toEqual(['an answer is one of those documented']);
  });
});
