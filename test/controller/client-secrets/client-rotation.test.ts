import { describe, expect, it } from 'vitest';
import {
  activeVerifiers,
  readVerifierSecret,
  VERIFIERS_MAX,
} from '../../../src/admission/client-secrets/client-verifier.ts';
import {
  nextRotation,
  type RotationInput,
  rotationStep,
} from '../../../src/controller/client-secrets/client-rotation.ts';
import { endingCredentials, indexOfSecret } from '../../../src/controller/client-secrets/credential-changes.ts';
import {
  type CredentialState,
  readCredentialState,
  verifierSecret,
} from '../../../src/controller/client-secrets/credential-state.ts';
import { existingCredentials } from '../../../src/controller/client-secrets/existing-credentials.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';

const UID = 'a3f1c2d4-0000-4000-8000-000000000001';
const HOUR = 3_600_000;
const START = Date.parse('2026-03-01T12:00:00Z');

/** One client whose steps are carried out as the reconciler does it. */
class Owner {
  now = START;
  settings = { intervalSeconds: undefined as number | undefined, gracePeriodSeconds: 24 * 3600 };
  requests: RotationInput['requests'] = { rotateAt: undefined, rotateNow: undefined };
  stored: CredentialState | undefined;
  present: string | undefined;
  isOrphan = false;
  staged: string | undefined;
  unwritten: string | undefined;
  isServed = true;
  #bytes = 0;

  step(options: { diesBeforeWriting?: boolean; diesBeforeSettling?: boolean } = {}) {
    const done = rotationStep({
      uid: UID,
      now: this.now,
      requests: this.requests,
      ...this.settings,
      stored: this.stored,
      present: this.present,
      isOrphan: this.isOrphan,
      staged: this.#stagedNewest(),
      unwritten: this.unwritten,
      isServed: this.isServed,
      random: { bytes: (count) => Buffer.alloc(count, ++this.#bytes) },
    });
    if (done.store !== undefined) this.stored = done.store;
    this.unwritten = undefined;
    if (options.diesBeforeWriting) return done;
    this.present = done.value;
    this.staged = done.next;
    if (options.diesBeforeSettling) return done;
    if (done.storeAfterWrite !== undefined) this.stored = done.storeAfterWrite;
    return done;
  }

  /** What counts of that which is staged. */
  #stagedNewest(): string | undefined {
    const { staged, stored } = this;
    const isNewest = staged !== undefined && indexOfSecret(UID, staged, stored?.verifiers ?? []) === 0;
    return isNewest ? staged : undefined;
  }

  /** Whether replicas accept this secret now. */
  accepts(secret: string | undefined): boolean {
    if (secret === undefined || this.stored === undefined) return false;
    const wanted = Buffer.from(secretVerifier(UID, secret));
    return activeVerifiers(this.stored, this.now).some((verifier) => wanted.equals(verifier));
  }

  get count(): number {
    return this.stored?.verifiers.length ?? 0;
  }
}

function ownerWithSecret(): Owner & { present: string } {
  const owner = new Owner();
  owner.step();
  return owner as Owner & { present: string };
}

/** What replicas and the next controller read. */
function secretOf(state: CredentialState): object {
  const install = { releaseNamespace: 'grantry', className: 'default' };
  return verifierSecret({ namespace: 'shop', name: 'web', uid: UID }, state, install);
}

it('given an expired secret of which a copy is staged → it does not become the secret again', () => {
  const owner = ownerWithSecret();
  const before = owner.present;
  owner.stored = endingCredentials(owner.stored as CredentialState, { now: owner.now, gracePeriodSeconds: 60 });
  owner.now += HOUR;
  [owner.present, owner.staged] = ['x'.repeat(43), before];
  expect(owner.step().outcome).toBe('repaired');
  expect(owner.present).not.toBe(before);
  expect(owner.accepts(owner.present)).toBe(true);
});

describe('a first secret', () => {
  it('is made and accepted', () => {
    const owner = new Owner();
    expect(owner.step()).toMatchObject({ outcome: 'created', next: undefined, requeueAt: undefined });
    expect(owner.accepts(owner.present)).toBe(true);
    expect(owner.step()).toMatchObject({ outcome: 'kept', store: undefined, storeAfterWrite: undefined });
  });

  it('is the one that is there, where it may be taken over', () => {
    const owner = new Owner();
    owner.present = 'a secret that was restored from a backup';
    expect(owner.step().outcome).toBe('adopted');
    expect(owner.present).toBe('a secret that was restored from a backup');
    expect(owner.accepts(owner.present)).toBe(true);
  });

  it('is not rotated for a request that is as old as the object', () => {
    const owner = new Owner();
    owner.requests = { rotateAt: 'monday', rotateNow: 'monday' };
    owner.step();
    expect(owner.step().outcome).toBe('kept');
  });

  it('is repaired when the leader that made it crashed before its owner had it', () => {
    const owner = new Owner();
    owner.step({ diesBeforeWriting: true });
    expect(owner.step().outcome).toBe('repaired');
    expect(owner.accepts(owner.present)).toBe(true);
  });

  it('is the same one as long as it is not known whether it is stored', () => {
    const owner = new Owner();
    const first = owner.step({ diesBeforeWriting: true });
    [owner.stored, owner.unwritten] = [undefined, first.value];
    expect(owner.step({ diesBeforeWriting: true })).toMatchObject({ outcome: 'created', value: first.value });
    owner.unwritten = first.value;
    expect(owner.step()).toMatchObject({ outcome: 'created', value: first.value, store: undefined });
    expect(owner.accepts(first.value)).toBe(true);
  });

  it('that arrives late, when the next leader has made another one, is replaced, and works for its grace', () => {
    const owner = new Owner();
    const late = owner.step({ diesBeforeWriting: true }).value;
    owner.step({ diesBeforeWriting: true });
    owner.present = late;
    expect(owner.accepts(late)).toBe(true);
    expect([owner.step().outcome, owner.step().outcome]).toEqual(['begun', 'rotated']);
    expect([owner.accepts(owner.present), owner.accepts(late), owner.present === late]).toEqual([true, true, false]);
  });

  it('that came back from a backup after another was made keeps its value, also in the middle of a rotation', () => {
    for (const isRotating of [false, true]) {
      const owner = ownerWithSecret();
      const before = owner.present;
      owner.isServed = false;
      if (isRotating) owner.requests = { rotateAt: 'one', rotateNow: undefined };
      if (isRotating) owner.step();
      const restored = 'a secret that was restored from a backup';
      owner.present = restored;
      owner.isOrphan = true;
      expect(owner.step()).toMatchObject({ outcome: 'adopted', value: restored });
      owner.isOrphan = false;
      expect(owner.step()).toMatchObject({ outcome: 'kept', value: restored, store: undefined });
      expect([owner.accepts(restored), owner.accepts(before)]).toEqual([true, true]);
      owner.now += 24 * HOUR;
      expect([owner.accepts(restored), owner.accepts(before)]).toEqual([true, false]);
    }
  });
});

describe('a rotation', () => {
  it.each([
    [
      'by interval',
      (owner: Owner) => {
        owner.now += 48 * HOUR;
      },
    ],
    [
      'by annotation',
      (owner: Owner) => {
        owner.requests = { ...owner.requests, rotateAt: 'now please' };
      },
    ],
  ])('%s hands the new secret out once all replicas accept it, and lets the old one work for its grace', (_, ask) => {
    const owner = new Owner();
    owner.settings.intervalSeconds = 48 * 3600;
    owner.step();
    const old = owner.present;
    owner.isServed = false;
    ask(owner);
    expect(owner.step().outcome).toBe('begun');
    expect(owner.step().outcome).toBe('kept');
    expect(owner.present).toBe(old);
    owner.isServed = true;
    expect(owner.step().outcome).toBe('rotated');
    expect(owner.present).not.toBe(old);
    const handedOut = owner.now;
    expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, true]);
    expect(owner.step()).toMatchObject({ outcome: 'kept', requeueAt: handedOut + 24 * HOUR });
    owner.now = handedOut + 24 * HOUR;
    expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, false]);
    expect(owner.step().outcome).toBe('expired');
    expect(owner.count).toBe(1);
  });

  it('is due again an interval after the new secret was handed out', () => {
    const owner = ownerWithSecret();
    owner.settings.intervalSeconds = 48 * 3600;
    expect(owner.step().requeueAt).toBe(START + 48 * HOUR);
    expect(nextRotation(owner.settings, { rotatedAt: START })).toBe(START + 48 * HOUR);
  });

  it('is asked for once by one annotation, and not by its removal', () => {
    const owner = ownerWithSecret();
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    expect([owner.step().outcome, owner.step().outcome, owner.step().outcome]).toEqual(['begun', 'rotated', 'kept']);
    owner.requests = { rotateAt: undefined, rotateNow: undefined };
    expect(owner.step().outcome).toBe('kept');
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    expect(owner.step().outcome).toBe('kept');
  });

  it('goes on with the staged secret when the leader that made it died', () => {
    const owner = ownerWithSecret();
    owner.isServed = false;
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    const { next } = owner.step();
    expect(owner.staged).toBe(next);
    expect(owner.step()).toMatchObject({ outcome: 'kept', next });
    owner.isServed = true;
    expect(owner.step()).toMatchObject({ outcome: 'rotated', value: next, next: undefined });
    expect([owner.present, owner.staged]).toEqual([next, undefined]);
  });

  it('begins again with another secret when the leader died before it was staged, or another party removed it', () => {
    for (const isRemoved of [false, true]) {
      const owner = ownerWithSecret();
      const old = owner.present;
      owner.isServed = false;
      owner.requests = { rotateAt: 'one', rotateNow: undefined };
      owner.step({ diesBeforeWriting: !isRemoved });
      owner.staged = undefined;
      const lost = owner.stored?.verifiers[0];
      expect(owner.step().outcome).toBe('begun');
      expect(owner.stored?.verifiers.map(({ revision }) => revision)).toEqual([3, 2, 1]);
      expect(owner.stored?.verifiers[0]?.verifier).not.toEqual(lost?.verifier);
      owner.isServed = true;
      expect(owner.step().outcome).toBe('rotated');
      expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, true]);
      owner.now += 24 * HOUR;
      owner.step();
      expect([owner.count, owner.accepts(owner.present)]).toEqual([1, true]);
    }
  });

  it('begins with the same secret again where it is not known whether its verifier is stored', () => {
    const owner = ownerWithSecret();
    const { stored } = owner;
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    const { next } = owner.step({ diesBeforeWriting: true });
    [owner.stored, owner.unwritten] = [stored, next];
    expect(owner.step()).toMatchObject({ outcome: 'begun', next });
  });

  it('stages the same secret again as long as that is refused', () => {
    const owner = ownerWithSecret();
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    const { next } = owner.step({ diesBeforeWriting: true });
    owner.unwritten = next;
    expect(owner.step({ diesBeforeWriting: true })).toMatchObject({ outcome: 'begun', next, store: undefined });
  });

  it('polls less and less often whether it is served, a quarter second to half a minute', () => {
    const owner = ownerWithSecret();
    owner.isServed = false;
    owner.settings.intervalSeconds = 48 * 3600;
    owner.now += 48 * HOUR;
    const polls = [0, 20_000, HOUR].map((wait) => {
      owner.now += wait;
      return (owner.step().requeueAt ?? 0) - owner.now;
    });
    expect(polls).toEqual([250, 5000, 30_000]);
  });

  it('goes on where the leader crashed after publishing the secret', () => {
    const owner = ownerWithSecret();
    const old = owner.present;
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    owner.step();
    owner.step({ diesBeforeSettling: true });
    const handedOut = owner.present;
    expect(owner.step().outcome).toBe('rotated');
    expect(owner.present).toBe(handedOut);
    owner.now += 24 * HOUR;
    expect([owner.accepts(handedOut), owner.accepts(old)]).toEqual([true, false]);
  });

  it('lets each secret work for the whole of its grace, with a month of it and a rotation each day', () => {
    const owner = ownerWithSecret();
    owner.settings = { intervalSeconds: 24 * 3600, gracePeriodSeconds: 30 * 24 * 3600 };
    const replaced: { readonly secret: string; readonly until: number }[] = [];
    for (let day = 0; day < 60; day += 1) {
      const before = owner.present;
      owner.now += 24 * HOUR;
      owner.step();
      owner.step();
      expect(owner.present).not.toBe(before);
      replaced.push({ secret: before, until: owner.now + 30 * 24 * HOUR });
      for (const { secret, until } of replaced) expect(owner.accepts(secret)).toBe(until > owner.now);
    }
    expect(readVerifierSecret(secretOf(owner.stored as CredentialState))?.verifiers).toHaveLength(owner.count);
  });

  it('keeps a bounded number of secrets, however often it is asked for', () => {
    const owner = ownerWithSecret();
    for (let request = 0; request < 50; request += 1) {
      owner.requests = { rotateAt: String(request), rotateNow: undefined };
      owner.step();
      owner.step();
      expect(owner.accepts(owner.present)).toBe(true);
      expect(owner.count).toBeLessThanOrEqual(VERIFIERS_MAX);
    }
  });

  it('announces every change to replicas by a higher revision', () => {
    const owner = ownerWithSecret();
    const revisions = [owner.stored?.revision];
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    for (const _ of ['begin', 'rotate']) {
      owner.step();
      revisions.push(owner.stored?.revision);
    }
    owner.now += 24 * HOUR;
    owner.step();
    expect([...revisions, owner.stored?.revision]).toEqual([1, 2, 3, 4]);
  });
});

describe('an immediate cut', () => {
  it('lets no older secret work any more, also in the middle of a rotation', () => {
    const owner = ownerWithSecret();
    const old = owner.present;
    owner.isServed = false;
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    owner.step();
    owner.requests = { rotateAt: 'one', rotateNow: 'leaked' };
    expect(owner.step().outcome).toBe('cut');
    expect(owner.count).toBe(1);
    expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, false]);
    expect(owner.step().outcome).toBe('kept');
  });
});

describe('drift', () => {
  it.each([
    ['missing', undefined],
    ['another one', 'something that was typed in by hand'],
  ])('of a secret that is %s makes a new one, and the old one works for its grace', (_, present) => {
    const owner = ownerWithSecret();
    const old = owner.present;
    (owner as Owner).present = present;
    expect(owner.step()).toMatchObject({ outcome: 'repaired', requeueAt: START + 24 * HOUR });
    expect([owner.accepts(owner.present), owner.accepts(old), owner.accepts(present)]).toEqual([true, true, false]);
  });

  it('is repaired with the same secret as long as it cannot be written, and the old one outlasts that', () => {
    const owner = ownerWithSecret();
    const old = owner.present;
    (owner as Owner).present = undefined;
    const first = owner.step({ diesBeforeWriting: true });
    for (let round = 0; round < 10; round += 1) {
      owner.unwritten = first.value;
      expect(owner.step({ diesBeforeWriting: true })).toMatchObject({ value: first.value, store: undefined });
    }
    expect([owner.accepts(first.value), owner.accepts(old)]).toEqual([true, true]);
  });

  it('in the middle of a rotation leaves the staged secret its grace: it may have been published under a former name', () => {
    const owner = ownerWithSecret();
    const old = owner.present;
    owner.isServed = false;
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    const { next } = owner.step();
    (owner as Owner).present = owner.staged = undefined;
    expect(owner.step().outcome).toBe('repaired');
    expect([owner.present, next, old].map((secret) => owner.accepts(secret))).toEqual([true, true, true]);
    owner.now += 24 * HOUR;
    expect([owner.present, next, old].map((secret) => owner.accepts(secret))).toEqual([true, false, false]);
  });

  it('of a former name that is given again, in the middle of a rotation → what may be published under the other name works', () => {
    const owner = ownerWithSecret();
    const first = owner.present;
    (owner as Owner).present = undefined;
    const { value: second } = owner.step({ diesBeforeSettling: true });
    (owner as Owner).present = first;
    expect(owner.step()).toMatchObject({ outcome: 'begun', value: first });
    expect(owner.step().outcome).toBe('rotated');
    expect([owner.present, second, first].map((secret) => owner.accepts(secret))).toEqual([true, true, true]);
    owner.now += 24 * HOUR;
    expect([owner.present, second, first].map((secret) => owner.accepts(secret))).toEqual([true, false, false]);
  });

  it('that each of many leaders repairs and cannot write → the secret in force stays accepted', () => {
    const owner = ownerWithSecret();
    const old = owner.present;
    (owner as Owner).present = undefined;
    for (let leader = 0; leader < 2 * VERIFIERS_MAX; leader++) owner.step({ diesBeforeWriting: true });
    expect([owner.count, owner.accepts(old)]).toEqual([VERIFIERS_MAX, true]);
  });

  it('expires nothing before the new secret is written, by whichever leader', () => {
    const owner = ownerWithSecret();
    const old = owner.present;
    (owner as Owner).present = undefined;
    owner.step({ diesBeforeWriting: true });
    owner.now += 25 * HOUR;
    expect(owner.accepts(old)).toBe(true);
    expect(owner.step().outcome).toBe('repaired');
    owner.now += 23 * HOUR;
    expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, true]);
    owner.now += 1 * HOUR;
    expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, false]);
  });

  it('of the present secret alone, in the middle of a rotation, publishes the staged one at once', () => {
    const owner = ownerWithSecret();
    owner.isServed = false;
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    const { next } = owner.step();
    (owner as Owner).present = 'something that was typed in by hand';
    expect(owner.step()).toMatchObject({ outcome: 'rotated', value: next });
    expect(owner.accepts(owner.present)).toBe(true);
  });

  it('back to an older secret in its grace is rotated away, and does not lengthen the grace', () => {
    const owner = ownerWithSecret();
    const old = owner.present;
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    owner.step();
    owner.step();
    owner.now += 23 * HOUR;
    owner.present = old;
    owner.isServed = false;
    expect([owner.step(), owner.step()]).toMatchObject([
      { outcome: 'begun', value: old, isRepair: true },
      { outcome: 'kept', value: old },
    ]);
    owner.isServed = true;
    expect(owner.step().outcome).toBe('rotated');
    owner.now += 2 * HOUR;
    expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, false]);
  });
});

describe("a Secret of the owner's own", () => {
  const [one, two] = ['first', 'second'].map((secret) => secretVerifier(UID, secret)) as [Uint8Array, Uint8Array];
  const at = { now: START, requests: { rotateAt: undefined, rotateNow: undefined } };

  it('is stored as it is, and only when it changes', () => {
    const stored = existingCredentials(undefined, [one], at);
    expect(stored).toMatchObject({ revision: 1, verifiers: [{ revision: 1 }], rotatedAt: START });
    expect(existingCredentials(stored, [one], at)).toBeUndefined();
    const both = existingCredentials(stored, [two, one], { ...at, now: START + HOUR });
    expect(both).toMatchObject({ revision: 2, verifiers: [{ revision: 2 }, { revision: 1 }], rotatedAt: START + HOUR });
    const alone = existingCredentials(both, [two], { ...at, now: START + 2 * HOUR });
    expect(alone).toMatchObject({ revision: 3, verifiers: [{ revision: 2 }], rotatedAt: START + HOUR });
  });
});

describe('the state of credentials', () => {
  it('is read from the Secret as it was written', () => {
    const owner = ownerWithSecret();
    owner.requests = { rotateAt: 'one', rotateNow: undefined };
    for (const outcome of ['begun', 'rotated']) {
      expect(owner.step().outcome).toBe(outcome);
      const state = owner.stored as CredentialState;
      expect(readCredentialState(secretOf(state))).toEqual({ uid: UID, ...state });
    }
  });
});

describe('a Secret that another writer replaced', () => {
  /** What happens while the Secret is not this client's. */
  function replaced(): Owner & { present: string; stored: CredentialState } {
    const owner = ownerWithSecret() as Owner & { present: string; stored: CredentialState };
    end(owner);
    return owner;
  }
  const end = (owner: Owner) => {
    const { stored, now, settings } = owner;
    const ending = stored && endingCredentials(stored, { now, ...settings });
    if (ending !== undefined) owner.stored = ending;
    return ending;
  };

  it('lets what was accepted end with the grace, once', () => {
    const owner = replaced();
    expect(owner.accepts(owner.present)).toBe(true);
    owner.now += 23 * HOUR;
    expect(end(owner)).toBeUndefined();
    expect(owner.accepts(owner.present)).toBe(true);
    owner.now += HOUR;
    expect(owner.accepts(owner.present)).toBe(false);
    expect(owner.stored.revision).toBe(2);
  });

  it('ends at once where there is no grace, and none that ends earlier is prolonged', () => {
    const owner = ownerWithSecret();
    owner.requests = { rotateAt: 'now', rotateNow: undefined };
    const old = owner.present;
    owner.settings.gracePeriodSeconds = 3600;
    owner.step();
    owner.step();
    expect(owner.count).toBe(2);
    owner.settings.gracePeriodSeconds = 24 * 3600;
    end(owner);
    owner.now += 2 * HOUR;
    expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, false]);
    const strict = ownerWithSecret();
    strict.settings.gracePeriodSeconds = 0;
    end(strict);
    expect(strict.accepts(strict.present)).toBe(false);
    expect(strict.count).toBe(1);
  });

  it('and went away is created again with another value, during the grace and after it', () => {
    for (const hours of [1, 25]) {
      const owner = replaced();
      const old = owner.present;
      owner.now += hours * HOUR;
      owner.unwritten = old;
      (owner as Owner).present = undefined;
      expect(owner.step().outcome).toBe('repaired');
      expect(owner.present).not.toBe(old);
      expect([owner.accepts(owner.present), owner.accepts(old)]).toEqual([true, hours === 1]);
      expect(owner.stored.verifiers[0]).toMatchObject({ revision: 2 });
      expect(owner.stored.verifiers[0]?.expiresAt).toBeUndefined();
    }
  });

  it('and came back in time with the value it had goes on; too late, it is replaced', () => {
    const owner = replaced();
    const old = owner.present;
    owner.now += 23 * HOUR;
    expect(owner.step()).toMatchObject({ outcome: 'kept', value: old });
    owner.now += 48 * HOUR;
    expect(owner.step()).toMatchObject({ outcome: 'kept', store: undefined });
    expect(owner.accepts(old)).toBe(true);
    end(owner);
    owner.now += 25 * HOUR;
    expect(owner.step().outcome).toBe('repaired');
    expect(owner.accepts(old)).toBe(false);
  });
});
