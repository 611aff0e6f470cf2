import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StoredKey } from '../../../src/admission/keys/key-secret.ts';
import {
  activeKey,
  type DesiredRing,
  handledRequest,
  type KeyStep,
  nextActivation,
  planKeys,
  planOrphans,
} from '../../../src/controller/signing-keys/key-plan.ts';

const HOUR = 3_600_000;
const START = 1_800_000_000_000;

const SCHEDULED: DesiredRing = {
  algorithm: 'ES256',
  scheduled: true,
  interval: 2160 * HOUR,
  prePublish: 24 * HOUR,
  retain: 48 * HOUR,
  revokedKeyIds: [],
  importedKeyId: undefined,
  mayBegin: true,
  rotateAt: undefined,
};

/** A ring, a clock, and replicas, with every plan carried out at once. */
class Ring {
  keys: readonly StoredKey[] = [];
  now = START;
  desired: DesiredRing = SCHEDULED;
  replicasFollow = true;
  mayPublish = true;
  #made = 0;

  /** Plans and carries out until nothing is left to do; the steps that it took. */
  settle(): readonly KeyStep['do'][] {
    const taken: KeyStep['do'][] = [];
    for (let round = 0; round < 5; round++) {
      const { steps } = this.plan();
      if (steps.length === 0) return taken;
      for (const step of steps) {
        taken.push(step.do);
        this.take(step);
      }
    }
    throw new Error(`never at rest: ${JSON.stringify(this.keys)}`);
  }

  plan() {
    return planKeys({
      desired: this.desired,
      keys: this.keys,
      now: this.now,
      mayPublish: this.mayPublish,
      isServedByAll: () => this.replicasFollow,
    });
  }

  take(step: KeyStep): void {
    if (step.do === 'make') {
      const keyId = this.desired.importedKeyId ?? `made-${++this.#made}`;
      const activatedAt = step.state === 'Active' ? this.now : undefined;
      const { algorithm } = this.desired;
      const times = { publishedAt: this.now, activatedAt, removeAfter: undefined };
      const { state, handledRotateAt } = step;
      this.keys = [...this.keys, { signingKeyName: 'ring', keyId, algorithm, state, ...times, handledRotateAt }];
    } else {
      const others = this.keys.filter(({ keyId }) => keyId !== step.key.keyId);
      this.keys = step.do === 'put' ? [...others, step.key] : others;
    }
  }

  wish(changes: Partial<DesiredRing>): this {
    this.desired = { ...this.desired, ...changes };
    return this;
  }

  pass(milliseconds: number): this {
    this.now += milliseconds;
    return this;
  }

  get states(): readonly string[] {
    return this.keys.map(({ keyId, state }) => `${keyId} ${state}`).sort();
  }
}

function settled(desired: Partial<DesiredRing> = {}): Ring {
  const ring = new Ring().wish(desired);
  ring.settle();
  return ring;
}

describe('a ring of generated keys', () => {
  it('begins with a key that signs at once, whatever the replicas have', () => {
    const ring = new Ring();
    ring.replicasFollow = false;
    expect(ring.settle()).toEqual(['make']);
    expect(ring.states).toEqual(['made-1 Active']);
  });

  it('publishes the next key before the interval is over, lets it sign at the interval, and removes the first at last', () => {
    const ring = settled();
    expect(ring.pass(2136 * HOUR - 1).settle()).toEqual([]);
    ring.pass(1).settle();
    expect(ring.states).toEqual(['made-1 Active', 'made-2 Published']);
    expect(ring.pass(24 * HOUR - 1).settle()).toEqual([]);
    ring.pass(1).settle();
    expect(ring.states).toEqual(['made-1 Retiring', 'made-2 Active']);
    expect(ring.now - START).toBe(2160 * HOUR);
    expect(ring.pass(48 * HOUR - 1).settle()).toEqual([]);
    ring.pass(1).settle();
    expect(ring.states).toEqual(['made-2 Active']);
  });

  it('lets no key sign that a replica does not have, however long that takes', () => {
    const ring = settled();
    ring.pass(2136 * HOUR).settle();
    ring.replicasFollow = false;
    for (let hours = 0; hours < 400; hours += 40) expect(ring.pass(40 * HOUR).settle()).toEqual([]);
    ring.replicasFollow = true;
    ring.settle();
    expect(ring.states).toEqual(['made-1 Retiring', 'made-2 Active']);
  });

  it('rotates only on request of its owner when that is its policy', () => {
    const ring = settled({ scheduled: false });
    expect(ring.pass(100_000 * HOUR).settle()).toEqual([]);
    expect(ring.plan().requeueAt).toBeUndefined();
    ring.wish({ rotateAt: 'now' }).settle();
    expect(ring.states).toEqual(['made-1 Active', 'made-2 Published']);
    ring.pass(24 * HOUR).settle();
    expect(ring.states).toEqual(['made-1 Retiring', 'made-2 Active']);
  });

  it('acts on a request once, and not on the one that it began with', () => {
    const ring = settled({ rotateAt: 'first' });
    expect(handledRequest(ring.keys)).toBe('first');
    expect(ring.pass(HOUR).settle()).toEqual([]);
    ring.wish({ rotateAt: 'second' }).settle();
    expect(ring.states).toEqual(['made-1 Active', 'made-2 Published']);
    ring.pass(24 * HOUR).settle();
    expect(handledRequest(ring.keys)).toBe('second');
    expect(ring.pass(60 * HOUR).settle()).toEqual(['remove']);
    expect(ring.states).toEqual(['made-2 Active']);
  });

  it('takes the key that is on its way for the answer to a request', () => {
    const ring = settled();
    ring.pass(2136 * HOUR).settle();
    ring.wish({ rotateAt: 'soon' }).settle();
    expect(ring.states).toEqual(['made-1 Active', 'made-2 Published']);
    expect(handledRequest(ring.keys)).toBe('soon');
    ring.pass(24 * HOUR).settle();
    expect(ring.pass(HOUR).settle()).toEqual([]);
  });

  it('goes over to another algorithm like any rotation, and leaves a key of neither unpublished', () => {
    const ring = settled();
    ring.wish({ algorithm: 'EdDSA' }).settle();
    expect(ring.states).toEqual(['made-1 Active', 'made-2 Published']);
    ring.wish({ algorithm: 'ES384' }).settle();
    expect(ring.states).toEqual(['made-1 Active', 'made-3 Published']);
    ring.pass(24 * HOUR).settle();
    expect(activeKey(ring.keys)?.algorithm).toBe('ES384');
  });

  it('stays with the algorithm it has when its owner thinks better of it', () => {
    const ring = settled();
    ring.wish({ algorithm: 'EdDSA' }).settle();
    ring.wish({ algorithm: 'ES256' }).settle();
    expect(ring.states).toEqual(['made-1 Active']);
  });

  it('does without a revoked key at once, with the next one or a new one, whatever the replicas have', () => {
    const ring = settled();
    ring.replicasFollow = false;
    ring.wish({ revokedKeyIds: ['made-1'] }).settle();
    expect(ring.states).toEqual(['made-1 Revoked', 'made-2 Active']);
    ring.replicasFollow = true;
    ring.pass(2136 * HOUR).settle();
    ring.replicasFollow = false;
    ring.wish({ revokedKeyIds: ['made-1', 'made-2'] }).settle();
    expect(ring.states).toEqual(['made-2 Revoked', 'made-3 Active']);
  });

  it('has the new key sign before it calls the old one revoked', () => {
    const ring = settled().wish({ revokedKeyIds: ['made-1'] });
    expect(ring.plan().steps.map((step) => (step.do === 'put' ? step.key.state : step.do))).toEqual([
      'make',
      'Revoked',
    ]);
  });

  it('publishes another key when the next one is revoked', () => {
    const ring = settled();
    ring.pass(2136 * HOUR).settle();
    ring.wish({ revokedKeyIds: ['made-2'] }).settle();
    expect(ring.states).toEqual(['made-1 Active', 'made-2 Revoked', 'made-3 Published']);
  });

  it('never takes a revoked key back', () => {
    const ring = settled().wish({ revokedKeyIds: ['made-1'] });
    ring.settle();
    ring.wish({ revokedKeyIds: [] }).settle();
    expect(ring.states).toEqual(['made-1 Revoked', 'made-2 Active']);
    ring.pass(48 * HOUR).settle();
    expect(ring.states).toEqual(['made-2 Active']);
  });

  it('begins nothing while it may not, and ends what is to end', () => {
    const ring = settled();
    ring.pass(2160 * HOUR).settle();
    ring.pass(24 * HOUR).settle();
    ring.wish({ mayBegin: false });
    ring.pass(3000 * HOUR).settle();
    expect(ring.states).toEqual(['made-2 Active']);
    expect(new Ring().wish({ mayBegin: false }).settle()).toEqual([]);
  });

  it('comes to one signing key when two were made at the same time', () => {
    const ring = settled();
    ring.take({ do: 'make', state: 'Active', handledRotateAt: undefined });
    ring.settle();
    expect(ring.states).toEqual(['made-1 Retiring', 'made-2 Active']);
  });

  it('of two Active keys the newer is revoked → the older goes on signing', () => {
    const ring = settled().pass(1);
    ring.take({ do: 'make', state: 'Active', handledRotateAt: undefined });
    ring.wish({ revokedKeyIds: ['made-2'] }).settle();
    expect(ring.states).toEqual(['made-1 Active', 'made-2 Revoked']);
  });

  it('says when the next key signs', () => {
    const ring = settled();
    expect(nextActivation(ring.desired, ring.keys)).toBe(START + 2160 * HOUR);
    ring.pass(2140 * HOUR).settle();
    expect(nextActivation(ring.desired, ring.keys)).toBe(START + 2164 * HOUR);
    expect(nextActivation(settled({ scheduled: false }).desired, settled().keys)).toBeUndefined();
  });
});

describe('a ring while one more key may not be published', () => {
  it('without a key waits, and begins once there is room', () => {
    const ring = new Ring();
    ring.mayPublish = false;
    expect(ring.plan()).toEqual({ steps: [], requeueAt: START + 10_000, lacksRoom: true });
    ring.mayPublish = true;
    expect(ring.settle()).toEqual(['make']);
    expect(ring.plan().lacksRoom).toBe(false);
  });

  it.each([
    ['by its schedule', (ring: Ring) => ring.pass(2136 * HOUR)],
    ['on request', (ring: Ring) => ring.wish({ rotateAt: 'x' })],
    ['to another algorithm', (ring: Ring) => ring.wish({ algorithm: 'ES384' })],
    ['to an imported key', (ring: Ring) => ring.wish({ importedKeyId: 'mine' })],
  ])('rotates %s only once there is room, and signs by its key until then', (_, begin) => {
    const ring = settled();
    begin(ring);
    ring.mayPublish = false;
    const before = ring.keys;
    expect(ring.plan().lacksRoom).toBe(true);
    expect(ring.settle()).toEqual([]);
    expect(ring.keys).toEqual(before);
    ring.mayPublish = true;
    expect(ring.settle()).toEqual(['make']);
  });

  it('uses the keys that are published: the next one signs, an imported one again, and what has expired goes', () => {
    const ring = settled().pass(2136 * HOUR);
    ring.settle();
    ring.mayPublish = false;
    ring.pass(24 * HOUR);
    expect(ring.settle()).toEqual(['put', 'put']);
    ring.pass(48 * HOUR);
    expect(ring.settle()).toEqual(['remove']);
    const importing = settled().wish({ importedKeyId: 'a' });
    importing.settle();
    importing.pass(24 * HOUR).settle();
    importing.wish({ importedKeyId: 'b' }).settle();
    importing.pass(24 * HOUR).settle();
    importing.mayPublish = false;
    importing.wish({ importedKeyId: 'a' });
    expect(importing.plan().lacksRoom).toBe(false);
    expect(importing.settle()).toContain('put');
  });
});

describe('a ring with an imported key', () => {
  it('signs with it at once, and does not rotate', () => {
    const ring = settled({ importedKeyId: 'theirs' });
    expect(ring.states).toEqual(['theirs Active']);
    expect(
      ring
        .pass(100_000 * HOUR)
        .wish({ rotateAt: 'now' })
        .settle(),
    ).toEqual([]);
  });

  it('goes over to the next one like any rotation, and back to the first at once', () => {
    const ring = settled({ importedKeyId: 'a' });
    ring.wish({ importedKeyId: 'b' }).settle();
    expect(ring.states).toEqual(['a Active', 'b Published']);
    ring.pass(24 * HOUR).settle();
    expect(ring.states).toEqual(['a Retiring', 'b Active']);
    ring.wish({ importedKeyId: 'a' }).settle();
    expect(ring.states).toEqual(['a Active', 'b Retiring']);
  });

  it('goes over to generated keys', () => {
    const ring = settled({ importedKeyId: 'a' });
    ring.wish({ importedKeyId: undefined }).pass(2160 * HOUR);
    ring.settle();
    expect(ring.states).toEqual(['a Active', 'made-1 Published']);
  });
});

describe('the keys of a ring that is gone', () => {
  const keys = (...states: StoredKey['state'][]) =>
    states.map((state, index): StoredKey => {
      const times = { publishedAt: START, activatedAt: START, removeAfter: undefined };
      return { signingKeyName: 'gone', keyId: `key-${index}`, algorithm: 'ES256', state, ...times };
    });
  const facts = { now: START, retain: 48 * HOUR, isReplaced: () => true };

  it('verify on once another ring signs', () => {
    const { steps } = planOrphans(keys('Active'), facts);
    expect(steps).toMatchObject([{ do: 'put', key: { state: 'Retiring', removeAfter: START + 48 * HOUR } }]);
    expect(planOrphans(keys('Active'), { ...facts, isReplaced: () => false }).steps).toEqual([]);
  });

  it('are never published, and removed in their time', () => {
    expect(planOrphans(keys('Published'), facts).steps).toMatchObject([{ do: 'remove' }]);
    const [retiring] = keys('Retiring').map((key) => ({ ...key, removeAfter: START + 1 }));
    expect(planOrphans(retiring ? [retiring] : [], facts)).toEqual({
      steps: [],
      requeueAt: START + 1,
      lacksRoom: false,
    });
    expect(planOrphans(retiring ? [retiring] : [], { ...facts, now: START + 1 }).steps).toMatchObject([
      { do: 'remove' },
    ]);
  });
});

describe('whatever happens to a ring', () => {
  const event = fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 3000 * HOUR }).map((pass) => ({ pass })) },
    fc.constantFrom('ES256', 'ES384', 'RS256').map((algorithm) => ({ algorithm })),
    fc.boolean().map((scheduled) => ({ scheduled })),
    fc.boolean().map((mayBegin) => ({ mayBegin })),
    fc.constantFrom(undefined, 'x', 'y').map((rotateAt) => ({ rotateAt })),
    fc.constantFrom(undefined, 'a', 'b').map((importedKeyId) => ({ importedKeyId })),
    fc.constant({ revoke: true }),
    fc.boolean().map((follow) => ({ follow })),
    fc.boolean().map(() => ({ crash: true })),
  );

  it('one key signs, none that was not published long enough replaces it, and none that signed goes early', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const ring = settled();
        for (const happening of events) {
          const before = ring.keys;
          if ('pass' in happening) ring.pass(happening.pass);
          else if ('revoke' in happening) {
            const active = activeKey(ring.keys);
            ring.wish({ revokedKeyIds: [...ring.desired.revokedKeyIds, active?.keyId ?? ''] });
          } else if ('follow' in happening) ring.replicasFollow = happening.follow;
          else if ('crash' in happening) {
            const [first] = ring.plan().steps;
            if (first !== undefined) ring.take(first);
          } else ring.wish(happening as Partial<DesiredRing>);
          // Admission does not accept a ring whose imported key is revoked.
          const { importedKeyId = '', revokedKeyIds } = ring.desired;
          if (revokedKeyIds.includes(importedKeyId)) ring.wish({ mayBegin: false });
          ring.settle();
          hold(ring, before);
        }
      }),
      { numRuns: 300 },
    );
  });

  function hold(ring: Ring, before: readonly StoredKey[]): void {
    const active = ring.keys.filter(({ state }) => state === 'Active');
    const usable = active.filter(({ keyId }) => !ring.desired.revokedKeyIds.includes(keyId));
    if (ring.desired.mayBegin) expect(usable).toHaveLength(1);
    expect(active.length).toBeLessThanOrEqual(1);
    const signed = activeKey(before);
    const [signs] = usable;
    const isReplaced = signs !== undefined && signed !== undefined && signs.keyId !== signed.keyId;
    if (isReplaced && !ring.desired.revokedKeyIds.includes(signed.keyId)) {
      expect(ring.now - signs.publishedAt).toBeGreaterThanOrEqual(ring.desired.prePublish);
      expect(
        ring.replicasFollow || before.some(({ keyId, state }) => keyId === signs.keyId && state === 'Active'),
      ).toBe(true);
    }
    for (const key of before.filter(({ activatedAt }) => activatedAt !== undefined)) {
      if (ring.keys.some(({ keyId }) => keyId === key.keyId)) continue;
      expect(key.removeAfter).toBeLessThanOrEqual(ring.now);
    }
  }
});
