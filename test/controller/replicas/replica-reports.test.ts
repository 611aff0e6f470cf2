import { describe, expect, it } from 'vitest';
import { ReplicaReports } from '../../../src/controller/replicas/replica-reports.ts';
import { replicasAt } from '../../../src/controller/replicas/replicas.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { until } from '../../until.ts';
import { askable, startReplica } from './replica-servers.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.parse('2026-03-01T12:00:00Z');

function clientObject(uid: string, generation = 1): KubernetesObject {
  const metadata = { name: uid, namespace: 'shop', uid, generation, resourceVersion: '1', creationTimestamp: '' };
  return { apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', metadata };
}

interface Told {
  alerts?: object[];
  lastUsed?: object;
  providers?: object;
  users?: object;
  denied?: Record<string, { reason: string; generation?: number; count: number; lastTime: string }[]>;
}

/** Reports of two replicas with the content that the test sets. */
async function world() {
  const told: Told[] = [{}, {}];
  const questions: Record<string, unknown>[] = [];
  const urls = await Promise.all(
    told.map((_, index) =>
      startReplica((_path, question) => {
        questions.push(question as Record<string, unknown>);
        return { body: { cursor: `c-${index}`, lastUsed: {}, denied: {}, ...told[index] } };
      }),
    ),
  );
  const clients = new Map(['a', 'b'].map((uid) => [uid, clientObject(uid)]));
  const news: string[] = [];
  const events: string[] = [];
  const clock = { at: START, now: () => clock.at };
  const make = () =>
    new ReplicaReports({
      replicas: askable(() => replicasAt(urls)),
      releaseNamespace: 'grantry',
      clientOf: (uid) => clients.get(uid),
      record: ({ regarding: { metadata }, reason, isAlert }) =>
        events.push(`${metadata.uid} ${reason}${isAlert ? ', an alert' : ''}`),
      onChange: ({ metadata }) => news.push(metadata.uid),
      clock,
    });
  const reports = make();
  return { told, questions, clients, news, events, clock, urls, make, reports };
}

const denied = (at: number, { count = 1, reason = 'invalid_scope', generation = 1 } = {}) => [
  { reason, generation, count, lastTime: new Date(at).toISOString() },
];

const REUSE = 'refresh_token.reuse_detected';
const alerted = (at: number, { generation = 1, reason = REUSE } = {}) => denied(at, { generation, reason });

function conditionsOf(reports: ReplicaReports, uid: string, generation = 1, before?: unknown) {
  return reports.notices(uid, generation, before).flatMap(({ condition }) => condition ?? []);
}

describe('the reports of replicas', () => {
  it('give the latest day on which a client was used, of clients that are here', async () => {
    const { told, reports, news } = await world();
    told[0] = { lastUsed: { a: '2026-03-01', stranger: '2026-03-01' } };
    told[1] = { lastUsed: { a: '2026-02-28', b: '2026-02-27' } };
    await reports.poll();
    expect([reports.lastUsed('a'), reports.lastUsed('b'), reports.lastUsed('stranger')]).toEqual([
      ...['2026-03-01', '2026-02-27'],
      undefined,
    ]);
    expect(news.sort()).toEqual(['a', 'b']);
    await reports.poll();
    expect(news).toHaveLength(2);
  });

  it('given reports of identity providers → those of the latest poll, by replica; none of a replica without any', async () => {
    const { told, reports, urls } = await world();
    expect(reports.providers.latest).toBeUndefined();
    const corp = { generation: 2, reachable: true, reason: 'Reachable', isOverage: true };
    told[0] = { providers: { corp } };
    let polls = 0;
    reports.providers.listen(() => {
      polls += 1;
    });
    await reports.poll();
    expect(reports.providers.latest).toEqual([
      { name: urls[0], providers: new Map([['corp', corp]]) },
      { name: urls[1], providers: new Map() },
    ]);
    told[0] = { lastUsed: { a: 'no day' } };
    await reports.poll();
    expect(reports.providers.latest).toMatchObject([{ providers: undefined }, { providers: new Map() }]);
    expect(polls).toBe(2);
  });

  it('of a Secret with users that has a fault → one Event on it, and another after it was mended or has another fault', async () => {
    const { told, reports, events } = await world();
    const faulty = (place: string) => ({
      users: { people: { name: 'people', message: `the list has a fault at ${place}` } },
    });
    [told[0], told[1]] = [faulty('users[1]'), faulty('users[1]')];
    await reports.poll();
    await reports.poll();
    expect(events).toEqual(['people InvalidUsers']);
    // Nothing is known of a replica that does not answer.
    [told[0], told[1]] = [{ lastUsed: { a: 'no day' } }, {}];
    await reports.poll();
    told[0] = faulty('users[1]');
    await reports.poll();
    expect(events).toHaveLength(1);
    told[0] = {};
    await reports.poll();
    told[0] = faulty('users[1]');
    await reports.poll();
    told[0] = faulty('users[2].email');
    await reports.poll();
    expect(events).toHaveLength(3);
  });

  it.each([
    ['a name that is none', { name: 'People', message: 'x' }],
    ['a line break', { name: 'people', message: 'a\nb' }],
    ['a message without end', { name: 'people', message: 'x'.repeat(501) }],
  ])('of users with %s → not used', async (_case, people) => {
    const { told, reports, events } = await world();
    told[0] = { users: { people }, lastUsed: { a: '2026-03-01' } };
    await reports.poll();
    expect([events, reports.lastUsed('a')]).toEqual([[], undefined]);
  });

  it('given a request to poll soon → polled long before the period is over', async () => {
    const { told, reports, questions } = await world();
    told[0] = { providers: {} };
    let polls = 0;
    reports.providers.listen(() => {
      polls += 1;
      if (polls < 5) reports.providers.pollSoon();
    });
    const began = performance.now();
    reports.start();
    await until('it was polled five times', () => polls === 5);
    await reports.stop();
    // Two replicas each; five periods take 20 seconds.
    expect(questions).toHaveLength(10);
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  it('are asked for from where the last one ended', async () => {
    const { reports, questions } = await world();
    await reports.poll();
    await reports.poll();
    expect(questions.map(({ after }) => after).sort()).toEqual(['c-0', 'c-1', undefined, undefined]);
  });

  it('make refusals an Event and a condition, with what all replicas counted', async () => {
    const { told, reports, events, clock } = await world();
    told[0] = { denied: { a: denied(START + 1000, { count: 3 }) } };
    told[1] = { denied: { a: denied(START + 2000, { count: 4 }) } };
    clock.at = START + 5000;
    await reports.poll();
    const [condition] = conditionsOf(reports, 'a');
    expect(condition).toMatchObject({ type: 'Denied', status: 'True', reason: 'InvalidScope', observedGeneration: 1 });
    expect(condition?.message).toContain('7 requests');
    expect(condition?.message).toContain('2026-03-01T12:00:02.000Z');
    expect(new Set(events)).toEqual(new Set(['a InvalidScope']));
    expect(conditionsOf(reports, 'b')).toEqual([]);
  });

  it.each([
    ['assertion_audience_mismatch', 'AssertionAudienceMismatch'],
    ['client_assertion_replayed', 'ClientAssertionReplayed'],
    ['account_token_audience_mismatch', 'AccountTokenAudienceMismatch'],
  ])('make %s of an assertion the condition Denied with %s, and an Event', async (reason, word) => {
    const { told, reports, events } = await world();
    told[0] = { denied: { a: denied(START + 1000, { reason }) } };
    await reports.poll();
    expect(conditionsOf(reports, 'a')).toMatchObject([{ type: 'Denied', status: 'True', reason: word }]);
    expect(conditionsOf(reports, 'a')[0]?.message).toContain(reason);
    expect(events).toEqual([`a ${word}`]);
  });

  it('make nothing of a reason that any caller could cause', async () => {
    const { told, reports, events } = await world();
    told[0] = { denied: { a: denied(START + 1000, { reason: 'signature_invalid' }) } };
    await reports.poll();
    expect([conditionsOf(reports, 'a'), events]).toEqual([[], []]);
  });

  it('count on with what a replica said before of a reason that it does not report again', async () => {
    const { told, reports, clock } = await world();
    const report = async (at: number, replica: 0 | 1, options: Parameters<typeof denied>[1]) => {
      clock.at = at;
      [told[0], told[1]] = [{}, {}];
      told[replica] = { denied: { a: denied(at, options) } };
      await reports.poll();
    };
    await report(START + 1000, 0, { count: 3 });
    await report(START + 2000, 0, { count: 2, reason: 'unauthorized_client' });
    await report(START + 2 * HOUR, 1, { count: 4 });
    expect(conditionsOf(reports, 'a')[0]?.message).toContain('7 requests');
    await report(START + 4 * HOUR, 0, { count: 5 });
    expect(conditionsOf(reports, 'a')[0]?.message).toContain('9 requests');
  });

  it('count no more what a replica said more than a day before', async () => {
    const { told, reports, clock } = await world();
    told[0] = { denied: { a: denied(START, { count: 3 }) } };
    await reports.poll();
    clock.at = START + 25 * HOUR;
    [told[0], told[1]] = [{}, { denied: { a: denied(clock.at, { count: 4 }) } }];
    await reports.poll();
    expect(conditionsOf(reports, 'a')[0]?.message).toContain('4 requests');
  });

  it('change a condition at most once an hour, and drop it a day after the last refusal', async () => {
    const { told, reports, clock } = await world();
    const refuse = async (at: number, count: number) => {
      clock.at = at;
      told[0] = { denied: { a: denied(at, { count }) } };
      await reports.poll();
      return conditionsOf(reports, 'a')[0]?.message;
    };
    const first = await refuse(START + 1000, 1);
    expect(await refuse(START + 0.5 * HOUR, 2)).toBe(first);
    const later = await refuse(START + 1.1 * HOUR, 3);
    expect(later).not.toBe(first);
    clock.at = START + 25 * HOUR;
    expect(conditionsOf(reports, 'a')).toHaveLength(1);
    clock.at = START + 25.2 * HOUR;
    expect(conditionsOf(reports, 'a')).toEqual([]);
  });

  it('count no more what a replica said that is gone', async () => {
    const { told, reports, clock, urls } = await world();
    told[0] = { denied: { a: denied(START + 1000, { count: 3 }) } };
    told[1] = { denied: { a: denied(START + 2000, { count: 4 }) } };
    clock.at = START + 5000;
    await reports.poll();
    expect(conditionsOf(reports, 'a')[0]?.message).toContain('7 requests');
    urls.shift();
    told[1] = { denied: { a: denied(START + HOUR, { count: 5 }) } };
    clock.at = START + 2 * HOUR;
    await reports.poll();
    expect(conditionsOf(reports, 'a')[0]?.message).toContain('5 requests');
  });

  it('drop it with a new generation', async () => {
    const { told, reports, clock } = await world();
    told[0] = { denied: { a: denied(START + 1000) } };
    clock.at = START + 5000;
    await reports.poll();
    expect(conditionsOf(reports, 'a', 1)).toHaveLength(1);
    expect(conditionsOf(reports, 'a', 2)).toEqual([]);
  });

  it.each([
    ['a leader that hears of it too late', { isHeardBefore: false, isNew: false }],
    ['a leader that reported it', { isHeardBefore: true, isNew: false }],
    ['a new leader', { isHeardBefore: true, isNew: true }],
  ])('are no news from %s once the spec has changed', async (_, { isHeardBefore, isNew }) => {
    const { told, reports, make, clients, news, events, clock } = await world();
    told[0] = { denied: { a: denied(START + 1000, { count: 3 }) } };
    if (isHeardBefore) await reports.poll();
    expect(conditionsOf(reports, 'a')).toHaveLength(isHeardBefore ? 1 : 0);
    [news.length, events.length] = [0, 0];
    clients.set('a', clientObject('a', 2));
    clock.at = START + HOUR;
    const next = isNew ? make() : reports;
    await next.poll();
    expect([conditionsOf(next, 'a', 2), news, events]).toEqual([[], [], []]);
    // It was not mended; and what was counted before is not counted on.
    told[1] = { denied: { a: denied(clock.at, { count: 2, generation: 2 }) } };
    await next.poll();
    const [condition] = conditionsOf(next, 'a', 2);
    expect(condition).toMatchObject({ type: 'Denied', observedGeneration: 2 });
    expect(condition?.message).toContain('2 requests');
  });

  it('show a generation that is not known yet once it is, whatever the clocks of replicas say', async () => {
    const { told, reports, clients, clock } = await world();
    clock.at = START + 5000;
    told[0] = { denied: { a: denied(START + 2000, { generation: 1 }) } };
    await reports.poll();
    told[0] = { denied: { a: denied(START + 1000, { generation: 2 }) } };
    told[1] = { denied: { a: denied(START + 3000, { generation: 1 }) } };
    await reports.poll();
    clients.set('a', clientObject('a', 2));
    expect(conditionsOf(reports, 'a', 2)).toMatchObject([{ type: 'Denied', observedGeneration: 2 }]);
  });

  it('say no denial of a replica whose version names no generation, and everything else', async () => {
    const { told, reports, events } = await world();
    const mismatch = { reason: 'redirect_uri_mismatch', count: 1, lastTime: new Date(START + 1000).toISOString() };
    told[0] = {
      lastUsed: { a: '2026-03-01' },
      denied: { a: [{ reason: 'invalid_scope', count: 1, lastTime: new Date(START + 1000).toISOString() }, mismatch] },
    };
    await reports.poll();
    expect([reports.lastUsed('a'), events]).toEqual(['2026-03-01', ['a RedirectUriMismatch']]);
    expect(conditionsOf(reports, 'a')).toEqual([]);
  });

  it('leave what another leader said until it fades', async () => {
    const { told, reports, make, clock } = await world();
    told[0] = { denied: { a: denied(START + 1000) } };
    clock.at = START + 5000;
    await reports.poll();
    const before = { conditions: conditionsOf(reports, 'a') };
    const next = make();
    clock.at = START + 2 * HOUR;
    expect(conditionsOf(next, 'a', 1, before)).toEqual(before.conditions);
    clock.at = START + 25 * HOUR;
    expect(conditionsOf(next, 'a', 1, before)).toEqual([]);
  });

  it('are no Event again for a new leader, to which a replica reports everything from its start', async () => {
    const { told, make, events, clock } = await world();
    told[0] = { denied: { a: denied(START - HOUR) } };
    clock.at = START;
    await make().poll();
    expect(events).toEqual([]);
  });

  it.each([
    ['a redirect mismatch, which takes no authentication,', 'redirect_uri_mismatch', 'a RedirectUriMismatch'],
    ['groups that are too many, for which nothing is refused,', 'groups_omitted', 'a GroupsOmitted'],
  ])('make %s one Event an hour and nothing in status', async (_, reason, event) => {
    const { told, reports, events, news, clock } = await world();
    for (const minutes of [1, 2, 60, 61]) {
      clock.at = START + minutes * 60_000;
      told[0] = { denied: { a: denied(clock.at, { reason }) } };
      await reports.poll();
    }
    expect(events).toEqual([event, event]);
    expect([news, conditionsOf(reports, 'a')]).toEqual([[], []]);
  });

  it('make both in one hour an Event each, and again of a client that was deleted and created again', async () => {
    const { told, reports, events, clock } = await world();
    clock.at = START + 60_000;
    const both = ['redirect_uri_mismatch', 'groups_omitted'].flatMap((reason) => denied(clock.at, { reason }));
    told[0] = { denied: { a: both } };
    await reports.poll();
    expect(events.splice(0)).toEqual(['a RedirectUriMismatch', 'a GroupsOmitted']);
    reports.forget('a');
    await reports.poll();
    expect(events).toEqual(['a RedirectUriMismatch', 'a GroupsOmitted']);
  });

  it('make an alert an Event and a condition beside Denied, which stays until status shows it', async () => {
    const { told, reports, events, news, clock } = await world();
    told[0] = { denied: { a: [...denied(START + 2000), ...alerted(START + 1000)] } };
    clock.at = START + 5000;
    await reports.poll();
    expect([events, news]).toEqual([['a RefreshTokenReuse, an alert', 'a InvalidScope'], ['a']]);
    const conditions = conditionsOf(reports, 'a');
    expect(conditions).toMatchObject([
      { type: 'Denied', reason: 'InvalidScope' },
      { type: 'Alert', status: 'True', reason: 'RefreshTokenReuse', observedGeneration: 1 },
    ]);
    expect(conditions[1]?.message).toContain('2026-03-01T12:00:01.000Z');
    expect(conditionsOf(reports, 'a', 1, {})).toEqual(conditions);
    await reports.poll();
    expect([events.length, news.length]).toEqual([2, 1]);
  });

  it.each([
    ['could not write what it read', false, ['a RefreshTokenReuse, an alert']],
    ['wrote the status', true, []],
  ])(
    'given an alert from before a new leader, whose predecessor %s → Events of the new one',
    async (_, isWritten, told) => {
      const { told: reported, make, events, clients, clock } = await world();
      reported[0] = { denied: { a: alerted(START + 1000) } };
      clock.at = START + 5000;
      const first = make();
      await first.poll();
      const conditions = conditionsOf(first, 'a');
      events.splice(0);
      if (isWritten) clients.set('a', { ...clientObject('a'), status: { conditions } });
      clock.at = START + 60_000;
      const next = make();
      await next.poll();
      expect(events).toEqual(told);
      expect(conditionsOf(next, 'a', 1, isWritten ? { conditions } : {})).toEqual(conditions);
    },
  );

  it('given an alert that status shows and a later one, both from before a new leader → one Event, of the later one', async () => {
    const { told, make, events, clients, clock } = await world();
    told[0] = { denied: { a: alerted(START + 1000) } };
    const first = make();
    await first.poll();
    clients.set('a', { ...clientObject('a'), status: { conditions: conditionsOf(first, 'a') } });
    events.splice(0);
    told[1] = { denied: { a: alerted(START + 2000, { reason: 'authorization_code.replayed' }) } };
    clock.at = START + 60_000;
    const next = make();
    await next.poll();
    expect(events).toEqual(['a AuthorizationCodeReplayed, an alert']);
  });

  it('given an alert that status shows of the spec before, by a clock that is ahead → an Event of the one after', async () => {
    const { told, make, reports, events, clients } = await world();
    told[0] = { denied: { a: alerted(START + 3000) } };
    await reports.poll();
    const status = { conditions: conditionsOf(reports, 'a') };
    events.splice(0);
    clients.set('a', { ...clientObject('a', 2), status });
    told[0] = { denied: { a: alerted(START + 2000, { generation: 2 }) } };
    await make().poll();
    expect(events).toEqual(['a RefreshTokenReuse, an alert']);
  });

  it('given an alert of another type that another replica reports later with an earlier time → an Event each, once, and the latest in status', async () => {
    const { told, reports, events, clients, clock } = await world();
    clock.at = START + 11_000;
    told[0] = { denied: { a: alerted(START + 10_000) } };
    await reports.poll();
    const conditions = conditionsOf(reports, 'a');
    clients.set('a', { ...clientObject('a'), status: { conditions } });
    told[1] = { denied: { a: alerted(START + 9000, { reason: 'authorization_code.replayed' }) } };
    clock.at = START + 2 * MINUTE;
    await reports.poll();
    await reports.poll();
    expect(events).toEqual(['a RefreshTokenReuse, an alert', 'a AuthorizationCodeReplayed, an alert']);
    expect(conditionsOf(reports, 'a', 1, { conditions })).toEqual(conditions);
  });

  it('given refusals of two reasons, the earlier one reported later → an Event each', async () => {
    const { told, reports, events } = await world();
    told[0] = { denied: { a: denied(START + 10_000) } };
    await reports.poll();
    told[1] = { denied: { a: denied(START + 9000, { reason: 'unauthorized_client' }) } };
    await reports.poll();
    expect(events).toEqual(['a InvalidScope', 'a UnauthorizedClient']);
    expect(conditionsOf(reports, 'a')).toMatchObject([{ reason: 'InvalidScope' }]);
  });

  it('drop an alert with the next spec, and a day after it', async () => {
    const { told, reports, clock } = await world();
    told[0] = { denied: { a: alerted(START + 1000) } };
    await reports.poll();
    expect(conditionsOf(reports, 'a', 1)).toHaveLength(1);
    expect(conditionsOf(reports, 'a', 2)).toEqual([]);
    clock.at = START + 24 * HOUR;
    expect(conditionsOf(reports, 'a', 1)).toHaveLength(1);
    clock.at += 1000;
    expect(conditionsOf(reports, 'a', 1)).toEqual([]);
  });

  it('change what is said of alerts at most once a minute', async () => {
    const { told, reports, clock } = await world();
    const messages: unknown[] = [];
    for (const seconds of [1, 30, 61]) {
      clock.at = START + seconds * 1000;
      told[0] = { denied: { a: alerted(clock.at) } };
      await reports.poll();
      messages.push(conditionsOf(reports, 'a')[0]?.message);
    }
    expect(messages[1]).toBe(messages[0]);
    expect(messages[2]).not.toBe(messages[0]);
  });

  it.each([
    ['authorization_code.replayed', 'AuthorizationCodeReplayed'],
    ['refresh_token.retried_elsewhere', 'RefreshTokenRetriedElsewhere'],
  ])('show %s as %s, in an Event and the condition Alert', async (type, reason) => {
    const { told, reports, events } = await world();
    told[0] = { denied: { a: alerted(START + 1000, { reason: type }) } };
    await reports.poll();
    expect(events).toEqual([`a ${reason}, an alert`]);
    expect(conditionsOf(reports, 'a')).toMatchObject([{ type: 'Alert', reason }]);
  });

  it('make nothing of a grant that was healed, and nothing of the alerts of a replica of an earlier version', async () => {
    const { told, reports, events } = await world();
    const alert = { id: 'al-1', type: REUSE, clientUid: 'a', time: '2026-03-01T12:00:01Z' };
    told[0] = { denied: { a: alerted(START + 1000, { reason: 'state_lost' }) }, alerts: [alert] };
    await reports.poll();
    expect([events, conditionsOf(reports, 'a')]).toEqual([[], []]);
  });

  it.each<[string, Told]>([
    ['of a day that is a word', { lastUsed: { a: 'today' } }],
    ['of a day that never was', { lastUsed: { a: '2026-02-30' } }],
    ['of a day that is far ahead', { lastUsed: { a: '2026-03-03' } }],
    ['of a day after all others', { lastUsed: { a: '9999-12-31' } }],
    ['of a time that is a word', { denied: { a: [{ reason: 'invalid_scope', count: 1, lastTime: 'now' }] } }],
    ['of a time that is far ahead', { denied: { a: denied(START + 25 * HOUR) } }],
    ['of an alert that is far ahead', { denied: { a: alerted(START + 25 * HOUR) } }],
  ])('%s change nothing', async (_, report) => {
    const { told, reports, events, news } = await world();
    told[0] = report;
    await reports.poll();
    await reports.poll();
    expect([events, news, reports.lastUsed('a')]).toEqual([[], [], undefined]);
    expect(conditionsOf(reports, 'a')).toEqual([]);
  });

  it('are believed where the clock of a replica is some hours ahead', async () => {
    const { told, reports, events, clock } = await world();
    clock.at = START + 11 * HOUR;
    told[0] = { lastUsed: { a: '2026-03-02' }, denied: { a: alerted(START + 15 * HOUR) } };
    await reports.poll();
    expect([events, reports.lastUsed('a')]).toEqual([['a RefreshTokenReuse, an alert'], '2026-03-02']);
  });
});
