// The election, on timers that the test moves, over a Lease in memory that can be made to fail. That an API server takes
// what is written, and two real processes, are tested in test/cluster/.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Leadership, LeadershipLostError, LeaseElector } from '../../../src/controller/leadership/lease.ts';
import { KubernetesError, type NewObject } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, LEASES } from '../../../src/kubernetes/objects/resources.ts';

interface LeaseSpec {
  readonly holderIdentity: string;
  readonly renewTime: string;
  readonly acquireTime: string;
  readonly leaseTransitions: number;
  readonly leaseDurationSeconds: number;
}

/** The one Lease of a test. */
class SharedLease {
  object: KubernetesObject | undefined;
  #version = 0;

  get spec(): LeaseSpec | undefined {
    return this.object?.spec as LeaseSpec | undefined;
  }

  write(body: NewObject, isNew: boolean): KubernetesObject {
    const at = this.object?.metadata.resourceVersion;
    if (isNew ? at !== undefined : at !== body.metadata.resourceVersion) throw refusal(at === undefined ? 404 : 409);
    const metadata = { ...body.metadata, uid: 'u', resourceVersion: String(++this.#version), creationTimestamp: '' };
    this.object = { ...body, apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata };
    return this.object;
  }
}

function refusal(status: number): KubernetesError {
  return new KubernetesError({ status, reason: 'No', verb: 'update', resource: LEASES, user: 'somebody' });
}

/** A process that takes part. */
class Candidate {
  /** How its calls fare: as they should, refused, never answered, written and the answer lost, or answered after 3 s. */
  link: 'up' | 'down' | 'silent' | 'deaf' | 'slow' = 'up';
  /** How far its clock is off, in milliseconds. */
  skew = 0;
  readonly log: string[] = [];
  leadership: Leadership | undefined;
  readonly elector: LeaseElector;

  constructor(identity: string, lease: SharedLease) {
    const call = async <Answer>(run: () => Answer): Promise<Answer> => {
      if (this.link === 'down') throw refusal(0);
      if (this.link === 'silent') return new Promise(() => {});
      const answer = run();
      if (this.link === 'deaf') throw refusal(0);
      if (this.link === 'slow') await new Promise((resolve) => setTimeout(resolve, 3000));
      return answer;
    };
    this.elector = new LeaseElector({
      api: {
        get: () => call(() => lease.object),
        create: (_, body) => call(() => lease.write(body, true)),
        update: (_, body) => call(() => lease.write(body, false)),
      },
      namespace: 'auth',
      name: 'grantry-controller',
      identity,
      clock: { now: () => Date.now() + this.skew },
      random: { bytes: (count) => new Uint8Array(count).fill(128) },
      log: { info: () => {}, warn: () => {} },
      onStartedLeading: (leadership) => {
        this.leadership = leadership;
        this.log.push('started');
      },
      onStoppedLeading: () => {
        expect(this.leadership?.signal.aborted).toBe(true);
        this.log.push('stopped');
      },
    });
  }

  /** Whether it would still write. */
  get mayWrite(): boolean {
    try {
      this.leadership?.assertHeld();
      return this.leadership !== undefined;
    } catch (error) {
      expect(error).toBeInstanceOf(LeadershipLostError);
      return false;
    }
  }
}

let lease: SharedLease;
let one: Candidate;
let other: Candidate;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1, 12) });
  lease = new SharedLease();
  one = new Candidate('one', lease);
  other = new Candidate('other', lease);
});
afterEach(async () => {
  for (const candidate of [one, other]) candidate.link = 'down';
  const stopped = Promise.all([one.elector.stop(), other.elector.stop()]);
  await vi.advanceTimersByTimeAsync(20_000);
  await stopped;
  vi.useRealTimers();
});

/** Moves time in small steps; at each of them at most one of the two may write. */
async function pass(seconds: number): Promise<void> {
  for (let step = 0; step < seconds * 10; step++) {
    await vi.advanceTimersByTimeAsync(100);
    expect(one.mayWrite && other.mayWrite).toBe(false);
  }
}

async function bothStarted(): Promise<void> {
  one.elector.start();
  await pass(1);
  other.elector.start();
  await pass(5);
  expect([one.log, other.log]).toEqual([['started'], []]);
}

describe('an election', () => {
  it('has one leader that renews every 2 seconds', async () => {
    await bothStarted();
    expect(lease.spec).toMatchObject({ holderIdentity: 'one', leaseDurationSeconds: 15, leaseTransitions: 0 });
    const renewedAt = Date.parse(lease.spec?.renewTime ?? '');
    await pass(2);
    expect(Date.parse(lease.spec?.renewTime ?? '') - renewedAt).toBe(2000);
    await pass(120);
    expect([one.log, other.log]).toEqual([['started'], []]);
    expect([one.elector.isLeading, other.elector.isLeading, other.elector.holder]).toEqual([true, false, 'one']);
  });

  it('writes times with six digits behind the second', async () => {
    await bothStarted();
    const { renewTime, acquireTime } = lease.spec ?? {};
    for (const time of [renewTime, acquireTime]) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(acquireTime).not.toBe(renewTime);
  });

  it('is won by another within 18 seconds after the leader fell silent, and not before 15', async () => {
    await bothStarted();
    one.link = 'silent';
    // The last renewal may be 2 s old.
    await pass(12.9);
    expect(other.log).toEqual([]);
    await pass(5.1);
    expect(other.log).toEqual(['started']);
    expect(lease.spec).toMatchObject({ holderIdentity: 'other', leaseTransitions: 1 });
  });

  it('is won within 3 seconds after the leader stopped in order', async () => {
    await bothStarted();
    await one.elector.stop();
    expect(one.log).toEqual(['started', 'stopped']);
    expect(lease.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    await pass(3);
    expect(other.log).toEqual(['started']);
  });

  it('is not won by a wrong clock', async () => {
    await bothStarted();
    other.skew = 3_600_000;
    await pass(60);
    other.skew = -3_600_000;
    await pass(60);
    expect([one.log, other.log]).toEqual([['started'], []]);
  });

  it('takes a lease that was left behind only after it was watched for its whole length', async () => {
    lease.write(
      {
        metadata: { name: 'grantry-controller' },
        spec: { holderIdentity: 'dead', renewTime: '2020-01-01T00:00:00.000000Z' },
      },
      true,
    );
    one.elector.start();
    await pass(14);
    expect(one.log).toEqual([]);
    await pass(4);
    expect(one.log).toEqual(['started']);
  });
});

describe('a leader', () => {
  it('that cannot renew for 10 seconds stops, before another may begin', async () => {
    await bothStarted();
    one.link = 'down';
    await pass(7.9);
    expect([one.elector.isLeading, one.mayWrite]).toEqual([true, true]);
    await pass(2.2);
    expect([one.elector.isLeading, one.mayWrite, one.log]).toEqual([false, false, ['started', 'stopped']]);
    expect(one.elector.fault).toContain('update leases.coordination.k8s.io');
    expect(other.log).toEqual([]);
  });

  it('that cannot renew for a moment stays, even if an answer was lost', async () => {
    await bothStarted();
    for (const link of ['down', 'deaf', 'silent'] as const) {
      one.link = link;
      await pass(4);
      one.link = 'up';
      await pass(8);
    }
    expect([one.log, other.log]).toEqual([['started'], []]);
  });

  it('stops at once when another has the lease', async () => {
    await bothStarted();
    lease.write(
      { metadata: { ...lease.object?.metadata, name: 'x' }, spec: { ...lease.spec, holderIdentity: 'thief' } },
      false,
    );
    await pass(2.1);
    expect([one.log, one.mayWrite]).toEqual([['started', 'stopped'], false]);
  });

  it('creates the lease again when it was deleted, and stays', async () => {
    await bothStarted();
    lease.object = undefined;
    await pass(60);
    expect([one.log, other.log]).toEqual([['started'], []]);
    expect(lease.spec?.holderIdentity).toBe('one');
  });

  it('that died after the lease was deleted is followed by another', async () => {
    await bothStarted();
    lease.object = undefined;
    one.link = 'down';
    await pass(20);
    expect([one.log, other.log]).toEqual([['started', 'stopped'], ['started']]);
  });

  it('that slept does not write when it wakes, whatever its timers say', async () => {
    await bothStarted();
    // The wall clock went on while the monotonic one stood still.
    one.skew = 11_000;
    expect(one.mayWrite).toBe(false);
  });

  it('counts a renewal from when it was asked for', async () => {
    await bothStarted();
    one.link = 'slow';
    await pass(20);
    expect(one.elector.isLeading).toBe(true);
    one.link = 'down';
    // The latest renewal was written at least 3 s before its answer came, and the next one is 2 s after that.
    const renewedAt = Date.parse(lease.spec?.renewTime ?? '');
    await vi.advanceTimersByTimeAsync(renewedAt + 9900 - Date.now());
    expect(one.mayWrite).toBe(true);
    await vi.advanceTimersByTimeAsync(200);
    expect(one.mayWrite).toBe(false);
  });

  it('can lead again', async () => {
    await bothStarted();
    const before = one.leadership;
    one.link = 'down';
    other.link = 'down';
    await pass(12);
    expect(one.log).toEqual(['started', 'stopped']);
    one.link = 'up';
    await pass(5);
    expect(one.log).toEqual(['started', 'stopped', 'started']);
    expect(one.mayWrite).toBe(true);
    // What was begun before the break is not a leader's any more.
    expect(() => before?.assertHeld()).toThrow(LeadershipLostError);
  });

  it('does not delay its successor when it stops in the middle of a call', async () => {
    await bothStarted();
    one.link = 'silent';
    await pass(2);
    const stopping = one.elector.stop();
    await pass(9);
    await stopping;
    expect(one.log).toEqual(['started', 'stopped']);
  });
});
