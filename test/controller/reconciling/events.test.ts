// What the recorder writes and what it keeps to itself, on timers that the test moves. That an API server takes it is
// tested in test/cluster/.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LeadershipLostError } from '../../../src/controller/leadership/lease.ts';
import { type EventFacts, EventRecorder } from '../../../src/controller/reconciling/events.ts';
import type { NewObject } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { OAUTH_CLIENTS } from '../../../src/kubernetes/objects/resources.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const written: NewObject[] = [];
let fails = false;
let leads = true;
let recorder: EventRecorder;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1, 12) });
  written.length = 0;
  [fails, leads] = [false, true];
  recorder = new EventRecorder({
    api: leaderOver(
      {
        ...UNPLAYED,
        apply: async (_, event) => {
          if (fails) throw new Error('no');
          written.push(event);
          return { ...event, apiVersion: '', kind: '', metadata: { ...regarding('x').metadata } };
        },
      },
      () => {
        if (!leads) throw new LeadershipLostError();
      },
    ),
    instance: 'grantry-controller-0',
    clock: { now: () => Date.now() },
    log: { debug: () => {} },
  });
});
afterEach(() => {
  recorder.stop();
  vi.useRealTimers();
});

function regarding(name: string, namespace: string | undefined = 'team-a') {
  const place = namespace === undefined ? {} : { namespace };
  const metadata = { name, ...place, uid: `uid-${name}`, resourceVersion: '7', creationTimestamp: '' };
  return { apiVersion: 'grantry.dev/v1alpha1', kind: OAUTH_CLIENTS.kind, metadata };
}

const facts = (more: Partial<EventFacts> = {}): EventFacts => ({
  regarding: regarding('web'),
  type: 'Normal',
  reason: 'SecretCreated',
  action: 'CreateSecret',
  note: 'Made it.',
  ...more,
});

describe('an event', () => {
  it('says who did what to which object, and why', () => {
    recorder.record(facts());
    expect(written).toEqual([
      {
        metadata: { namespace: 'team-a', name: expect.stringMatching(/^web\.[0-9a-f]{16}$/) },
        eventTime: '2026-01-01T12:00:00.000000Z',
        reportingController: 'grantry.dev/controller',
        reportingInstance: 'grantry-controller-0',
        type: 'Normal',
        reason: 'SecretCreated',
        action: 'CreateSecret',
        note: 'Made it.',
        regarding: {
          apiVersion: 'grantry.dev/v1alpha1',
          kind: 'OAuthClient',
          namespace: 'team-a',
          name: 'web',
          uid: 'uid-web',
          resourceVersion: '7',
        },
      },
    ]);
  });

  it('about a cluster-scoped object is in the namespace default', () => {
    recorder.record(facts({ regarding: { ...regarding('policy'), metadata: { ...regarding('policy').metadata } } }));
    const { namespace: _, ...metadata } = regarding('policy').metadata;
    recorder.record(facts({ regarding: { ...regarding('policy'), metadata }, reason: 'Other' }));
    expect(written[1]?.metadata.namespace).toBe('default');
    expect(written[1]?.regarding).not.toHaveProperty('namespace');
  });

  it('is not tried where none may be written', () => {
    const api = leaderOver({ ...UNPLAYED, apply: async (_, event) => void written.push(event) as never });
    const options = {
      api,
      instance: 'grantry-controller-0',
      clock: { now: () => Date.now() },
      log: { debug: () => {} },
    };
    const narrow = new EventRecorder({ ...options, namespaces: ['team-a', 'auth'] });
    narrow.record(facts());
    narrow.record(facts({ regarding: regarding('other', 'team-b') }));
    const { namespace: _, ...metadata } = regarding('policy').metadata;
    narrow.record(facts({ regarding: { ...regarding('policy'), metadata } }));
    expect(written.map(({ metadata: { namespace } }) => namespace)).toEqual(['team-a']);
    narrow.stop();
  });

  it('is cut to what an API server takes', () => {
    recorder.record(facts({ note: 'ü'.repeat(2000), regarding: regarding('n'.repeat(253)) }));
    expect(Buffer.byteLength(written[0]?.note as string)).toBeLessThanOrEqual(1024);
    expect(written[0]?.note).toMatch(/^ü+…$/);
    expect(written[0]?.metadata.name.length).toBeLessThanOrEqual(253);
  });

  it('that repeats becomes a count, written once a minute', async () => {
    for (let index = 0; index < 50; index++) recorder.record(facts());
    expect(written.length).toBe(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(written.length).toBe(2);
    expect(written[1]).toEqual({
      ...written[0],
      series: { count: 50, lastObservedTime: '2026-01-01T12:00:00.000000Z' },
    });
    await vi.advanceTimersByTimeAsync(300_000);
    expect(written.length).toBe(2);
  });

  it('is news again after ten minutes', async () => {
    recorder.record(facts());
    await vi.advanceTimersByTimeAsync(600_000);
    recorder.record(facts());
    expect(written.length).toBe(2);
    expect(written[1]?.metadata.name).not.toBe(written[0]?.metadata.name);
  });

  it('is another one with another note or object', () => {
    recorder.record(facts());
    recorder.record(facts({ note: 'Made another.' }));
    recorder.record(facts({ regarding: regarding('other') }));
    expect(written.length).toBe(3);
    expect(new Set(written.map(({ metadata }) => metadata.name)).size).toBe(3);
  });

  it('comes only so often about one object, and that keeps no other from its own', async () => {
    for (let index = 0; index < 40; index++) recorder.record(facts({ note: `Number ${index}.` }));
    expect(written.length).toBe(10);
    recorder.record(facts({ regarding: regarding('other') }));
    expect(written.length).toBe(11);
    await vi.advanceTimersByTimeAsync(61_000);
    recorder.record(facts({ note: 'Later.' }));
    expect(written.length).toBe(12);
  });

  const everywhere = (index: number) => facts({ regarding: regarding(`client-${index}`, `team-${index}`) });
  const flood = (index: number) => facts({ regarding: regarding(`client-${index}`, 'flood') });
  const alert = (regarding: EventFacts['regarding']) =>
    facts({ regarding, reason: 'RefreshTokenReuse', isAlert: true });

  it('comes only so often at all', async () => {
    for (let index = 0; index < 1000; index++) recorder.record(everywhere(index));
    expect(written.length).toBe(50);
    await vi.advanceTimersByTimeAsync(1000);
    for (let index = 1000; index < 2000; index++) recorder.record(everywhere(index));
    expect(written.length).toBe(60);
  });

  it('comes only so often in one namespace, and that keeps no other from its own', async () => {
    for (let index = 0; index < 2000; index++) recorder.record(flood(index));
    expect(written.length).toBe(20);
    for (let index = 0; index < 10; index++) recorder.record(facts({ regarding: regarding(`app-${index}`, 'shop') }));
    const { namespace: _, ...metadata } = regarding('policy').metadata;
    recorder.record(facts({ regarding: { ...regarding('policy'), metadata } }));
    expect(written.length).toBe(31);
    // For as long as it lasts.
    for (let second = 0; second < 60; second++) {
      await vi.advanceTimersByTimeAsync(1000);
      written.length = 0;
      for (let index = 0; index < 100; index++) recorder.record(flood(2000 + second * 100 + index));
      expect(written.length).toBe(2);
      recorder.record(facts({ regarding: regarding(`later-${second}`, 'shop') }));
      expect(written.length).toBe(3);
    }
  });

  it('that is an alert is written whatever there is of others, and alerts come only so often too', () => {
    for (let index = 0; index < 1000; index++) recorder.record(everywhere(index));
    for (let index = 0; index < 40; index++) recorder.record(facts({ note: `Number ${index}.` }));
    for (let index = 0; index < 40; index++) recorder.record(flood(index));
    written.length = 0;
    recorder.record(alert(regarding('web')));
    recorder.record(alert(regarding('app', 'shop')));
    for (let index = 0; index < 100; index++) recorder.record(alert(regarding(`client-${index}`, 'flood')));
    recorder.record(alert(regarding('another', 'shop')));
    const alerts = written.filter(({ reason }) => reason === 'RefreshTokenReuse');
    const names = alerts.map(({ regarding }) => (regarding as { name: string }).name);
    expect([written.length, names.length, names[0], names[1], names.at(-1)]).toEqual([23, 23, 'web', 'app', 'another']);
  });

  it('is not written after the lease was lost, nor is a count, and that disturbs no caller', async () => {
    recorder.record(facts());
    recorder.record(facts());
    await vi.advanceTimersByTimeAsync(0);
    leads = false;
    recorder.record(facts({ note: 'Made another.' }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(written.map(({ note, series }) => [note, series])).toEqual([['Made it.', undefined]]);
  });

  it('that cannot be written disturbs no caller', async () => {
    fails = true;
    recorder.record(facts());
    await vi.advanceTimersByTimeAsync(0);
    fails = false;
    recorder.record(facts({ note: 'Next.' }));
    expect(written.length).toBe(1);
  });
});
